"""The address of the agent on a node, with kernels that have less and less."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from garboard.errors import InvalidValue, NotReady
from garboard.tunnel.deploy.link import parse_bind_address, set_up_link

ADDRESS = ip_address("10.255.0.1")


@dataclass
class Ended:
    status: int
    stderr: str = ""


@dataclass
class Kernel:
    """Knows some kinds of links, and remembers what it was asked."""

    kinds: tuple[str, ...] = ()
    links: set[str] = field(default_factory=set)
    addresses: dict[str, str] = field(default_factory=dict)
    is_forbidden: bool = False

    def run(self, command: Sequence[str], *, check: bool) -> Ended:
        match list(command):
            case ["ip", "link", "show", "dev", name]:
                return Ended(0 if name in self.links else 1)
            case ["ip", "link", "add", "dev", name, "type", kind]:
                if kind in self.kinds and not self.is_forbidden:
                    self.links.add(name)
                    return Ended(0)
                return Ended(2, "Error: Unknown device type.")
            case ["ip", "addr", "replace", address, "dev", name, "scope", "host"] if not self.is_forbidden:
                self.addresses[name] = address
                return Ended(0)
            case ["ip", "link", "set", "dev", name, "up"]:
                return Ended(0 if name in self.links else 1)
        return Ended(2, "RTNETLINK answers: Operation not permitted")


@pytest.mark.parametrize(
    ("kinds", "kind", "holder"),
    [(("dummy", "bridge"), "dummy", "k0"), (("bridge",), "bridge", "k0"), ((), "loopback", "lo")],
)
def test_best_kind_of_link_holds_the_address(kinds: tuple[str, ...], kind: str, holder: str) -> None:
    kernel = Kernel(kinds)
    assert set_up_link(kernel, ADDRESS, "k0") == kind
    assert kernel.addresses == {holder: "10.255.0.1/32"}


def test_doing_it_again_changes_nothing() -> None:
    kernel = Kernel(("dummy",))
    set_up_link(kernel, ADDRESS, "k0")
    assert set_up_link(kernel, ADDRESS, "k0") == "existing"
    assert kernel.links == {"k0"}


def test_lack_of_rights_is_told() -> None:
    with pytest.raises(NotReady, match="Operation not permitted"):
        set_up_link(Kernel(is_forbidden=True), ADDRESS, "k0")


@pytest.mark.parametrize("text", ["127.0.0.1", "169.254.1.1", "fe80::1", "224.0.0.1", "0.0.0.0", "api.test", ""])
def test_address_that_no_service_leads_to_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_bind_address(text)
