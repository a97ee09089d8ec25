"""Our ends and the stock ones in every combination: the same bytes, errors and recoveries."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from garboard.lab.binaries import Binaries
from tests.support.tunnel.clients import HttpTunnel, Refused, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.programs import Program, Programs, programs
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

pytestmark = pytest.mark.real

PAIRS = pytest.mark.parametrize(
    ("server_is", "agent_is"), [("ours", "stock"), ("stock", "ours"), ("ours", "ours")], ids=lambda value: value
)
MODES = pytest.mark.parametrize("mode", ["grpc", "http-connect"])
CONNECTIONS = 100


@pytest.fixture
def started(binaries: Binaries, certificates: Certificates, tmp_path: Path) -> Iterator[Programs]:
    with programs(binaries, certificates, tmp_path) as all_:
        yield all_


def pair(started: Programs, server_is: str, agent_is: str, mode: str, front: str) -> tuple[Program, Program]:
    server = started.server(server_is, mode, front)
    agent = started.agent(agent_is, server)
    agent.wait_for("/readyz")
    server.wait_for("/readyz")
    return server, agent


def with_echo(scenario: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with echo_server() as address, asyncio.timeout(240):
            await scenario(address)

    asyncio.run(run())


@pytest.mark.sampled(3)
@pytest.mark.alone
@PAIRS
@MODES
def test_bytes_come_back_whole(started: Programs, server_is: str, agent_is: str, mode: str, front: str) -> None:
    pair(started, server_is, agent_is, mode, front)

    async def scenario(address: str) -> None:
        tunnel = await open_tunnel(mode, front, address)
        await echo_checked(tunnel, 100_000_000)
        await tunnel.close()

        async def one(seed: int) -> None:
            tunnel = await open_tunnel(mode, front, address)
            await echo_checked(tunnel, 100_000, seed)
            await tunnel.close()

        await asyncio.gather(*(one(seed) for seed in range(CONNECTIONS)))

    with_echo(scenario)


@PAIRS
@MODES
def test_failed_dials_are_told(started: Programs, server_is: str, agent_is: str, mode: str, front: str) -> None:
    pair(started, server_is, agent_is, mode, front)
    closed = f"127.0.0.1:{free_ports(1)[0]}"

    async def scenario(address: str) -> None:
        with pytest.raises(Refused, match="connection refused"):
            await open_tunnel(mode, front, closed)
        tunnel = await open_tunnel(mode, front, address)
        await echo_checked(tunnel, 1000)
        await tunnel.close()

    with_echo(scenario)


@PAIRS
@MODES
def test_killed_agent_ends_connections_and_its_successor_serves(
    started: Programs, server_is: str, agent_is: str, mode: str, front: str
) -> None:
    server, agent = pair(started, server_is, agent_is, mode, front)

    async def first(address: str) -> None:
        tunnel = await open_tunnel(mode, front, address)
        await echo_checked(tunnel, 1000)
        agent.kill()
        assert await tunnel.read() == b""
        await tunnel.close()
        with pytest.raises(Refused):
            await open_tunnel(mode, front, address)

    with_echo(first)
    started.agent(agent_is, server).wait_for("/readyz")
    with_echo(lambda address: _exchange(mode, front, address))


@PAIRS
@MODES
def test_killed_server_comes_back_and_the_agent_finds_it(
    started: Programs, server_is: str, agent_is: str, mode: str, front: str
) -> None:
    server, agent = pair(started, server_is, agent_is, mode, front)
    with_echo(lambda address: _exchange(mode, front, address))
    server.kill()
    again = started.server(server_is, mode, front, port=server.port)
    again.wait_for("/readyz")
    agent.wait_for("/readyz")
    with_echo(lambda address: _exchange(mode, front, address))


@PAIRS
def test_agent_drains_at_the_first_signal_and_still_serves(
    started: Programs, server_is: str, agent_is: str, front: str
) -> None:
    _, agent = pair(started, server_is, agent_is, "grpc", front)
    agent.terminate()
    with_echo(lambda address: _exchange("grpc", front, address))
    agent.terminate()
    assert agent.process.wait(10) == 0


def test_stock_agent_hears_the_server_count(started: Programs, front: str) -> None:
    server = started.server("ours", "grpc", front, extra=("--server-count=2", "--server-id=one"))
    agent = started.agent("stock", server)
    agent.wait_for("/readyz")
    agent.wait_for("/metrics", "konnectivity_network_proxy_agent_known_server_count 2\n")


@pytest.mark.parametrize("agent_is", ["stock", "ours"])
def test_agents_find_every_worker_and_find_it_again_after_it_was_killed(
    started: Programs, front: str, agent_is: str
) -> None:
    extra = ("--workers=3", "--server-count=1", "--server-id=one")
    server = started.server("ours", "http-connect", front, extra=extra)
    agents = [started.agent(agent_is, server) for _ in range(2)]
    for _ in range(2):
        for agent in agents:
            agent.wait_for("/metrics", "konnectivity_network_proxy_agent_open_server_connections 3\n")
        [cluster] = server.status()["tenants"]
        assert [each["streams"] for each in cluster["agents"]] == [3, 3]
        with_echo(lambda address: _exchange("http-connect", front, address))
        victim = server.status()["workers"][1]
        os.kill(victim["pid"], signal.SIGKILL)
        server.wait_for("/metrics", f"worker_restarts_total {victim['restarts'] + 1}\n")
        with_echo(lambda address: _exchange("http-connect", front, address))
    assert b"Traceback" not in server.log.read_bytes()


ALL_PAIRS = pytest.mark.parametrize(
    ("server_is", "agent_is"),
    [("stock", "stock"), ("ours", "stock"), ("stock", "ours"), ("ours", "ours")],
    ids=lambda value: value,
)


@ALL_PAIRS
def test_client_that_sends_no_more_closes_both_directions(
    started: Programs, server_is: str, agent_is: str, front: str
) -> None:
    """Half of a connection cannot be told in packets: no pair delivers what the endpoint answers afterwards."""
    pair(started, server_is, agent_is, "http-connect", front)
    heard: list[bytes] = []

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        await asyncio.sleep(1)
        with contextlib.suppress(OSError):
            writer.write(b"late")
            await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(answer_late, "127.0.0.1", 0) as server, asyncio.timeout(60):
            port = server.sockets[0].getsockname()[1]
            tunnel = await HttpTunnel.open(front, f"127.0.0.1:{port}")
            await tunnel.write(b"question")
            await asyncio.sleep(0.5)  # stock agents may lose what comes right before the end
            tunnel.send_eof()
            assert await tunnel.read() == b""
            await tunnel.close()
            await asyncio.sleep(1.5)

    asyncio.run(scenario())
    assert heard == [b"question"]


@ALL_PAIRS
def test_endpoint_that_sends_no_more_closes_both_directions(
    started: Programs, server_is: str, agent_is: str, front: str
) -> None:
    pair(started, server_is, agent_is, "http-connect", front)
    heard: list[bytes] = []

    async def say_and_listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(5)
        writer.write(b"answer")
        writer.write_eof()
        with contextlib.suppress(OSError):
            heard.append(await reader.read())
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(say_and_listen, "127.0.0.1", 0) as server, asyncio.timeout(60):
            tunnel = await HttpTunnel.open(front, f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
            await tunnel.write(b"first")
            assert await tunnel.read() == b"answer"
            assert await tunnel.read() == b""
            with contextlib.suppress(OSError):
                await tunnel.write(b"more")
            await tunnel.close()
            await asyncio.sleep(0.5)

    asyncio.run(scenario())
    assert heard in ([b""], [])  # an end, or a reset: never what the client said afterwards


async def _exchange(mode: str, front: str, address: str) -> None:
    tunnel = await open_tunnel(mode, front, address)
    await echo_checked(tunnel, 50_000)
    await tunnel.close()
