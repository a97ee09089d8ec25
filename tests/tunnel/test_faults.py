"""Links that are cut, peers that fall silent or lie, connections by the thousand: nothing is left, no byte is wrong."""

import asyncio
import contextlib
import gc
import random
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.rpc import KeepaliveConfig, RpcFailed, TcpTarget, UnixTarget, client_tls, server_tls
from garboard.rpc.aio import AioClient, AioLink, AioServerCall
from garboard.rpc.aio import serve as serve_rpc
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.destinations import AllowList, NodeTarget
from garboard.tunnel.server.agent_stream import AgentStream
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.tls import KeyPair
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import WINDOW_BYTES, answer, offer
from garboard.tunnel.wire.packets import encode_packet
from garboard.tunnel.wire.sockets import SocketEnd
from tests.support.tunnel.clients import HttpTunnel, Refused, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.ends import agent_options, both_ends, fetch, server_options, until
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

LOCAL = "127.0.0.1"


class Cable:
    """A link that can be cut, healed, and made to swallow everything."""

    def __init__(self) -> None:
        self.port = 0
        self.is_cut = False
        self.is_silent = False
        self._writers: set[asyncio.StreamWriter] = set()

    @contextlib.asynccontextmanager
    async def to(self, port: int) -> AsyncIterator["Cable"]:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self.is_cut:
                writer.close()
                return
            there = await asyncio.open_connection(LOCAL, port)
            self._writers |= {writer, there[1]}
            await asyncio.gather(self._copy(reader, there[1]), self._copy(there[0], writer))

        server = await asyncio.start_server(relay, LOCAL, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if not self.is_silent:
                    writer.write(data)
                    await writer.drain()
        writer.close()

    def cut(self) -> None:
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@contextlib.asynccontextmanager
async def nothing_left(server: ProxyServer, *, but: int = 0, mib: int = 64) -> AsyncIterator[None]:
    """Files, tasks and registers are as before when the body is done, and memory within a budget.

    `but` connections were open all the time.
    """
    files, tasks, memory = open_files(), len(asyncio.all_tasks()), resident_bytes()
    yield
    await until(lambda: server.proxy.open_connections == but, 30)
    await until(lambda: sum(len(backend.open) + len(backend.pending) for backend in server.proxy.streams) == but, 30)
    gc.collect()
    await until(lambda: open_files() <= files and len(asyncio.all_tasks()) <= tasks, 30)
    assert resident_bytes() - memory < mib * 1024 * 1024


def test_cut_link_ends_what_it_carried_and_heals(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with (
            serve(server_options(certificates, front, "http-connect")) as server,
            Cable().to(server.agent_port) as cable,
            run_agent(agent_options(certificates, cable.port)) as agent,
            echo_server() as address,
        ):
            for _ in range(3):
                await until(lambda: server.proxy.streams and agent.pool.streams, 30)
                tunnels = [await HttpTunnel.open(front, address) for _ in range(10)]
                for seed, tunnel in enumerate(tunnels):
                    await echo_checked(tunnel, 50_000, seed)
                cable.cut()
                assert [await tunnel.read() for tunnel in tunnels] == [b""] * 10
                await until(lambda: not server.proxy.streams and not agent.pool.open_endpoints)
                with pytest.raises(Refused, match="no tunnels available"):
                    await HttpTunnel.open(front, address)
                for tunnel in tunnels:
                    await tunnel.close()
                await until(lambda: not server.proxy.frontends)
                cable.is_cut = False

    asyncio.run(scenario())


def test_silent_link_is_noticed_by_keepalive_on_both_sides(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KeepaliveConfig(1.0).timeout_s == 20  # as in gRPC; here it is shorter
    for end in ("server.grpc_port", "agent.pool"):
        monkeypatch.setattr(
            f"garboard.tunnel.{end}.KeepaliveConfig", lambda time_s: KeepaliveConfig(time_s, timeout_s=2)
        )

    async def scenario() -> None:
        quick = {"keepalive_s": 1.0}
        async with (
            serve(replace(server_options(certificates, front, "http-connect"), **quick)) as server,  # type: ignore[arg-type]
            Cable().to(server.agent_port) as cable,
            run_agent(replace(agent_options(certificates, cable.port), **quick)) as agent,  # type: ignore[arg-type]
            echo_server() as address,
        ):
            await until(lambda: server.proxy.streams and agent.pool.streams)
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 1000)
            cable.is_silent = True
            await until(lambda: not server.proxy.streams and not agent.pool.streams, 60)
            assert await tunnel.read() == b""
            cable.is_silent = False
            await until(lambda: server.proxy.streams and agent.pool.streams, 30)
            await tunnel.close()

    asyncio.run(scenario())


def kept_alive(end: SocketEnd | AioLink) -> bool:
    assert end.transport is not None
    peer = end.transport.get_extra_info("socket")
    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    asked = [peer.getsockopt(socket.IPPROTO_TCP, option) for option in options]
    return bool(peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) and asked == [15, 15, 9]


def user_timeout_ms(end: SocketEnd | AioLink) -> int:
    assert end.transport is not None
    return int(end.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))


def test_link_that_left_a_dial_unanswered_is_looked_at_and_given_up(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dials after it go to a stream of the same agent that answers, although it is the younger one."""
    monkeypatch.setattr(
        "garboard.tunnel.server.grpc_port.KeepaliveConfig", lambda time_s: KeepaliveConfig(time_s, timeout_s=2)
    )

    async def scenario() -> None:
        options = replace(server_options(certificates, front, "http-connect"), backend_dial_timeout_s=2.0)
        async with (
            serve(options) as server,
            Cable().to(server.agent_port) as cable,
            run_agent(agent_options(certificates, cable.port)),
            echo_server() as address,
        ):
            await until(lambda: server.proxy.streams)
            cable.is_silent = True
            async with run_agent(agent_options(certificates, server.agent_port)):
                await until(lambda: len(server.proxy.streams) == 2)
                with pytest.raises(Refused, match="dial timeout"):
                    await HttpTunnel.open(front, address)
                tunnel = await HttpTunnel.open(front, address)
                await echo_checked(tunnel, 1000)
                await until(lambda: len(server.proxy.streams) == 1)
                await tunnel.close()

    asyncio.run(scenario())


def test_every_tcp_peer_that_is_gone_without_a_word_is_noticed_by_the_kernel(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients and agents from the first moment, endpoints that stay for a while, both ways."""
    monkeypatch.setattr("garboard.tunnel.agent.pool.KEEPALIVE_EVERY_S", 0.05)
    monkeypatch.setattr("garboard.tunnel.server.run.KEEPALIVE_EVERY_S", 0.05)
    keys = KeyPair(certificates.server, certificates.server_key, certificates.ca)

    async def scenario() -> None:
        async with echo_server() as address:
            [port, local] = free_ports(2)
            side = replace(
                server_options(certificates, "", "http-connect"), server_port=port, server_keys=keys,
                server_bind_address=LOCAL, allowed=AllowList.parse([address]),
            )  # fmt: skip
            async with serve(side) as server:
                node = replace(
                    agent_options(certificates, server.agent_port),
                    targets=(NodeTarget.parse(f"{local}:{address}"),), bind_address=LOCAL,
                )  # fmt: skip
                async with run_agent(node) as agent:
                    await until(lambda: agent.ports.servers.backends and agent.ports._listening)
                    tls = ssl.create_default_context(cafile=certificates.ca)
                    tls.load_cert_chain(certificates.client, certificates.client_key)
                    forward = await HttpTunnel.over(*await asyncio.open_connection(LOCAL, port, ssl=tls), address)
                    reverse = HttpTunnel(*await asyncio.open_connection(LOCAL, local))
                    await echo_checked(forward, 1000)
                    await echo_checked(reverse, 1000)
                    [of_agent], [of_server] = agent.pool.streams.values(), server.proxy.streams.values()
                    assert isinstance(of_server, AgentStream)
                    assert of_agent.dialer is not None
                    assert of_server.dialer is not None
                    first = [*server.proxy.frontends.values(), *agent.ports.tunnels.frontends.values()]
                    assert all(kept_alive(each) for each in first if isinstance(each, SocketEnd))
                    assert kept_alive(of_agent.link)
                    assert kept_alive(of_server.link)
                    assert user_timeout_ms(of_agent.link) == user_timeout_ms(of_server.link) == 20_000
                    later = [*of_agent.dialer.endpoints.values(), *of_server.dialer.endpoints.values()]
                    assert len(first) == len(later) == 2
                    await until(lambda: all(map(kept_alive, later)))
                    # A client or an endpoint that has stopped reading looks dead to this timer, and is not.
                    outer = [each for each in (*first, *later) if isinstance(each, SocketEnd)]
                    assert [user_timeout_ms(each) for each in outer] == [0] * 4
                    await forward.close()
                    await reverse.close()

    asyncio.run(scenario())


def test_servers_at_addresses_of_their_own_come_back_each_on_its_own(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        first = replace(server_options(certificates, front, "http-connect"), server_id="one")
        second = replace(server_options(certificates, f"{front}2", "http-connect"), server_id="two")
        async with contextlib.AsyncExitStack() as stack:
            one = await stack.enter_async_context(serve(first))
            two_stack = await stack.enter_async_context(contextlib.AsyncExitStack())
            two = await two_stack.enter_async_context(serve(second))
            hosts = f"{LOCAL}:{one.agent_port},{LOCAL}:{two.agent_port}"
            options = replace(agent_options(certificates, 1), proxy_server_host=hosts)
            agent = await stack.enter_async_context(run_agent(options))
            await until(lambda: agent.pool.streams.keys() == {"one", "two"})
            port = two.agent_port
            await two_stack.aclose()
            await until(lambda: agent.pool.streams.keys() == {"one"})
            again = await stack.enter_async_context(serve(replace(second, agent_port=port)))
            await until(lambda: agent.pool.streams.keys() == {"one", "two"}, 30)
            assert again.proxy.streams

    asyncio.run(scenario())


async def _fake_agent(certificates: Certificates, server: ProxyServer) -> AioClient:
    tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
    return await AioClient.connect(TcpTarget(LOCAL, server.agent_port, tls))


def _near_packets(numbers: random.Random) -> bytes:
    """Bytes that look like packets: a good one with a few of its bytes changed, cut or doubled."""
    good: list[packets.Packet] = [
        packets.DialRequest("tcp", "127.0.0.1:1", numbers.getrandbits(40)),
        packets.DialResponse("", numbers.randrange(6), numbers.randrange(6)),
        packets.CloseRequest(numbers.randrange(6)),
        packets.CloseResponse("x", numbers.randrange(6)),
        packets.Data(numbers.randrange(6), "", b"data"),
        packets.CloseDial(numbers.randrange(6)),
        packets.Credit(numbers.randrange(6), numbers.randrange(-5, 1 << 40)),
        packets.Drain(),
    ]
    data = bytearray(encode_packet(numbers.choice(good)))
    for _ in range(numbers.randrange(3)):
        at = numbers.randrange(len(data))
        match numbers.randrange(3):
            case 0:
                data[at] = numbers.randrange(256)
            case 1:
                del data[at:]
            case _:
                data += data[at:]
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("has_credit", [True, False])
def test_agent_that_sends_near_packets_harms_only_itself(
    certificates: Certificates, front: str, has_credit: bool
) -> None:
    numbers = random.Random(11)

    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (server, _), echo_server() as address:
            async with nothing_left(server):
                extra = offer(()) if has_credit else ()
                for _ in range(30):
                    client = await _fake_agent(certificates, server)
                    named = (("agentid", "liar"), ("agentidentifiers", "host=nowhere"), *extra)
                    call = await client.call("/AgentService/Connect", metadata=named)
                    with contextlib.suppress(RpcFailed):
                        for _ in range(50):
                            await call.send(_near_packets(numbers))
                        await asyncio.sleep(0.01)
                    await client.close()
                await until(lambda: len(server.proxy.streams) == 1)
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 100_000)
            await tunnel.close()

    asyncio.run(scenario())


def test_agent_that_overdraws_its_credit_is_cut_off(certificates: Certificates, front: str) -> None:
    """It answers a dial and pours, although the client takes nothing and no credit comes."""

    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            client = await _fake_agent(certificates, server)
            named = (("agentid", "greedy"), ("agentidentifiers", ""), *offer(()))
            call = await client.call("/AgentService/Connect", metadata=named)
            await until(lambda: server.proxy.streams)
            opening = asyncio.create_task(HttpTunnel.open(front, "10.0.0.1:1"))
            asked = packets.decode_packet(await call.receive() or b"")
            assert isinstance(asked, packets.DialRequest)
            await call.send(encode_packet(packets.DialResponse("", 2, asked.random)))
            tunnel = await opening
            data = encode_packet(packets.Data(2, "", b"x" * 65536))
            sent = 0
            with contextlib.suppress(RpcFailed):
                while sent < 64 * WINDOW_BYTES:
                    await call.send(data)
                    sent += len(data)
            await until(lambda: not server.proxy.streams)
            assert sent < 64 * WINDOW_BYTES
            await tunnel.close()
            await client.close()
            await until(lambda: not server.proxy.frontends)

    asyncio.run(scenario())


def test_oversize_message_ends_its_stream_only(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (server, _), echo_server() as address:
            client = await _fake_agent(certificates, server)
            named = (("agentid", "large"), ("agentidentifiers", "host=nowhere"))
            call = await client.call("/AgentService/Connect", metadata=named)
            await until(lambda: len(server.proxy.streams) == 2)
            with contextlib.suppress(RpcFailed):
                await call.send(encode_packet(packets.Data(2, "", b"x" * (5 * 1024 * 1024))))
            await until(lambda: len(server.proxy.streams) == 1 and call.status is not None)
            await client.close()
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 10_000)
            await tunnel.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("mode", ["grpc", "http-connect"])
def test_slow_loris_on_every_port_holds_up_nobody_and_is_dropped(
    certificates: Certificates, front: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.tunnel.server.http_frontend.HEAD_TIMEOUT_S", 1.0)
    monkeypatch.setattr("garboard.tunnel.web.REQUEST_TIMEOUT_S", 1.0)
    monkeypatch.setattr("garboard.rpc.aio.link.HANDSHAKE_TIMEOUT_S", 1.0)
    monkeypatch.setattr("garboard.tunnel.tls.HANDSHAKE_TIMEOUT_S", 1.0)
    keys = KeyPair(certificates.server, certificates.server_key, certificates.ca)

    async def scenario() -> None:
        on_tcp = {"uds_name": "", "server_port": free_ports(1)[0], "server_keys": keys, "server_bind_address": LOCAL}
        tls = ssl.create_default_context(cafile=certificates.ca)
        tls.load_cert_chain(certificates.client, certificates.client_key)
        tls.set_alpn_protocols(["h2"] if mode == "grpc" else ["http/1.1"])
        agent_tls = ssl.create_default_context(cafile=certificates.ca)
        agent_tls.load_cert_chain(certificates.client, certificates.client_key)
        agent_tls.set_alpn_protocols(["h2"])
        async with (
            both_ends(certificates, front, mode) as (server, agent),
            both_ends(certificates, "", mode, **on_tcp) as (other, _),
            echo_server() as address,
        ):
            plain = [server.health_port, server.admin_port, agent.health_port, agent.admin_port]
            silent_in_tls = [server.agent_port, other.server_port]
            async with nothing_left(server):
                slow = [await asyncio.open_unix_connection(front) for _ in range(10)]
                for port in (*plain, *silent_in_tls):
                    slow += [await asyncio.open_connection(LOCAL, port) for _ in range(5)]
                slow += [await asyncio.open_connection(LOCAL, server.agent_port, ssl=agent_tls) for _ in range(5)]
                slow += [await asyncio.open_connection(LOCAL, other.server_port, ssl=tls) for _ in range(5)]
                for number, (_, writer) in enumerate(slow):
                    if number % 2:
                        writer.write(b"P")  # of a request, or of the preface of HTTP/2; no greeting of TLS
                tunnel = await open_tunnel(mode, front, address)
                await echo_checked(tunnel, 100_000)
                async with asyncio.timeout(60):
                    for reader, writer in slow:
                        with contextlib.suppress(OSError):
                            await reader.read()
                        writer.close()
                await tunnel.close()
                await until(lambda: not server.proxy.frontends and not other.proxy.frontends)
                await until(lambda: len(server.agents.links) == 1)

    asyncio.run(scenario())


def test_client_that_sends_near_packets_harms_only_itself(certificates: Certificates, front: str) -> None:
    numbers = random.Random(12)

    async def scenario() -> None:
        async with both_ends(certificates, front, "grpc") as (server, agent), echo_server() as address:
            neighbour = await open_tunnel("grpc", front, address)
            await echo_checked(neighbour, 1000)
            async with nothing_left(server, but=1):
                for number in range(30):
                    client = await AioClient.connect(UnixTarget(front))
                    call = await client.call("/ProxyService/Proxy")
                    with contextlib.suppress(RpcFailed):
                        if number % 2:  # with an open connection of its own
                            await call.send(encode_packet(packets.DialRequest("tcp", address, number)))
                            await call.receive()
                        for _ in range(50):
                            await call.send(_near_packets(numbers))
                        await call.send(encode_packet(packets.Data(2, "", b"x" * (5 * 1024 * 1024))))
                        await asyncio.sleep(0.01)
                    await client.close()
                await until(lambda: len(server.proxy.frontends) == 1 and agent.pool.open_endpoints == 1)
            await echo_checked(neighbour, 100_000)
            await neighbour.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("has_credit", [True, False])
def test_server_that_sends_near_packets_harms_only_itself(
    certificates: Certificates, front: str, has_credit: bool
) -> None:
    """The agent has a good server too, and goes on with it."""
    numbers, calls = random.Random(13), 0

    async def attack(call: AioServerCall) -> None:
        nonlocal calls
        calls += 1
        told, _ = answer(call.metadata, AllowList.parse(["127.0.0.1:1"]))
        call.start((("serverid", "evil"), ("servercount", "1"), *(told if has_credit else ())))
        for _ in range(50):
            await call.send(_near_packets(numbers))
        if calls % 3 == 0:
            await call.send(encode_packet(packets.Data(2, "", b"x" * (5 * 1024 * 1024))))
        await asyncio.sleep(0.05)

    async def scenario() -> None:
        tls = server_tls(certificates.server, certificates.server_key, client_ca_file=certificates.ca)
        async with (
            serve(server_options(certificates, front, "http-connect")) as server,
            serve_rpc(TcpTarget(LOCAL, 0, tls), {"/AgentService/Connect": attack}) as evil,
            echo_server() as address,
        ):
            hosts = f"{LOCAL}:{server.agent_port},{LOCAL}:{evil.port}"
            options = replace(agent_options(certificates, 1), proxy_server_host=hosts)
            async with run_agent(options) as agent:
                await until(lambda: server.proxy.streams and calls)
                tunnel = await HttpTunnel.open(front, address)
                files, tasks = open_files(), len(asyncio.all_tasks())
                await until(lambda: calls >= 20, 60)
                await echo_checked(tunnel, 100_000)
                await tunnel.close()
                await until(lambda: not agent.pool.open_endpoints)
                # One connection to the evil server may be open at any moment, on both of its sides.
                await until(lambda: open_files() <= files + 4 and len(asyncio.all_tasks()) <= tasks + 4, 30)

    asyncio.run(scenario())


def test_hundreds_of_reverse_connections_opened_and_reset_leave_nothing(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        (port,) = free_ports(1)
        async with echo_server() as address:
            side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse([address]))
            async with serve(side) as server:
                node = replace(
                    agent_options(certificates, server.agent_port),
                    targets=(NodeTarget.parse(f"{port}:{address}"),), bind_address=LOCAL,
                )  # fmt: skip
                async with run_agent(node) as agent:
                    await until(lambda: agent.ports.servers.backends and agent.ports._listening)
                    async with nothing_left(server):
                        for _ in range(5):
                            await asyncio.gather(*(_open_and_reset(port, number) for number in range(100)))
                        await until(lambda: not agent.open_connections, 30)

    asyncio.run(scenario())


async def _open_and_reset(port: int, number: int) -> None:
    reader, writer = await asyncio.open_connection(LOCAL, port)
    writer.write(b"x" * 20_000)
    if number % 3:
        await asyncio.sleep(0.001 * (number % 30))
    else:
        await reader.read(1)
    writer.transport.abort()


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [1200, pytest.param(10_000, marks=pytest.mark.verify)])
def test_thousands_of_connections_opened_and_reset_leave_nothing(
    certificates: Certificates, front: str, count: int
) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (server, agent), echo_server() as address:
            await asyncio.gather(*(_one(front, address, number) for number in range(200)))  # what is made once, is made
            async with nothing_left(server, mib=24):
                for _ in range(count // 200):
                    await asyncio.gather(*(_one(front, address, number) for number in range(200)))
                await until(lambda: not agent.pool.open_endpoints, 60)
            assert await fetch(server.health_port, "/readyz") == (200, "ok")

    asyncio.run(scenario())


async def _one(front: str, address: str, number: int) -> None:
    tunnel = await HttpTunnel.open(front, address)
    if number % 2:
        await echo_checked(tunnel, 2000, number)
    else:
        await tunnel.write(b"x" * 5000)
    tunnel.abort()
