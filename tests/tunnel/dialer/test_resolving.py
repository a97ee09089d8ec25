"""Names that are slow, wrong or many: each waits for itself alone."""

import asyncio
import socket
import threading

import pytest

from garboard.tunnel.dialer import resolving
from garboard.tunnel.dialer.dialling import DialFailed, Dials
from garboard.tunnel.dialer.resolving import Addresses, Resolver, TooManyLookUps
from tests.support.tunnel.ends import until


class NameServer:
    """Names that begin with `slow` are answered when it is told to, `no` is no name; it counts what it is asked."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked: list[str] = []

    def __call__(self, host: str) -> Addresses:
        self.asked.append(host)
        if host.startswith("slow"):
            assert self.answers.wait(60)
        if host == "no":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return ("127.0.0.1",)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_slow_names_hold_up_no_other_name() -> None:
    async def scenario() -> None:
        names = NameServer()
        resolver = Resolver(names)
        slow = [asyncio.create_task(resolver.addresses(f"slow-{number}")) for number in range(40)]
        await until(lambda: len(names.asked) == 40)
        assert await resolver.addresses("quick") == ("127.0.0.1",)
        assert not any(each.done() for each in slow)
        names.answers.set()
        assert await asyncio.gather(*slow) == [("127.0.0.1",)] * 40

    asyncio.run(scenario())


def test_dials_to_slow_names_hold_up_no_dial_to_another_name() -> None:
    """Through the system's resolver, as the ends use it."""

    async def scenario() -> None:
        listener = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        ends: list[DialFailed | None] = []
        dials = Dials(Resolver())
        async with listener:
            slow = [
                dials.start(f"slow-{number}:{port}", asyncio.Protocol, lambda _failed, _seconds: None)
                for number in range(40)
            ]
            await until(lambda: len(asked) == 40)
            dials.start(f"quick:{port}", asyncio.Protocol, lambda failed, _seconds: ends.append(failed))
            await until(lambda: ends)
            assert ends == [None]
            for each in slow:
                dials.stop(each)
            names.answers.set()

    names = NameServer()
    asked = names.asked
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", lambda host, *_, **__: [(0, 0, 0, "", (names(host)[0], 0))])
        asyncio.run(scenario())


def test_name_is_looked_up_once_for_all_who_ask_and_kept_for_seconds() -> None:
    async def scenario() -> None:
        names, clock = NameServer(), Clock()
        resolver = Resolver(names, clock)
        asking = [asyncio.create_task(resolver.addresses("slow")) for _ in range(5)]
        await until(lambda: names.asked)
        names.answers.set()
        await asyncio.gather(*asking)
        clock.now += 4.9
        await resolver.addresses("slow")
        assert names.asked == ["slow"]
        clock.now += 0.2
        await resolver.addresses("slow")
        assert names.asked == ["slow", "slow"]

    asyncio.run(scenario())


def test_missing_name_is_kept_for_a_second() -> None:
    async def scenario() -> None:
        names, clock = NameServer(), Clock()
        resolver = Resolver(names, clock)
        for _ in range(3):
            with pytest.raises(socket.gaierror):
                await resolver.addresses("no")
        assert names.asked == ["no"]
        clock.now += 1.1
        with pytest.raises(socket.gaierror):
            await resolver.addresses("no")
        assert names.asked == ["no", "no"]

    asyncio.run(scenario())


def test_names_that_are_waited_for_are_bounded_and_one_who_leaves_frees_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolving, "MOST_AWAITED", 3)
    monkeypatch.setattr(resolving, "MOST_THREADS", 5)

    async def scenario() -> None:
        names = NameServer()
        resolver = Resolver(names)
        slow = [asyncio.create_task(resolver.addresses(f"slow-{number}")) for number in range(3)]
        await until(lambda: len(names.asked) == 3)
        with pytest.raises(TooManyLookUps):
            await resolver.addresses("quick")
        again = asyncio.create_task(resolver.addresses("slow-0"))  # it needs no place of its own
        slow[2].cancel()
        await asyncio.wait([slow[2]])
        assert await resolver.addresses("quick") == ("127.0.0.1",)
        names.answers.set()
        assert list(await asyncio.gather(slow[0], slow[1], again)) == [("127.0.0.1",)] * 3

    asyncio.run(scenario())


def test_threads_that_nobody_waits_for_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "MOST_THREADS", 4)

    async def scenario() -> None:
        names = NameServer()
        resolver = Resolver(names)
        for number in range(4):
            asking = asyncio.create_task(resolver.addresses(f"slow-{number}"))
            await until(lambda number=number: len(names.asked) == number + 1)  # type: ignore[misc]
            asking.cancel()
            await asyncio.wait([asking])
        with pytest.raises(TooManyLookUps):
            await resolver.addresses("slow-5")
        names.answers.set()
        await until(lambda: not resolver._running)
        assert await resolver.addresses("slow-5") == ("127.0.0.1",)

    asyncio.run(scenario())


def test_name_without_a_thread_is_refused_and_looked_up_once_there_are_threads_again() -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scenario() -> None:
        resolver, ends = Resolver(NameServer()), list[DialFailed | None]()
        with pytest.MonkeyPatch.context() as without_threads:
            without_threads.setattr(threading.Thread, "start", refused)
            Dials(resolver).start("quick:80", asyncio.Protocol, lambda failed, _seconds: ends.append(failed))
            await until(lambda: ends)
        assert str(ends[0]) == "dial tcp: lookup quick: no thread is left to look it up"
        assert await resolver.addresses("quick") == ("127.0.0.1",)

    asyncio.run(scenario())
