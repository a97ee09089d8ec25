import re
import socket
from ipaddress import ip_address, ip_interface
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import facts
from garboard.host.facts import MachineFacts
from garboard.host.root import inside

ROUTES_V4 = """\
Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
{name} 000A0A0A 00000000 0001 0 0 0 00FFFFFF 0 0 0
{name} 00000000 0100000A 0003 0 0 0 00000000 0 0 0
"""


def test_tokens_are_fresh_and_well_formed() -> None:
    tokens = {MachineFacts().new_token() for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token) for token in tokens)


def test_the_name_is_the_kernels() -> None:
    assert MachineFacts().hostname() == socket.gethostname()


def test_interface_addresses_include_the_loopback() -> None:
    assert ("lo", ip_address("127.0.0.1")) in [*facts._interface_addresses()]


def test_addresses_have_the_networks_that_they_are_in() -> None:
    assert ("lo", ip_interface("127.0.0.1/8")) in [*facts.interface_networks()]


def test_the_address_is_that_of_the_default_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "route").write_text(ROUTES_V4.format(name="eth7"))
    monkeypatch.setattr(facts, "_ROUTES_V4", tmp_path / "route")
    monkeypatch.setattr(facts, "_ROUTES_V6", tmp_path / "none")
    addresses = [("eth6", "10.0.0.6"), ("eth7", "169.254.0.1"), ("eth7", "fd00::7"), ("eth7", "10.0.0.7")]
    monkeypatch.setattr(facts, "_interface_addresses", lambda: [(name, ip_address(text)) for name, text in addresses])
    assert MachineFacts().default_address(prefer_ipv6=False) == "10.0.0.7"
    assert MachineFacts().default_address(prefer_ipv6=True) == "10.0.0.7"


def test_without_a_default_route_there_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_ROUTES_V4", tmp_path / "none")
    monkeypatch.setattr(facts, "_ROUTES_V6", tmp_path / "none")
    assert MachineFacts().default_address(prefer_ipv6=False) is None


def test_a_socket_counts_only_if_somebody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live, dead = tmp_path / "live.sock", tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as bound:
        listening.bind(str(live))
        listening.listen()
        bound.bind(str(dead))
        monkeypatch.setattr(facts, "KNOWN_CRI_SOCKETS", (f"unix://{live}", f"unix://{dead}", "unix:///no/such.sock"))
        assert MachineFacts().cri_sockets() == (f"unix://{live}",)


@pytest.mark.parametrize("name", ["", "a\0b", "/no/such/file"])
def test_a_name_that_is_none_or_impossible_is_no_file(name: str) -> None:
    assert not MachineFacts().has_file(name)


def test_socket_is_looked_for_below_a_changed_root(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "circle").symlink_to("circle")
    url = "unix:///var/run/c.sock"
    with inside(str(tmp_path)):
        assert facts.socket_address(url) == f"unix://{tmp_path}/run/c.sock/"  # nothing is there
        assert facts.socket_address("") == ""
        with pytest.raises(GarboardError, match="cannot find unix:///circle/x"):
            facts.socket_address("unix:///circle/x")
        assert not MachineFacts().has_listener("unix:///circle/x")
    assert facts.socket_address(url) == url


def test_socket_below_a_changed_root_is_the_one_that_was_found_whatever_takes_its_place(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside.sock"
    (root / "run").mkdir(parents=True)
    (root / "run/out.sock").symlink_to(outside)
    with socket.socket(socket.AF_UNIX) as ours, socket.socket(socket.AF_UNIX) as others:
        for server, path in ((ours, root / "run/c.sock"), (others, outside)):
            server.bind(str(path))
            server.listen()
        with inside(str(root)):
            address, missing = (facts.socket_address(f"unix:///run/{name}.sock") for name in ("c", "none"))
            assert MachineFacts().has_listener("unix:///run/c.sock")
            assert not MachineFacts().has_listener("unix:///run/out.sock")
        (root / "run/c.sock").unlink()
        for name in ("c", "none"):
            (root / f"run/{name}.sock").symlink_to(outside)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address.removeprefix("unix://"))
            ours.accept()[0].close()
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(OSError, match="Not a directory"):
            client.connect(missing.removeprefix("unix://"))
