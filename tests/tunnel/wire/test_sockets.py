"""How a socket ends: what it was given is written first, and a connection that was cut never looks whole."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator

import pytest

from garboard.tunnel.wire import sockets
from garboard.tunnel.wire.flow import NO_SOURCE, StallPolicy, StallWatch
from garboard.tunnel.wire.sockets import READ_AHEAD_BYTES, SocketEnd
from tools.harness.certificates import Certificates

SIZE = 16_000_000  # more than the kernel keeps for a reader that does not read


TLS = pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])


@contextlib.asynccontextmanager
async def socket_end(certificates: Certificates | None = None) -> AsyncIterator[tuple[SocketEnd, asyncio.StreamReader]]:
    """A socket end, with TLS or without, and the reader of its peer, which holds next to nothing by itself."""
    server_tls = client_tls = None
    if certificates is not None:
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_tls.load_cert_chain(certificates.server, certificates.server_key)
        client_tls = ssl.create_default_context(cafile=certificates.ca)
    watch = StallWatch(StallPolicy())
    ends: list[SocketEnd] = []

    def make() -> SocketEnd:
        ends.append(SocketEnd(watch))
        return ends[0]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, ssl=server_tls)
    watching = asyncio.create_task(watch.run())
    host, port = server.sockets[0].getsockname()
    reader, writer = await asyncio.open_connection(host, port, limit=4096, ssl=client_tls)
    async with asyncio.timeout(10):
        while not ends or ends[0].transport is None:
            await asyncio.sleep(0)
    try:
        yield ends[0], reader
    finally:
        watching.cancel()
        writer.transport.abort()
        server.close()


async def read_all(reader: asyncio.StreamReader, pause_s: float = 0.0) -> tuple[int, bool]:
    """How much came, and whether the end was a clean one."""
    size = 0
    while True:
        try:
            data = await reader.read(256 * 1024)
        except ConnectionResetError:
            return size, False
        if not data:
            return size, True
        size += len(data)
        await asyncio.sleep(pause_s)


@TLS
def test_reader_that_is_slow_gets_everything_before_the_end(
    secure: bool, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "FLUSH_STALL_S", 2.0)

    async def scenario() -> None:
        async with socket_end(certificates if secure else None) as (end, reader):
            for _ in range(64):
                end.deliver(b"x" * (SIZE // 64), SIZE // 64, NO_SOURCE)
            end.flush_and_close()
            assert await read_all(reader, pause_s=0.03) == (SIZE, True)

    asyncio.run(scenario())


def test_slow_reader_that_says_something_after_the_end_still_gets_everything() -> None:
    """The kernel answers it with a reset, and drops what it has not sent, if the socket is closed by then."""

    async def scenario() -> None:
        async with socket_end() as (end, reader):
            for _ in range(64):
                end.deliver(b"x" * (SIZE // 64), SIZE // 64, NO_SOURCE)
            end.flush_and_close()
            size, transport = 0, reader._transport  # type: ignore[attr-defined]
            while data := await reader.read(64 * 1024):
                size += len(data)
                transport.write(b"a heartbeat")
                await asyncio.sleep(0.001)
            assert size == SIZE

    asyncio.run(scenario())


@contextlib.asynccontextmanager
async def all_in_the_kernel() -> AsyncIterator[tuple[SocketEnd, asyncio.StreamReader, int]]:
    """A socket end whose event loop has written everything, although the peer has not taken it; and how much it is."""
    async with socket_end() as (end, reader):
        assert end.transport is not None
        size = 0
        while end.backlog < 800_000:  # the peer's kernel has no more room
            end.deliver(b"x" * 50_000, 50_000, NO_SOURCE)
            size += 50_000
            await asyncio.sleep(0)
        assert end.transport.get_write_buffer_size() == 0
        yield end, reader, size


async def is_let_go(end: SocketEnd) -> None:
    async with asyncio.timeout(10):
        while end.transport is not None:
            await asyncio.sleep(0.01)
    assert end not in end.outflow.watch.flushing


def test_slow_reader_for_whom_only_the_kernel_has_something_may_say_something_too() -> None:
    async def scenario() -> None:
        async with all_in_the_kernel() as (end, reader, size):
            end.flush_and_close()
            got, transport = 0, reader._transport  # type: ignore[attr-defined]
            while data := await reader.read(16 * 1024):
                got += len(data)
                transport.write(b"a heartbeat")
                await asyncio.sleep(0.001)
            assert got == size
            transport.close()
            await is_let_go(end)

    asyncio.run(scenario())


def test_slow_reader_that_was_not_read_any_more_gets_everything() -> None:
    """What it has said waits in the kernel, which resets a peer whose words nobody reads."""

    async def scenario() -> None:
        async with all_in_the_kernel() as (end, reader, size):
            end.take(READ_AHEAD_BYTES)
            reader._transport.write(b"y" * 100_000)  # type: ignore[attr-defined]
            await asyncio.sleep(0.05)
            end.flush_and_close()
            assert await read_all(reader) == (size, True)
            reader._transport.close()  # type: ignore[attr-defined]
            await is_let_go(end)

    asyncio.run(scenario())


def test_peer_that_pours_without_end_is_let_go_once_it_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "OVERHEARD_BYTES", 1_000_000)

    async def scenario() -> None:
        async with all_in_the_kernel() as (end, reader, size):
            end.flush_and_close()
            reader._transport.write(b"y" * SIZE)  # type: ignore[attr-defined]
            async with asyncio.timeout(10):
                while end._overheard <= 1_000_000:
                    await asyncio.sleep(0.01)
            assert end.transport is not None, "it has not taken everything"
            got = 0
            with contextlib.suppress(ConnectionResetError):  # once it has: somebody has to stop it
                while data := await reader.read(16 * 1024):
                    got += len(data)
            await is_let_go(end)
            assert end._overheard < SIZE // 2
            assert got > size // 2

    asyncio.run(scenario())


def test_lingering_socket_gives_a_reader_up_only_if_it_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is moved, not waited for."""

    async def scenario() -> None:
        async with all_in_the_kernel() as (end, reader, size):
            end.flush_and_close()
            now, before, got = time.monotonic(), end.backlog, 0
            end.check_flush(now)
            end.check_flush(now + 119)
            while end.backlog == before:  # it takes something
                got += len(await reader.read(16 * 1024))
            end.check_flush(now + 200)
            end.check_flush(now + 319)
            assert end.transport is not None
            assert not end.transport.is_closing()
            end.check_flush(now + 321)
            await is_let_go(end)
            rest, was_clean = await read_all(reader)
            assert got + rest < size
            assert not was_clean

    asyncio.run(scenario())


