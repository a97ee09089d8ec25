"""What supervisor and workers tell each other: values, and their form as bytes.

Both are the same program, so nothing here is for others to read; `PROTOCOL` tells apart two versions of it, when the
program on disk was replaced while the supervisor ran.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Final, get_args

from garboard.errors import InvalidValue
from garboard.values import Json

PROTOCOL: Final = 1
FILE_ENCODING: Final = "latin-1"  # of a file within a message: every byte is one character, whatever it means


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker is there."""

    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Start:
    """Who a worker is, and what it serves; the sockets of `fronts`, a place for each, come with it."""

    server: str
    number: int
    agent_port: int
    tenants: str | None = None  # the file of tenants, as the supervisor has read it
    fronts: list[str] = field(default_factory=list)
    most_agents: dict[str, int] = field(default_factory=dict)  # by tenant, of the worker that has most


@dataclass(frozen=True, slots=True)
class Listening:
    """A worker accepts connections."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker cannot begin, and why."""

    message: str
    hint: str = ""
    error_class: str = ""


@dataclass(frozen=True, slots=True)
class Agents:
    """How many agents of each tenant a worker has."""

    by_tenant: dict[str, int]


@dataclass(frozen=True, slots=True)
class Peers:
    """The workers that accept connections, by server id, and by tenant the agents of the one that has most."""

    number: int
    present: list[str]
    most_agents: dict[str, int]


@dataclass(frozen=True, slots=True)
class PeersHeard:
    """A worker has taken in what it was told of the others under that number."""

    number: int


@dataclass(frozen=True, slots=True)
class Reload:
    """The file of tenants as it is now; sockets that are new come with it."""

    number: int
    tenants: str
    fronts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A worker serves the tenants of that number, or says why it cannot."""

    number: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """For a page of the worker."""

    number: int
    path: str
    query: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageAnswer:
    number: int
    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Take nothing new, let what is open finish as long as the options say, and end."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A worker has; so many connections were cut."""

    cut_connections: int


ControlMessage = (
    Hello
    | Start
    | Listening
    | Failed
    | Agents
    | Peers
    | PeersHeard
    | Reload
    | Reloaded
    | Ask
    | PageAnswer
    | Stop
    | Stopped
)
_CLASSES: Final[dict[str, type[ControlMessage]]] = {each.__name__: each for each in get_args(ControlMessage)}


def encode_message(message: ControlMessage, descriptors: int) -> bytes:
    """As a body of JSON; the number of descriptors that come with it is part of it."""
    return json.dumps([type(message).__name__, descriptors, asdict(message)]).encode()


def decode_message(body: bytes) -> tuple[ControlMessage, int]:
    """The message and how many descriptors came with it. Raises `InvalidValue`."""
    try:
        name, descriptors, fields = json.loads(body)
        return _CLASSES[name](**fields), _count(descriptors)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValue(
            f"a message between a tunnel server and its workers cannot be read: {error!r}",
            hint="restart the server: the program on disk is another version than the one that runs",
        ) from error


def _count(value: Json) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} descriptors")
    return value
