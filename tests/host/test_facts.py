import re
import socket
from ipaddress import ip_address
from pathlib import Path

import pytest

from garboard.host import facts
from garboard.host.facts import MachineFacts

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
