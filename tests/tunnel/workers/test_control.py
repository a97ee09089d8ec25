"""The socket between supervisor and worker."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from garboard.errors import InvalidValue
from garboard.tunnel.workers.control import Control, control_pair
from garboard.tunnel.workers.messages import (
    Ask,
    ControlMessage,
    Hello,
    PageAnswer,
    Peers,
    Reload,
    Start,
    decode_message,
    encode_message,
)
from tests.support.tunnel.ends import until

Received = list[tuple[ControlMessage, list[socket.socket]]]


def ignore(*_: object) -> None:
    pass


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_messages_come_as_they_were_sent() -> None:
    for message in (
        Hello(),
        Start("s", 1, 8091, "a: ü\n", ["/x"]),
        Peers(1, ["s-0"], {"": 3}),
        Ask(7, "/trace", {"to": "x"}),
    ):
        assert decode_message(encode_message(message, 2)) == (message, 2)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'["Nonsense", 0, {}]', b'["Hello", 0, {"other": 1}]', b'["Hello", -1, {}]', b"\xff"]
)
def test_what_another_version_sends_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(InvalidValue, match="cannot be read") as raised:
        decode_message(body)
    assert "restart the server" in str(raised.value.hint)


def run(scenario: Callable[[Control, Control, Received, list[str]], object]) -> None:
    async def all_of_it() -> None:
        ours, theirs = control_pair()
        received: Received = []
        lost: list[str] = []
        near = Control(ours, ignore, lambda: lost.append("near"))
        far = Control(theirs, lambda message, sockets: received.append((message, sockets)), lambda: lost.append("far"))
        try:
            result = scenario(near, far, received, lost)
            assert asyncio.iscoroutine(result)
            await result
        finally:
            near.close()
            far.close()

    asyncio.run(all_of_it())


def test_sockets_go_with_their_message_however_many_they_are() -> None:
    async def scenario(near: Control, _far: Control, received: Received, _lost: list[str]) -> None:
        before = descriptors()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            near.send(Hello())
            near.send(Reload(1, "x" * 100_000, ["a"] * 600), [listener] * 600)
            near.send(Reload(2, "", ["b"]), [listener])
            near.send(Hello())
            await until(lambda: len(received) == 4)
            assert [len(sockets) for _, sockets in received] == [0, 600, 1, 0]
            assert {each.getsockname() for each in received[1][1]} == {listener.getsockname()}
        for _, sockets in received:
            for each in sockets:
                each.close()
        assert descriptors() == before

    run(scenario)


def test_large_answers_wait_for_a_reader_without_blocking() -> None:
    async def scenario(near: Control, _far: Control, received: Received, _lost: list[str]) -> None:
        text = "status " * 1_000_000
        for number in range(3):
            near.send(PageAnswer(number, 200, text))
        await until(lambda: len(received) == 3)
        assert [message for message, _ in received] == [PageAnswer(number, 200, text) for number in range(3)]

    run(scenario)


def test_end_of_one_is_told_to_the_other_once_and_leaks_nothing() -> None:
    async def scenario(near: Control, far: Control, _received: Received, lost: list[str]) -> None:
        with socket.socket() as listener:
            near.send(Reload(1, "", ["a"] * 3), [listener] * 3)
        far.close()
        await until(lambda: lost == ["near"])
        near.send(Hello())
        near.close()
        assert lost == ["near"]

    before = descriptors()
    run(scenario)
    assert descriptors() == before


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x02{}", b"\xff\xff\xff\xff"], ids=["no message", "far too long"])
def test_other_bytes_end_the_control_and_nothing_else(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(near: Control, _far: Control, received: Received, lost: list[str]) -> None:
        near._socket.send(data)
        await until(lambda: "far" in lost)
        assert received == []

    run(scenario)
    assert "control.broken" in caplog.text


def test_message_whose_sockets_did_not_arrive_is_not_taken() -> None:
    async def scenario(near: Control, _far: Control, received: Received, lost: list[str]) -> None:
        body = encode_message(Reload(1, "", ["a"]), 1)
        near._socket.send(len(body).to_bytes(4, "big") + body)
        await until(lambda: "far" in lost)
        assert received == []

    run(scenario)
