import asyncio
import socket

import pytest

from garboard.errors import NotReady
from garboard.rpc import (
    Http2Config,
    KeepaliveConfig,
    Limits,
    PeerUnreachable,
    RpcConfig,
    RpcFailed,
    StatusCode,
    TcpTarget,
    UnixTarget,
    client_tls,
    frames,
    server_tls,
)
from garboard.rpc.aio import AioClient, AioServerCall, serve
from tests.support.rpc.echo_service import CHAT, ECHO, HANDLERS, SLOW
from tests.support.rpc.peers import REQUEST, Attacker
from tools.harness.certificates import Certificates

ANYWHERE = TcpTarget("127.0.0.1", 0)


async def settle() -> None:
    """Let what is under way in this loop come to rest."""
    for _ in range(50):
        await asyncio.sleep(0.002)


def test_stalled_reader_stops_its_sender_and_nobody_else() -> None:
    sent = 0
    stalled = asyncio.Event()

    async def flood(call: AioServerCall) -> None:
        nonlocal sent
        while True:
            await call.send(bytes(50_000))
            sent += 50_000
            stalled.set()

    async def scenario() -> None:
        async with (
            serve(ANYWHERE, {**HANDLERS, "/Test/Flood": flood}) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            call = await client.call("/Test/Flood")
            call.end_sending()
            await stalled.wait()
            await settle()
            before = sent
            await settle()
            assert sent == before
            assert sent < 3 * 1024 * 1024
            assert await client.unary(ECHO, b"hi") == b"echo:hi"
            for _ in range(100):
                assert len(await call.receive() or b"") == 50_000
            assert sent > before
            call.cancel()

    asyncio.run(scenario())


def test_stalled_transport_stops_the_sender() -> None:
    """A peer that opens huge windows and then reads nothing costs us one queue and the socket's buffers."""

    async def scenario() -> None:
        taken = asyncio.Event()
        sent = 0

        async def flood(call: AioServerCall) -> None:
            nonlocal sent
            taken.set()
            while True:
                await call.send(bytes(100_000))
                sent += 100_000

        async with serve(ANYWHERE, {"/Test/Flood": flood}) as server:
            reader_socket = socket.create_connection(("127.0.0.1", server.port))
            attacker = Attacker()
            headers = tuple((name, "/Test/Flood" if name == ":path" else value) for name, value in REQUEST)
            reader_socket.sendall(
                frames.PREFACE
                + frames.settings({4: 2**31 - 1})
                + frames.window_update(0, 2**30)
                + attacker.request(1, headers)
            )
            await taken.wait()
            last = -1
            while sent != last:
                last = sent
                await settle()
            assert sent < 16 * 1024 * 1024
            reader_socket.close()

    asyncio.run(scenario())


def test_garbage_ends_the_connection_and_not_the_server() -> None:
    async def scenario() -> None:
        async with serve(ANYWHERE, HANDLERS) as server:
            for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 500, frames.PREFACE + b"\xff" * 100):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(garbage)
                await asyncio.wait_for(reader.read(), 5)
                writer.close()
            async with await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client:
                assert await client.unary(ECHO, b"hi") == b"echo:hi"
            await settle()
            assert server.links == set()

    asyncio.run(scenario())


def test_lost_server_ends_the_call_in_words() -> None:
    async def scenario() -> None:
        async with serve(ANYWHERE, HANDLERS) as server:
            client = await AioClient.connect(TcpTarget("127.0.0.1", server.port))
            call = await client.call(CHAT)
            await call.send(b"x")
            assert await call.receive() == b"x"
        with pytest.raises(RpcFailed) as caught:
            await call.receive()
        assert caught.value.code is StatusCode.UNAVAILABLE
        await client.link.lost
        with pytest.raises(PeerUnreachable):
            await client.call(CHAT)

    asyncio.run(scenario())


