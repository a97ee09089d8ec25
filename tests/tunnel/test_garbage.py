"""What is over is freed at once: the programs look for cycles rarely, and what waits for that looks like a leak."""

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.server.run import ProxyServer, serve
from tests.support.tunnel.clients import echo_server, open_tunnel
from tests.support.tunnel.ends import agent_options, both_ends, server_options, until
from tools.harness.certificates import Certificates

TIMES = 5
OF_A_LINK = {
    "AioLink", "PortLink", "ServerEndpoint", "ClientEndpoint", "Connection", "Receiver", "Outbox", "ServerCall",
    "ClientCall", "AgentStream", "ServerStream", "AgentBackend", "Dialer", "PipeSender",
}  # fmt: skip


@contextlib.contextmanager
def counted_garbage() -> Iterator[Counter[str]]:
    """The classes of what the context made and left, when it ends, for a look for cycles to free."""
    found: Counter[str] = Counter()
    gc.collect()
    # What is there already may be an earlier test's, whose last reference ends at any moment: it is not looked at.
    gc.freeze()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(type(each).__name__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def test_cycle_made_in_the_context_is_counted_and_an_older_one_is_not() -> None:
    class Older:
        pass

    class Newer:
        pass

    older: Any = Older()
    older.itself = older
    with counted_garbage() as found:
        newer: Any = Newer()
        newer.itself = newer
        del older, newer
    assert found["Newer"] == 1
    assert found["Older"] == 0


def is_over(server: ProxyServer, agent: Agent) -> bool:
    """Whether no connection is left at either end, nor a client's link."""
    links = server.clusters[0].frontend_port.links
    return not (server.proxy.open_connections or agent.pool.open_endpoints or links)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """On the loop of the programs: what a loop keeps differs."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario)


@pytest.mark.parametrize("mode", ["http-connect", "grpc"])
def test_connection_that_is_over_leaves_nothing_to_the_garbage_collector(
    certificates: Certificates, front: str, mode: str
) -> None:
    async def one_connection(address: str) -> None:
        tunnel = await open_tunnel(mode, front, address)
        await tunnel.write(b"x")
        assert await tunnel.read() == b"x"
        await tunnel.close()

    async def scenario() -> None:
        async with both_ends(certificates, front, mode) as (server, agent), echo_server() as address:
            with counted_garbage() as found:
                for _ in range(TIMES):
                    await one_connection(address)
                await until(lambda: is_over(server, agent))
            assert found == {}

    run(scenario())


def test_link_that_is_lost_leaves_nothing_of_it_to_the_garbage_collector(
    certificates: Certificates, front: str
) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "grpc")) as server:
            with counted_garbage() as found:
                for _ in range(TIMES):
                    async with run_agent(agent_options(certificates, server.agent_port)):
                        await until(lambda: server.proxy.streams)
                    await until(lambda: not server.agents.links)
            assert not OF_A_LINK & found.keys()

    run(scenario())
