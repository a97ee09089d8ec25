import asyncio
import errno
import socket

import pytest

from garboard.tunnel.dialer import dialling
from garboard.tunnel.dialer.dialling import DialFailed, Dials, dial, split_address
from garboard.tunnel.dialer.resolving import Resolver, TooManyLookUps


@pytest.mark.parametrize(
    ("address", "parts"),
    [("10.0.0.1:80", ("10.0.0.1", 80)), ("[fd00::1]:443", ("fd00::1", 443)), ("name:1", ("name", 1)),
     (":80", ("localhost", 80))],
)  # fmt: skip
def test_address_is_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "host", "host:", "host:0", "host:65536", "host:http", "fd00::1:80", "h:٣"])
def test_bad_address_is_refused_in_words(address: str) -> None:
    with pytest.raises(DialFailed, match="dial tcp: address"):
        split_address(address)


@pytest.mark.parametrize(
    ("error", "words", "kind"),
    [
        (OSError(errno.ECONNREFUSED, ""), "connect: connection refused", "refused"),
        (OSError(errno.EHOSTUNREACH, ""), "connect: no route to host", "no_route"),
        (OSError(errno.ENETUNREACH, ""), "connect: network is unreachable", "no_route"),
        (OSError(errno.EMFILE, ""), "socket: too many open files", "failed"),
        (OSError(errno.EACCES, ""), "connect: Permission denied", "failed"),
        (OSError(errno.ETIMEDOUT, ""), "i/o timeout", "timed_out"),
        (socket.gaierror(socket.EAI_NONAME, ""), "lookup h: no such host", "no_such_host"),
        (TimeoutError(), "i/o timeout", "timed_out"),
        (TooManyLookUps("too many names"), "lookup h: too many names", "failed"),
    ],
)
def test_failures_have_the_words_that_servers_look_for(
    error: OSError, words: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(dialling, "_dial_each", fail)
    with pytest.raises(DialFailed, match=words) as failed:
        asyncio.run(dial("h:80", asyncio.Protocol, Resolver()))
    assert failed.value.kind == kind


def test_an_address_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise AssertionError("nobody needs to be asked for the address of an address")

    monkeypatch.setattr(dialling, "_dial_each", fail)

    async def dial_both() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        async with server:
            await dial(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asyncio.Protocol, Resolver())
        with pytest.raises(DialFailed, match=r"dial tcp \[::1\]:1: "):
            await dial("[::1]:1", asyncio.Protocol, Resolver())

    asyncio.run(dial_both())


def test_each_dial_has_its_own_time_though_one_timer_serves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(dialling, "dial", never)
    ends: list[tuple[str, str, float]] = []

    async def dial_three() -> None:
        dials = Dials(Resolver(), timeout_s=0.2)

        def start(name: str) -> "asyncio.Task[None]":
            return dials.start(
                name, asyncio.Protocol, lambda failed, s: ends.append((name, getattr(failed, "kind", ""), s))
            )

        first = start("first:1")
        await asyncio.sleep(0.1)
        second, stopped = start("second:1"), start("stopped:1")
        dials.stop(stopped)
        await asyncio.wait([first, second, stopped], timeout=10)
        third = start("third:1")  # when the timer has nobody left
        await asyncio.wait([third], timeout=10)

    asyncio.run(dial_three())
    assert [(name, kind) for name, kind, _ in ends] == [
        ("first:1", "timed_out"), ("second:1", "timed_out"), ("third:1", "timed_out"),
    ]  # fmt: skip
    assert all(0.19 <= seconds < 5 for _, _, seconds in ends)
