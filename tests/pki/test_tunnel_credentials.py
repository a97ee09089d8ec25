"""The credentials of an agent, as `tunnel certs` makes them, and everything that may be wrong with them."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache

import pytest

from garboard.errors import NotReady
from garboard.pki.files import write_files
from garboard.pki.tunnel_credentials import read_agent_credentials
from garboard.tunnel.deploy.certificates import plan_certificates, tunnel_certificates
from tests.support.pki.fixtures import KEYS, NOW, MemoryFolder

Files = dict[str, bytes]


@cache
def made(name: str = "", seed: int = 0) -> tuple[tuple[str, bytes], ...]:
    folder = MemoryFolder()
    write_files(folder, plan_certificates(tunnel_certificates(["k.example"], [name]), folder, KEYS, NOW))
    return tuple(folder.files.items())


def folder(**changes: bytes) -> MemoryFolder:
    return MemoryFolder({**dict(made()), **changes}, prefix="/root/tunnel")


def test_shared_pair_is_found_with_its_paths() -> None:
    found = read_agent_credentials(folder(), "node-2", NOW)
    assert found.paths == ("/root/tunnel/ca.crt", "/root/tunnel/agent.crt", "/root/tunnel/agent.key")
    assert (found.ca, found.certificate, found.key) == tuple(
        dict(made())[name] for name in ("ca.crt", "agent.crt", "agent.key")
    )
    assert "PRIVATE KEY" not in repr(found)


def test_pair_of_the_node_itself_comes_before_the_shared_one() -> None:
    both = MemoryFolder(dict(made("node-2")), prefix="/root/tunnel")
    both.files |= {name: dict(made())[name] for name in ("agent.crt", "agent.key")}
    assert read_agent_credentials(both, "node-2", NOW).paths[1] == "/root/tunnel/agent-node-2.crt"


def without(name: str) -> Callable[[Files], None]:
    return lambda files: files.__delitem__(name)


def other(name: str) -> Callable[[Files], None]:
    return lambda files: files.update({name: dict(made(seed=1))[name]})


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(without("ca.crt"), "there is no /root/tunnel/ca.crt", id="no authority"),
        pytest.param(without("agent.key"), "there is no /root/tunnel/agent.key", id="no key"),
        pytest.param(other("agent.key"), "agent.key is not the key of agent.crt", id="the key of another"),
        pytest.param(other("ca.crt"), "agent.crt is not of the authority ca.crt", id="another authority"),
        pytest.param(
            lambda files: files.update({"agent.crt": b"nothing"}), "agent.crt: no valid certificate in it", id="no PEM"
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(spoil: Callable[[Files], None], said: str) -> None:
    spoilt = folder()
    spoil(spoilt.files)
    with pytest.raises(NotReady) as caught:
        read_agent_credentials(spoilt, "node-2", NOW)
    assert said in caught.value.message
    assert "nothing has been changed" in caught.value.message
    assert caught.value.error_class == "tunnel-credentials"
    assert "garboard tunnel certs -o DIR --server-name HOST --agent node-2" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        pytest.param(timedelta(days=400), "agent.crt: the certificate has expired", id="a year later"),
        pytest.param(timedelta(days=-1), "agent.crt: the certificate is not valid yet", id="the day before"),
    ],
)
def test_certificate_is_valid_now(passed: timedelta, said: str) -> None:
    with pytest.raises(NotReady) as caught:
        read_agent_credentials(folder(), "node-2", NOW + passed)
    assert said in caught.value.message


def test_all_that_is_missing_is_told_at_once() -> None:
    with pytest.raises(NotReady) as caught:
        read_agent_credentials(MemoryFolder(prefix="/root/tunnel"), "node-2", NOW)
    assert caught.value.message.count("there is no") == 3
