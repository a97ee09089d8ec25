"""The endpoint against real sockets: which backend a connection reaches, and when it is cut."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from garboard.lab.load_balancer import ApiServerBackend, LoadBalancer, candidates


def backend(port: int = 1, *, is_ready: bool = True) -> ApiServerBackend:
    return ApiServerBackend("127.0.0.1", port, is_ready)


def test_ready_back_ends_take_turns_and_the_others_come_last() -> None:
    one, two, down = backend(1), backend(2), backend(3, is_ready=False)
    assert candidates([one, down, two], 0) == [one, two, down]
    assert candidates([one, down, two], 1) == [two, one, down]


def test_all_are_tried_when_none_is_ready() -> None:
    down = [backend(1, is_ready=False), backend(2, is_ready=False)]
    assert candidates(down, 5) == down


def test_one_slow_answer_does_not_take_a_back_end_down() -> None:
    only = backend()
    only.note(answered=False)
    assert only.is_ready
    only.note(answered=False)
    assert not only.is_ready
    only.note(answered=True)
    assert only.is_ready


async def _echo_server(tag: bytes) -> tuple[asyncio.Server, int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(tag)
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


Scene = Callable[[LoadBalancer, int], Awaitable[None]]


async def _with_balancer(scene: Scene) -> None:
    balancer = LoadBalancer()
    server = await asyncio.get_running_loop().create_server(balancer.accept, "127.0.0.1", 0)
    try:
        await asyncio.wait_for(scene(balancer, server.sockets[0].getsockname()[1]), 20)
    finally:
        server.close()


def test_bytes_pass_both_ways_and_the_end_of_one_side_is_passed_on() -> None:
    async def scene(balancer: LoadBalancer, port: int) -> None:
        server, at = await _echo_server(b"A")
        balancer.backends["a"] = backend(at)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        payload = bytes(range(256)) * 4096
        writer.write(payload)
        writer.write_eof()
        assert await reader.read(-1) == b"A" + payload
        writer.close()
        server.close()

    asyncio.run(_with_balancer(scene))


def test_a_back_end_that_refuses_is_passed_over() -> None:
    async def scene(balancer: LoadBalancer, port: int) -> None:
        gone, gone_at = await _echo_server(b"gone")
        gone.close()
        await gone.wait_closed()
        server, at = await _echo_server(b"B")
        balancer.backends = {"gone": backend(gone_at), "b": backend(at)}
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.readexactly(1) == b"B"
            writer.close()
        server.close()

    asyncio.run(_with_balancer(scene))


def test_connections_to_a_back_end_that_goes_down_are_cut() -> None:
    async def scene(balancer: LoadBalancer, port: int) -> None:
        server, at = await _echo_server(b"C")
        balancer.backends["c"] = only = backend(at)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(1) == b"C"
        only.take_down()
        assert await reader.read(-1) == b""
        assert not only.connections
        writer.close()
        server.close()

    asyncio.run(_with_balancer(scene))


def test_without_any_back_end_the_client_is_told_at_once() -> None:
    async def scene(_balancer: LoadBalancer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read(-1) == b""
        writer.close()

    asyncio.run(_with_balancer(scene))


def test_a_check_against_something_that_speaks_no_tls_counts_as_a_failure() -> None:
    async def scene(balancer: LoadBalancer, _port: int) -> None:
        server, at = await _echo_server(b"plain text")
        balancer.backends["x"] = only = backend(at)
        only.failures = 1
        await balancer._check(only)
        assert not only.is_ready
        server.close()

    asyncio.run(_with_balancer(scene))


@pytest.mark.parametrize("turn", [0, 1, 2, 10**9])
def test_every_back_end_is_offered_exactly_once(turn: int) -> None:
    everyone = [backend(number, is_ready=number % 2 == 0) for number in range(5)]
    assert sorted(each.port for each in candidates(everyone, turn)) == [0, 1, 2, 3, 4]
