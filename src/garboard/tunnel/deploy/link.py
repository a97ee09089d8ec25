"""The address, the same on every node, where the agent listens in place of the API server."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Protocol

from garboard.errors import NotReady
from garboard.model.tunnel import DEFAULT_LINK

LOOPBACK: Final = "lo"
# The first that the kernel has. A bridge without ports serves as well as a dummy link; the loopback link always does.
KINDS: Final = ("dummy", "bridge")


class Ended(Protocol):
    """A process that has ended."""

    @property
    def status(self) -> int: ...

    @property
    def stdout(self) -> str: ...

    @property
    def stderr(self) -> str: ...


class Runner(Protocol):
    """Runs a program to its end."""

    def run(self, command: Sequence[str], *, check: bool) -> Ended: ...


def set_up_link(machine: Runner, address: IPv4Address | IPv6Address, name: str = DEFAULT_LINK) -> str:
    """Give the node the address and return what holds it: a kind of link. What is there already stays."""
    kind, link = "existing", name
    if machine.run(["ip", "link", "show", "dev", name], check=False).status != 0:
        kind, link = _add_link(machine, name)
    if link != LOOPBACK:
        _must(machine, ["ip", "link", "set", "dev", link, "up"])
    bits = address.max_prefixlen
    _must(machine, ["ip", "addr", "replace", f"{address}/{bits}", "dev", link, "scope", "host"])
    return kind


def take_down_link(machine: Runner, address: IPv4Address | IPv6Address, name: str = DEFAULT_LINK) -> None:
    """Take the address from the node, and the link if it held no other; what is not there is no failure."""
    own = f"{address}/{address.max_prefixlen}"
    for link in (name, LOOPBACK):
        if machine.run(["ip", "-o", "addr", "show", "dev", link, "to", own], check=False).stdout.strip():
            _must(machine, ["ip", "addr", "delete", own, "dev", link])
    left = machine.run(["ip", "-o", "addr", "show", "dev", name], check=False)
    # The kernel gives every link an address of its own.
    if left.status == 0 and all(" scope link" in line for line in left.stdout.splitlines()):
        _must(machine, ["ip", "link", "delete", "dev", name])


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