def test_cancelled_client_call_stops_the_handler() -> None:
    async def scenario() -> None:
        outcome: asyncio.Future[StatusCode | None] = asyncio.get_running_loop().create_future()

        async def wait(call: AioServerCall) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                outcome.set_result(call.status.code if call.status else None)

        async with (
            serve(ANYWHERE, {"/Test/Wait": wait}) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            call = await client.call("/Test/Wait")
            await settle()
            call.cancel()
            assert await asyncio.wait_for(outcome, 5) is StatusCode.CANCELLED

    asyncio.run(scenario())


def test_crashing_handler_is_an_internal_error_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async def crash(call: AioServerCall) -> None:
        raise ValueError("password=hunter2")

    async def scenario() -> None:
        async with (
            serve(ANYWHERE, {"/Test/Crash": crash}) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            with pytest.raises(RpcFailed) as caught:
                await client.unary("/Test/Crash", b"")
            assert caught.value.code is StatusCode.INTERNAL
            assert "hunter2" not in str(caught.value)

    asyncio.run(scenario())
    assert "rpc.handler.crashed" in caplog.text


def test_calls_beyond_the_peers_limit_wait_their_turn() -> None:
    async def scenario() -> None:
        config = RpcConfig(http2=Http2Config(limits=Limits(concurrent_streams=2)))
        async with (
            serve(ANYWHERE, HANDLERS, config=config) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            answers = await asyncio.gather(*(client.unary(ECHO, b"%d" % number) for number in range(20)))
            assert answers == [b"echo:%d" % number for number in range(20)]

    asyncio.run(scenario())


def test_draining_waits_for_open_calls_and_counts_what_it_cuts() -> None:
    async def scenario() -> None:
        async with (
            serve(ANYWHERE, HANDLERS) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            chat = await client.call(CHAT)
            stuck = await client.call(SLOW)
            await chat.send(b"x")
            assert await chat.receive() == b"x"
            draining = asyncio.ensure_future(server.drain(3.0))
            await settle()
            assert not client.can_call
            await chat.send(b"y")
            chat.end_sending()
            assert [message async for message in chat] == [b"y"]
            assert await draining == 1
            with pytest.raises(RpcFailed):
                await stuck.receive()

    asyncio.run(scenario())


def test_dead_peer_is_noticed_by_keepalive() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            connecting = asyncio.ensure_future(
                AioClient.connect(TcpTarget("127.0.0.1", port), keepalive=KeepaliveConfig(time_s=0.05, timeout_s=0.1))
            )
            accepted = await asyncio.get_running_loop().run_in_executor(None, silent.accept)
            accepted[0].sendall(frames.settings({}))
            client = await connecting
            reason = await asyncio.wait_for(client.link.lost, 5)
            assert "keepalive" in reason
            accepted[0].close()

    asyncio.run(scenario())


def test_living_peer_survives_keepalive() -> None:
    async def scenario() -> None:
        async with serve(ANYWHERE, HANDLERS) as server:
            keepalive = KeepaliveConfig(time_s=0.02, timeout_s=2)
            async with await AioClient.connect(TcpTarget("127.0.0.1", server.port), keepalive=keepalive) as client:
                await asyncio.sleep(0.3)
                assert await client.unary(ECHO, b"hi") == b"echo:hi"

    asyncio.run(scenario())


@pytest.mark.parametrize("target", [UnixTarget("/nowhere/s.sock"), TcpTarget("127.0.0.1", 1)], ids=str)
def test_peer_that_is_not_there_is_named(target: UnixTarget | TcpTarget) -> None:
    with pytest.raises(PeerUnreachable) as caught:
        asyncio.run(AioClient.connect(target))
    assert caught.value.error_class == ("socket-missing" if isinstance(target, UnixTarget) else "refused")


def test_tls_peer_without_h2_is_refused_by_the_client(certificates: Certificates) -> None:
    async def scenario() -> None:
        tls = server_tls(certificates.server, certificates.server_key)
        tls.set_alpn_protocols(["http/1.1"])
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(PeerUnreachable, match="h2"):
            await AioClient.connect(TcpTarget("127.0.0.1", port, client_tls(certificates.ca)))
        server.close()

    asyncio.run(scenario())


def test_thousands_of_calls_leave_nothing_behind() -> None:
    async def scenario() -> None:
        async with (
            serve(ANYWHERE, HANDLERS) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            for _ in range(20):
                await asyncio.gather(*(client.unary(ECHO, b"x") for _ in range(50)))
            await settle()
            [link] = server.links
            assert client.link.endpoint.calls == link.endpoint.calls == {}
            assert client.link.endpoint.http.streams == link.endpoint.http.streams == {}
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())


def test_socket_file_of_an_earlier_run_is_no_obstacle(socket_path: str) -> None:
    async def scenario() -> None:
        with socket.socket(socket.AF_UNIX) as left_over:
            left_over.bind(socket_path)
        async with serve(UnixTarget(socket_path), HANDLERS), await AioClient.connect(UnixTarget(socket_path)) as client:
            assert await client.unary(ECHO, b"hi") == b"echo:hi"

    asyncio.run(scenario())


def test_address_in_use_is_named(socket_path: str) -> None:
    async def scenario(target: UnixTarget | TcpTarget) -> None:
        async with serve(target, HANDLERS):
            raise AssertionError("it listens")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        target = TcpTarget("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(NotReady, match="in use") as caught:
            asyncio.run(scenario(target))
    assert caught.value.error_class == "cannot-listen"
    with pytest.raises(NotReady, match="No such file"):
        asyncio.run(scenario(UnixTarget(f"{socket_path}/missing/s.sock")))


def test_failure_of_the_servers_owner_stays_what_it_is() -> None:
    async def scenario() -> None:
        async with serve(ANYWHERE, HANDLERS) as server:
            client = await AioClient.connect(TcpTarget("127.0.0.1", server.port))
            await client.call(SLOW)
            await settle()
            raise NotReady("no")

    with pytest.raises(NotReady, match="no"):
        asyncio.run(scenario())


def test_server_tells_that_the_time_is_over_before_the_client_knows() -> None:
    async def scenario() -> None:
        async with (
            serve(ANYWHERE, HANDLERS) as server,
            await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
        ):
            call = await client.call(SLOW, timeout_s=0.1)
            assert call._timer is not None
            call._timer.cancel()  # a client whose clock stands still
            with pytest.raises(RpcFailed) as caught:
                await asyncio.wait_for(call.receive(), 10)
            assert caught.value.code is StatusCode.DEADLINE_EXCEEDED
            await settle()
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())


def test_peer_that_fails_at_tls_leaves_nothing_behind(certificates: Certificates) -> None:
    async def scenario() -> None:
        tls = server_tls(certificates.server, certificates.server_key)
        async with serve(TcpTarget("127.0.0.1", 0, tls), {}) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"this is no TLS at all\r\n\r\n")
            assert await reader.read() is not None
            writer.close()
            assert server.links == set()

    asyncio.run(scenario())