def test_peer_that_has_everything_and_does_not_end_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listened to for as long as it may take nothing, and no longer."""
    monkeypatch.setattr(sockets, "FLUSH_STALL_S", 0.6)

    async def scenario() -> None:
        async with socket_end() as (end, reader):
            for _ in range(64):
                end.deliver(b"x" * (SIZE // 64), SIZE // 64, NO_SOURCE)
            end.flush_and_close()
            assert await read_all(reader) == (SIZE, True)
            assert end.transport is not None, "the peer has not ended"
            assert end in end.outflow.watch.flushing
            async with asyncio.timeout(10):
                while end.transport is not None:
                    await asyncio.sleep(0.01)
            assert end not in end.outflow.watch.flushing

    asyncio.run(scenario())


def test_progress_of_a_slow_reader_is_seen_before_the_loop_writes_again() -> None:
    """The loop does so when a third of the kernel's buffer is free; at 100 kB/s that may take half a minute."""

    async def scenario() -> None:
        async with socket_end() as (end, reader):
            assert end.transport is not None
            for _ in range(64):
                end.deliver(b"x" * (SIZE // 64), SIZE // 64, NO_SOURCE)
            await asyncio.sleep(0.2)  # until the kernel takes no more
            delivered, waiting = end.outflow.delivered, end.transport.get_write_buffer_size()
            async with asyncio.timeout(10):
                while end.outflow.delivered <= delivered:
                    await reader.read(4096)
                    await asyncio.sleep(0.001)
            assert end.transport.get_write_buffer_size() == waiting
            end.cut()

    asyncio.run(scenario())


def test_reader_may_pause_for_two_minutes() -> None:
    """The clock is moved, not waited for."""

    async def scenario() -> None:
        async with socket_end() as (end, reader):
            for _ in range(16):
                end.deliver(b"x" * (SIZE // 16), SIZE // 16, NO_SOURCE)
            end.flush_and_close()
            now = time.monotonic()
            for seconds in (1, 60, 119):
                end.check_flush(now + seconds)
            assert await read_all(reader) == (SIZE, True)

    asyncio.run(scenario())


def test_reader_that_takes_nothing_is_reset_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "FLUSH_STALL_S", 0.2)

    async def scenario() -> None:
        async with socket_end() as (end, reader):
            end.deliver(b"x" * SIZE, SIZE, NO_SOURCE)
            end.flush_and_close()
            async with asyncio.timeout(30):
                while end.transport is not None:
                    await asyncio.sleep(0.01)
            size, was_clean = await read_all(reader)
            assert size < SIZE
            assert not was_clean

    asyncio.run(scenario())


@TLS
def test_connection_that_was_cut_elsewhere_delivers_what_came_and_is_reset(
    secure: bool, certificates: Certificates
) -> None:
    async def scenario() -> None:
        async with socket_end(certificates if secure else None) as (end, reader):
            for _ in range(64):
                end.deliver(b"x" * (SIZE // 64), SIZE // 64, NO_SOURCE)
            end.flush_and_reset()
            assert await read_all(reader) == (SIZE, False)

    asyncio.run(scenario())


def test_connection_that_is_cut_here_is_reset() -> None:
    async def scenario() -> None:
        async with socket_end() as (end, reader):
            end.deliver(b"x", 1, NO_SOURCE)
            end.cut()
            _, was_clean = await read_all(reader)
            assert not was_clean

    asyncio.run(scenario())


def test_nothing_is_watched_any_more_when_all_is_over() -> None:
    async def scenario() -> None:
        async with socket_end() as (end, reader):
            end.deliver(b"x" * SIZE, SIZE, NO_SOURCE)
            end.flush_and_close()
            assert await read_all(reader) == (SIZE, True)
            reader._transport.close()  # type: ignore[attr-defined]
            async with asyncio.timeout(10):
                while end.transport is not None:
                    await asyncio.sleep(0.01)
            assert not end.outflow.watch.flushing

    asyncio.run(scenario())
