"""Silent peers on the agents' port, by the hundred: others are served, and nothing stays of them."""

import asyncio
import contextlib
import resource
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from garboard.cli.tunnel import daemon
from garboard.rpc import TcpTarget, client_tls
from garboard.rpc.aio import AioClient
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.accepting import PeerSlots, Slot, TlsListener
from garboard.tunnel.server.run import serve
from garboard.tunnel.tls import KeyPair, ListenerKeys, TlsPolicy
from tests.support.tunnel.ends import agent_options, fetch, server_options, until
from tests.support.tunnel.programs import OURS
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

LOCAL = "127.0.0.1"


def test_slots_are_bounded_for_an_address_and_in_all() -> None:
    slots = PeerSlots(3, 2)
    first, second = slots.take("a"), slots.take("a")
    assert first is not None
    assert second is not None
    assert slots.take("a") is None
    assert not slots.is_full
    assert slots.take("b") is not None
    assert slots.is_full
    first.release()
    first.release()
    assert slots.count == 2
    assert slots.take("a") is not None


@contextlib.contextmanager
def silent_peers(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections that never send a byte."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(socket.socket()) for _ in range(count)]
        for peer in peers:
            peer.connect((LOCAL, port))
        yield peers


def test_address_with_too_many_silent_connections_is_refused_more_and_the_agents_of_others_come_in(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("garboard.tunnel.server.accepting.UNPROVEN_PER_ADDRESS", 20)

    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            assert server._listener is not None
            with silent_peers(server.agent_port, 50):
                await until(lambda: server._listener is not None and server._listener.refused == 30)
                assert server._listener._slots.count == 20
            await until(lambda: server._listener is not None and not server._listener._slots.count)
            async with run_agent(agent_options(certificates, server.agent_port)):
                await until(lambda: server.proxy.streams)
                assert server._listener._slots.count == 0  # it has shown who it is

    asyncio.run(scenario())
    assert [each for each in caplog.messages if each.startswith("accept.refused from=127.0.0.1 ")]


def test_port_pauses_while_too_many_peers_are_silent_and_goes_on_afterwards(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("garboard.tunnel.server.accepting.UNPROVEN", 20)
    monkeypatch.setattr("garboard.tunnel.server.accepting.PAUSE_S", 0.05)

    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            with silent_peers(server.agent_port, 50):
                await until(lambda: any(each.startswith("accept.paused ") for each in caplog.messages))
                assert await fetch(server.health_port, "/healthz") == (200, "ok")
            async with run_agent(agent_options(certificates, server.agent_port)):
                await until(lambda: server.proxy.streams)

    asyncio.run(scenario())


def test_peer_that_proves_who_it_is_and_makes_no_call_is_let_go(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.tunnel.server.grpc_port.FIRST_CALL_S", 0.2)

    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
            client = await AioClient.connect(TcpTarget(LOCAL, server.agent_port, tls))
            await asyncio.wait_for(client.link.lost, 10)
            assert not server.agents.links

    asyncio.run(scenario())


def test_silent_requests_do_not_keep_a_probe_out(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            with silent_peers(server.health_port, 90) as peers:
                await until(lambda: len(select.select(peers, (), (), 0)[0]) >= 40)  # their connections have ended
                assert await fetch(server.health_port, "/healthz") == (200, "ok")

    asyncio.run(scenario())


def test_limit_of_descriptors_is_raised_as_far_as_it_goes() -> None:
    program = (
        "import resource; from garboard.cli.tunnel import daemon;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 777));"
        "daemon._raise_descriptor_limit(); print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "(777, 777)\n"
    assert daemon.MOST_DESCRIPTORS >= 1_000_000


@pytest.fixture
def small_server(certificates: Certificates, front: str, tmp_path: Path) -> Iterator[tuple[int, int, Path]]:
    """A server that may have 256 descriptors, if it asks for them: its ports for agents and probes, and its log."""
    agents, health, admin = free_ports(3)
    log = tmp_path / "log"
    command = [
        *OURS, "server", f"--uds-name={front}", "--server-port=0",
        "--mode=http-connect", f"--cluster-cert={certificates.server}", f"--cluster-key={certificates.server_key}",
        f"--cluster-ca-cert={certificates.ca}", f"--agent-bind-address={LOCAL}", f"--agent-port={agents}",
        f"--health-bind-address={LOCAL}", f"--health-port={health}", f"--admin-port={admin}",
    ]  # fmt: skip
    limit = (100, 256)
    with log.open("wb") as into:
        process = subprocess.Popen(
            command, stderr=into, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        )
    try:
        yield agents, health, log
    finally:
        process.terminate()
        process.wait(30)


def wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while text not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def test_six_hundred_silent_peers_stop_neither_the_front_end_nor_probes(
    small_server: tuple[int, int, Path], front: str
) -> None:
    agents, health, log = small_server
    wait_for(log, "server.listening")
    with silent_peers(agents, 600):
        wait_for(log, "accept.paused")
        for _ in range(20):
            probe = HTTPConnection(LOCAL, health, timeout=30)
            probe.request("GET", "/healthz")
            assert probe.getresponse().status == 200
            probe.close()
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(front)
                client.sendall(b"CONNECT 10.0.0.1:1 HTTP/1.1\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 500 ")
    assert "few of the 256 descriptors are left" in log.read_text()  # the limit was raised


def test_connections_in_the_queue_of_a_shared_port_are_not_lost_when_it_closes(certificates: Certificates) -> None:
    """The kernel gave them to this worker: the others never see them."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        keys = ListenerKeys(KeyPair(certificates.server, certificates.server_key), TlsPolicy())
        accepted: list[asyncio.Protocol] = []

        def accept(slot: Slot) -> asyncio.Protocol:
            slot.release()
            accepted.append(asyncio.Protocol())
            return accepted[-1]

        listener = TlsListener(accept, {"ssl": keys.context}, leaves=4)
        await listener.listen(LOCAL, 0, is_shared=True)
        port = listener.port
        clients = [socket.socket() for _ in range(5)]
        for client in clients:  # without a turn of the loop in between
            client.connect((LOCAL, port))
        listener.drain()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(LOCAL, port)
        context = client_tls(certificates.ca, certificate=None, key=None)
        for client in clients:
            client.setblocking(False)
            transport, _ = await loop.create_connection(
                asyncio.Protocol, sock=client, ssl=context, server_hostname="localhost"
            )
            transport.close()
        await until(lambda: len(accepted) == 5)

    asyncio.run(scenario())
