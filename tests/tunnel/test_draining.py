"""A server that stops: connections of nodes go to others, those that are open may finish."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.destinations import AllowList, NodeTarget
from garboard.tunnel.server.run import ProxyServer, serve
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.support.tunnel.ends import agent_options, server_options, until
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

LOCAL = "127.0.0.1"


@contextlib.asynccontextmanager
async def node_with_servers(
    certificates: Certificates, front: str, destination: str, count: int
) -> AsyncIterator[tuple[list[ProxyServer], Agent, int]]:
    """Servers that wait for open connections when they stop, an agent at all of them, and its port."""
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for number in range(count):
            side = replace(
                server_options(certificates, f"{front}{number}", "http-connect"),
                server_id=f"s{number}", allowed=AllowList.parse([destination]), graceful_shutdown_s=60.0,
            )  # fmt: skip
            servers.append(await stack.enter_async_context(serve(side)))
        [port] = free_ports(1)
        node = replace(
            agent_options(certificates, 1),
            proxy_server_host=",".join(f"{LOCAL}:{each.agent_port}" for each in servers),
            targets=(NodeTarget.parse(f"{port}:{destination}"),), bind_address=LOCAL,
        )  # fmt: skip
        agent = await stack.enter_async_context(run_agent(node))
        await until(lambda: len(agent.ports.servers.backends) == count and agent.ports._listening)
        yield servers, agent, port


async def open_connection(port: int) -> HttpTunnel:
    tunnel = HttpTunnel(*await asyncio.open_connection(LOCAL, port))
    await echo_checked(tunnel, 1000)
    return tunnel


def test_connections_of_nodes_go_to_other_servers_once_one_stops(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with (
            echo_server() as address,
            node_with_servers(certificates, front, address, 2) as (servers, agent, port),
        ):
            before = [await open_connection(port) for _ in range(2)]
            assert [each.proxy.reverse.open for each in servers] == [1, 1]
            stopping = asyncio.create_task(servers[0].stop())
            await until(lambda: any(each.is_draining for each in agent.ports.servers.backends))
            after = [await open_connection(port) for _ in range(5)]  # although the other is busier by now
            assert [each.proxy.reverse.open for each in servers] == [1, 6]
            await echo_checked(before[0], 1000)
            await echo_checked(before[1], 1000)
            for tunnel in (*before, *after):
                await tunnel.close()
            assert await stopping == 0

    asyncio.run(scenario())


def test_connection_that_crosses_the_word_of_a_stopping_server_goes_to_another(
    certificates: Certificates, front: str
) -> None:
    async def scenario() -> None:
        async with (
            echo_server() as address,
            node_with_servers(certificates, front, address, 2) as (servers, agent, port),
        ):
            waiting = [await open_connection(port) for _ in range(2)]
            stopping = asyncio.create_task(servers[0].stop())
            await until(lambda: any(each.is_draining for each in agent.ports.servers.backends))
            [told] = [each for each in agent.ports.servers.backends if each.is_draining]
            for _ in range(3):
                told.is_draining = False  # as if it had not come yet
                waiting.append(await open_connection(port))
            assert [each.proxy.reverse.open for each in servers] == [1, 4]
            assert servers[0].proxy.reverse.denials.of("stopping").value > 0
            for tunnel in waiting:
                await tunnel.close()
            assert await stopping == 0

    asyncio.run(scenario())


def test_agent_that_comes_while_its_server_stops_is_told(certificates: Certificates, front: str) -> None:
    """Its handshake, or the review of its token, was under way."""

    async def scenario() -> None:
        async with echo_server() as address:
            side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse([address]))
            async with serve(side) as server:
                server.proxy.drain()
                node = replace(
                    agent_options(certificates, server.agent_port),
                    targets=(NodeTarget.parse(f"{free_ports(1)[0]}:{address}"),), bind_address=LOCAL,
                )  # fmt: skip
                async with run_agent(node) as agent:
                    await until(lambda: any(each.is_draining for each in agent.ports.servers.backends))

    asyncio.run(scenario())


def test_server_that_stops_dials_nothing_more_for_nodes(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with echo_server() as address, node_with_servers(certificates, front, address, 1) as ([server], _, port):
            open_before = await open_connection(port)
            stopping = asyncio.create_task(server.stop())
            await until(lambda: server.proxy.is_draining)
            reader, writer = await asyncio.open_connection(LOCAL, port)
            try:
                assert not await reader.read(1)
            except ConnectionResetError:
                pass
            else:
                raise AssertionError("a connection that was refused must be reset")
            writer.close()
            assert server.proxy.reverse.denials.of("stopping").value == 1
            await echo_checked(open_before, 1000)
            await open_before.close()
            assert await stopping == 0

    asyncio.run(scenario())
