"""The names that an agent can be chosen by: the `agentIdentifiers` of its Connect call, a URL query string."""

from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import parse_qsl

from garboard.errors import InvalidValue

KEYS: Final = ("ipv4", "ipv6", "host", "cidr", "default-route")
# The words that Go's strconv.ParseBool takes.
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_go_boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise InvalidValue(f"{text!r} is not a truth value", hint="write true or false") from None


@dataclass(frozen=True, slots=True)
class Identifiers:
    """The names under which an agent can be chosen; all of it is the agent's own claim."""

    hosts: frozenset[str] = frozenset()  # of ipv4, ipv6 and host, which share one space
    cidrs: tuple[str, ...] = ()  # sent by some agents, and used by nothing
    is_default_route: bool = False

    @classmethod
    def parse(cls, text: str, *, strict: bool = False) -> Self:
        """Read the query string; `strict` refuses keys that nobody knows, as the agent does with its own flag."""
        try:
            pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text) and strict, max_num_fields=10_000)
        except ValueError as error:
            raise InvalidValue(f"bad agent identifiers: {error}", hint="write them as host=a&ipv4=10.0.0.1") from error
        unknown = sorted({key for key, _ in pairs} - set(KEYS))
        if strict and unknown:
            raise InvalidValue(f"unknown agent identifier {unknown[0]!r}", hint=f"known are {', '.join(KEYS)}")
        routes = [value for key, value in pairs if key == "default-route"]
        return cls(
            hosts=frozenset(value for key, value in pairs if key in ("ipv4", "ipv6", "host")),
            cidrs=tuple(value for key, value in pairs if key == "cidr"),
            is_default_route=parse_go_boolean(routes[0]) if routes else False,
        )
