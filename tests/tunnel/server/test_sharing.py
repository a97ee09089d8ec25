"""Workers that accept from one socket."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.sharing import SharedListener, Sharing
from tests.support.tunnel.ends import until

CLIENTS = 40


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket with clients that nobody has accepted yet."""
    path = str(tmp_path / "q.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(CLIENTS)
        listener.setblocking(False)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(CLIENTS)]
        for each in clients:
            each.connect(path)
        yield listener
        for each in clients:
            each.close()


class Accepted:
    """The protocols that one worker made."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> asyncio.Protocol:
        self.count += 1
        return asyncio.Protocol()


def test_no_worker_takes_all_of_the_queue(queue: socket.socket) -> None:
    async def scenario() -> None:
        both = [Accepted(), Accepted()]
        listeners = [SharedListener(each, [queue]) for each in both]
        await until(lambda: sum(each.count for each in both) == CLIENTS)
        for listener in listeners:
            listener.close()
        assert min(each.count for each in both) > CLIENTS // 4

    asyncio.run(scenario())


def test_worker_that_is_not_open_leaves_the_queue_to_the_other(queue: socket.socket) -> None:
    async def scenario() -> None:
        closed, open_ = Accepted(), Accepted()
        first, second = SharedListener(closed, [queue]), SharedListener(open_, [queue])
        first.set_open(False)
        await until(lambda: open_.count == CLIENTS)
        assert closed.count == 0
        first.set_open(True)
        second.close()
        with socket.socket(socket.AF_UNIX) as late:
            late.connect(queue.getsockname())
            await until(lambda: closed.count == 1)
        first.close()

    asyncio.run(scenario())


def test_worker_that_cannot_accept_pauses_and_goes_on(
    queue: socket.socket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("garboard.tunnel.server.sharing.PAUSE_S", 0.05)

    class Failing:
        """Its first accept finds no descriptor left."""

        has_failed = False

        def __init__(self, inner: socket.socket) -> None:
            self._inner = inner

        def dup(self) -> "Failing":
            return self

        def accept(self) -> object:
            if not self.has_failed:
                self.has_failed = True
                raise OSError(24, "Too many open files")
            return self._inner.accept()

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    async def scenario() -> None:
        accepted = Accepted()
        listener = SharedListener(accepted, [Failing(queue.dup())])  # type: ignore[list-item]
        await until(lambda: accepted.count == CLIENTS)
        listener.close()

    asyncio.run(scenario())
    assert 'reason="Too many open files"' in caplog.text


@pytest.mark.parametrize(
    ("own", "most", "takes"),
    [
        pytest.param(0, 0, True, id="nobody has agents: it says so"),
        pytest.param(0, 1, False, id="another has one"),
        pytest.param(1, 1, True, id="as many as any"),
        pytest.param(3, 10, False, id="it has only just begun"),
        pytest.param(5, 10, True, id="half of them have come"),
    ],
)
def test_clients_go_to_workers_that_have_agents(own: int, most: int, takes: bool) -> None:
    sharing = Sharing(ServerIdentity("s-0", 2), most_agents={"a": most, "b": 100})
    assert sharing.takes_clients("a", own) is takes
