"""An agent and several servers behind one address."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garboard.tunnel.agent import pool as agent_pool
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.wire import capabilities
from tests.support.tunnel.balancer import Balancer, balance
from tests.support.tunnel.ends import agent_options, server_options, until
from tools.harness.certificates import Certificates


@contextlib.asynccontextmanager
async def serving(options: ServerOptions, identity: ServerIdentity) -> AsyncIterator[ProxyServer]:
    """A server that calls itself so."""
    async with serve(options) as server:
        server.clusters[0]._identity = server.identity = identity
        yield server


@contextlib.asynccontextmanager
async def worker(certificates: Certificates, front: str, number: int, workers: int) -> AsyncIterator[ProxyServer]:
    """One of the workers of server s1, all of which run."""
    options = replace(server_options(certificates, f"{front}{number}", "grpc"), server_id=f"s1-{number}")
    identity = ServerIdentity(options.server_id, workers, server="s1", workers=workers)
    identity.present = tuple(f"s1-{each}" for each in range(workers))
    async with serving(options, identity) as server:
        yield server


@contextlib.asynccontextmanager
async def behind_one_address(
    certificates: Certificates, front: str, count: int
) -> AsyncIterator[tuple[list[ProxyServer], Balancer, Agent]]:
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(worker(certificates, front, each, count)) for each in range(count)]
        balancer = await stack.enter_async_context(balance(*(each.agent_port for each in servers)))
        agent = await stack.enter_async_context(run_agent(agent_options(certificates, balancer.port)))
        yield servers, balancer, agent


def test_agent_dials_its_address_until_the_announced_count_is_met(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with behind_one_address(certificates, front, 4) as (_, balancer, agent):
            await until(lambda: agent.pool.streams.keys() == {f"s1-{each}" for each in range(4)})
            assert balancer.connections == 4

    asyncio.run(scenario())


def test_each_address_of_a_list_is_dialled_until_the_announced_count_is_met(
    certificates: Certificates, front: str
) -> None:
    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as stack:
            fronts = []
            for server in ("one", "two"):
                identities = [ServerIdentity(f"{server}-{each}", 4, server=server, workers=2) for each in range(2)]
                ports = []
                for identity in identities:
                    identity.present = tuple(each.server_id for each in identities)
                    options = replace(
                        server_options(certificates, f"{front}{identity.server_id}", "grpc"),
                        server_id=identity.server_id,
                    )
                    ports.append((await stack.enter_async_context(serving(options, identity))).agent_port)
                fronts.append(await stack.enter_async_context(balance(*ports)))
            hosts = ",".join(f"127.0.0.1:{each.port}" for each in fronts)
            node = replace(agent_options(certificates, 1), proxy_server_host=hosts)
            agent = await stack.enter_async_context(run_agent(node))
            await until(lambda: agent.pool.streams.keys() == {"one-0", "one-1", "two-0", "two-1"})

    asyncio.run(scenario())


def test_worker_that_is_away_is_asked_for_and_not_dialled(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with behind_one_address(certificates, front, 2) as (servers, balancer, agent):
            await until(lambda: len(agent.pool.streams) == 2)
            servers[0].identity.present = ("s1-0",)
            for link in tuple(servers[1].agents.links):
                link.close("it is away")
            balancer.ports = [servers[0].agent_port]
            await until(lambda: agent.pool.streams.keys() == {"s1-0"})
            before, packets = balancer.connections, asked(servers[0])
            await until(lambda: asked(servers[0]) >= packets + 4)
            assert balancer.connections <= before + 1  # one may have begun before the server was asked
            servers[0].identity.present = ("s1-0", "s1-1")
            balancer.ports = [each.agent_port for each in servers]
            await until(lambda: len(agent.pool.streams) == 2)

    asyncio.run(scenario())


def asked(server: ProxyServer) -> int:
    return server.proxy.packets.of("from_agent", "SERVERS_REQ").value


def test_count_that_grows_is_heard_on_a_stream_that_is_there(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_pool, "ASK_EVERY_S", 0.05)

    async def scenario() -> None:
        async with behind_one_address(certificates, front, 1) as (servers, balancer, agent):
            await until(lambda: asked(servers[0]) >= 3)
            assert (agent.pool.server_count, balancer.connections) == (1, 1)
            async with worker(certificates, front, 7, 2) as another:
                balancer.ports.append(another.agent_port)
                servers[0].identity.server_count = 2
                await until(lambda: agent.pool.streams.keys() == {"s1-0", "s1-7"})

    asyncio.run(scenario())


def test_servers_that_tell_nothing_are_dialled_with_growing_pauses(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the stock ones are: of two that are announced, one is never there."""
    monkeypatch.setattr(capabilities, "_features", lambda: f"reverse=1,credit={capabilities.WINDOW_BYTES}")

    async def scenario() -> None:
        options = replace(server_options(certificates, front, "grpc"), server_count=2)
        async with serve(options) as server, balance(server.agent_port) as balancer:
            slow = replace(agent_options(certificates, balancer.port), sync_interval_cap_s=60.0)
            async with run_agent(slow):
                await until(lambda: balancer.connections >= 7)  # one, then three times two in haste
                assert asked(server) == 0
                began = asyncio.get_running_loop().time()
                await until(lambda: balancer.connections >= 12)
                assert asyncio.get_running_loop().time() - began > 0.05 * (1 + 1.5 + 1.5**2 + 1.5**3)

    asyncio.run(scenario())


def test_server_that_ends_streams_at_once_is_not_dialled_in_haste(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with serve(replace(server_options(certificates, front, "grpc"), server_count=2)) as server:
            slow = replace(agent_options(certificates, server.agent_port), sync_interval_s=0.5, sync_interval_cap_s=2.0)
            async with run_agent(slow):
                seen: list[float] = []
                for _ in range(4):
                    await until(lambda: server.agents.links)
                    seen.append(asyncio.get_running_loop().time())
                    for link in tuple(server.agents.links):
                        link.abort("not today")
                    await until(lambda: not server.agents.links)
                assert all(after - before > 0.3 for before, after in itertools.pairwise(seen))

    asyncio.run(scenario())


def test_questions_in_a_flood_are_answered_a_few_times_only(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with behind_one_address(certificates, front, 1) as (servers, _, agent):
            await until(lambda: agent.pool.streams)
            [stream] = agent.pool.streams.values()
            before = asked(servers[0])
            for _ in range(1000):
                stream.ask_for_servers()
            await until(lambda: asked(servers[0]) >= before + 1000)  # the agent asks by itself as well
            assert servers[0].proxy.packets.of("to_agent", "SERVERS_RSP").value < 100

    asyncio.run(scenario())
