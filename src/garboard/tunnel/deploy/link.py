"""An address on the node that every node has: the place where the agent stands in for the API server."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Protocol

from garboard.errors import InvalidValue, NotReady

DEFAULT_NAME: Final = "konnectivity0"
LOOPBACK: Final = "lo"
# The first that the kernel has. A bridge without ports serves as well as a dummy link; the loopback link always does.
KINDS: Final = ("dummy", "bridge")


class Ended(Protocol):
    """A process that has ended."""

    @property
    def status(self) -> int: ...

    @property
    def stderr(self) -> str: ...


class Runner(Protocol):
    """Runs a program to its end."""

    def run(self, command: Sequence[str], *, check: bool) -> Ended: ...


def parse_bind_address(text: str) -> IPv4Address | IPv6Address:
    """An address that the default Service can lead to: neither loopback nor link-local nor a multicast one."""
    try:
        address = ip_address(text)
    except ValueError:
        raise InvalidValue(f"{text!r} is not an address", hint="choose one of 10/8, 172.16/12 or 192.168/16") from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise InvalidValue(
            f"the API server cannot publish {text} as its endpoint", hint="choose one of 10/8, 172.16/12 or 192.168/16"
        )
    return address


def set_up_link(machine: Runner, address: IPv4Address | IPv6Address, name: str = DEFAULT_NAME) -> str:
    """Give the node the address and return what holds it: a kind of link. What is there already stays."""
    kind, link = "existing", name
    if machine.run(["ip", "link", "show", "dev", name], check=False).status != 0:
        kind, link = _add_link(machine, name)
    if link != LOOPBACK:
        _must(machine, ["ip", "link", "set", "dev", link, "up"])
    bits = address.max_prefixlen
    _must(machine, ["ip", "addr", "replace", f"{address}/{bits}", "dev", link, "scope", "host"])
    return kind


def _add_link(machine: Runner, name: str) -> tuple[str, str]:
    for kind in KINDS:
        if machine.run(["ip", "link", "add", "dev", name, "type", kind], check=False).status == 0:
            return kind, name
    return "loopback", LOOPBACK


def _must(machine: Runner, command: list[str]) -> None:
    ended = machine.run(command, check=False)
    if ended.status != 0:
        raise NotReady(
            f"`{' '.join(command)}` failed: {ended.stderr.strip()}",
            hint="run it as root, or with CAP_NET_ADMIN",
            error_class="network",
        )
