"""The address of the agent on a node, with kernels that have less and less."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from garboard.errors import NotReady
from garboard.tunnel.deploy.link import set_up_link, take_down_link

ADDRESS = ip_address("10.255.0.1")


@dataclass
class Ended:
    status: int
    stderr: str = ""
    stdout: str = ""


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
            case ["ip", "link", "delete", "dev", name]:
                self.links.discard(name)
                self.addresses.pop(name, None)
                return Ended(0)
            case ["ip", "-o", "addr", "show", "dev", name, *wanted]:
                found = self.addresses.get(name, "")
                is_shown = bool(found) and wanted in ([], ["to", found])
                of_kernel = "" if wanted else "inet6 fe80::1/64 scope link\n"
                shown = f"{of_kernel}inet {found} scope host\n" if is_shown else of_kernel
                return Ended(0, stdout=shown) if name in self.links or name == "lo" else Ended(1)
            case ["ip", "addr", "delete", address, "dev", name]:
                return Ended(0 if self.addresses.pop(name, None) == address else 2)
            case _:
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


@pytest.mark.parametrize("kinds", [("dummy",), ()])
def test_what_was_set_up_is_taken_down_and_doing_that_again_is_no_failure(kinds: tuple[str, ...]) -> None:
    kernel = Kernel(kinds)
    set_up_link(kernel, ADDRESS, "k0")
    for _ in range(2):
        take_down_link(kernel, ADDRESS, "k0")
        assert (kernel.links, kernel.addresses) == (set(), {})


def test_link_that_holds_another_address_stays() -> None:
    kernel = Kernel(("dummy",))
    set_up_link(kernel, ip_address("10.254.0.1"), "k0")
    take_down_link(kernel, ADDRESS, "k0")
    assert kernel.addresses == {"k0": "10.254.0.1/32"}


def test_lack_of_rights_is_told() -> None:
    with pytest.raises(NotReady, match="Operation not permitted"):
        set_up_link(Kernel(is_forbidden=True), ADDRESS, "k0")
