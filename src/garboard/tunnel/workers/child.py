"""One worker as its supervisor sees it: the process, what it said last, and the pages that it is asked for."""

import asyncio
import itertools
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from garboard.errors import NotReady
from garboard.tunnel.workers.control import Control
from garboard.tunnel.workers.merging import Families, read_families
from garboard.tunnel.workers.messages import (
    Agents,
    Ask,
    ControlMessage,
    Failed,
    Listening,
    PageAnswer,
    PeersHeard,
    Reloaded,
    Stopped,
)

ANSWER_S: Final = 5.0
ResultT = TypeVar("ResultT")


class WorkerProcess(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Its status once it has ended."""

    def kill(self) -> None:
        """Nothing happens if it has ended."""


StartWorker = Callable[[int, socket.socket], Awaitable[WorkerProcess]]  # its number, and its end of the control socket


class Child:
    """A worker by its number; the process behind it may be another one after a while."""

    def __init__(self, number: int, server_id: str, on_change: Callable[[], None]) -> None:
        self.number = number
        self.server_id = server_id
        self._on_change = on_change
        self._ask_numbers = itertools.count(1)
        self.starts = 0
        self.metrics: Families = {}  # as they were told last
        self.cut_connections = 0
        self.process: WorkerProcess | None = None
        self.forget()

    def forget(self) -> None:
        """A new process begins, or none is left."""
        self.control: Control | None = None
        self.is_begun = False  # it was told what to serve
        self.is_listening = False
        self.agents: dict[str, int] = {}
        self.peers_heard = 0  # the number of what it was told last of the others
        self.failure: NotReady | None = None
        self.began_at = time.monotonic()
        self.unanswered = 0  # questions in a row
        self._asked: dict[int, asyncio.Future[PageAnswer]] = {}
        self._reloads: dict[int, asyncio.Future[str]] = {}

    def close(self) -> None:
        """The process has ended: nothing that it was asked for is answered."""
        if self.control is not None:
            self.control.close()
        waiting: list[asyncio.Future[PageAnswer] | asyncio.Future[str]] = [
            *self._asked.values(),
            *self._reloads.values(),
        ]
        for each in waiting:
            each.cancel()
        self.forget()
        self._on_change()

    def refuse(self, reason: str, hint: str | None = None) -> None:
        """The process cannot be used."""
        self.failure = NotReady(reason, hint=hint)
        if self.process is not None:
            self.process.kill()

    def last_words(self) -> NotReady | None:
        """Why the process could not begin, if it said so before it ended."""
        if self.control is not None:
            self.control.read_rest()
        return self.failure

    def take(self, message: ControlMessage) -> None:
        """What the worker says after its first words."""
        match message:
            case Listening():
                self.is_listening = True
                self._on_change()
            case Failed(text, hint, error_class):
                self.failure = NotReady(text, hint=hint or None, error_class=error_class or None)
            case Agents(by_tenant):
                self.agents = by_tenant
                self._on_change()
            case PeersHeard(number):
                self.peers_heard = number
            case PageAnswer(number) if number in self._asked:
                _settle(self._asked.pop(number), message)
            case Reloaded(number, problem) if number in self._reloads:
                _settle(self._reloads.pop(number), problem)
            case Stopped(cut_connections):
                self.cut_connections = cut_connections
            case _:
                pass  # an answer that nobody waits for any more

    async def ask(self, path: str, query: Mapping[str, str], timeout_s: float) -> PageAnswer | None:
        """A page of the worker; None if it does not answer in time."""
        if self.control is None or not self.is_begun:
            return None
        number = next(self._ask_numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self.control.send(Ask(number, path, dict(query)))
        done, _ = await asyncio.wait([answer], timeout=timeout_s)
        self._asked.pop(number, None)
        return answer.result() if done and not answer.cancelled() else None

    async def count(self, timeout_s: float = ANSWER_S) -> None:
        """Hear what the worker has counted by now, and keep it."""
        answer = await self.ask("/metrics", {}, timeout_s)
        self.unanswered = self.unanswered + 1 if answer is None else 0
        if answer is not None and answer.status == HTTPStatus.OK:
            self.metrics = read_families(answer.text)

    def reload_answer(self, number: int) -> "asyncio.Future[str]":
        """The problem that the worker has with the tenants of this number, or none."""
        return self._reloads.setdefault(number, asyncio.get_running_loop().create_future())


def _settle(future: "asyncio.Future[ResultT]", result: ResultT) -> None:
    if not future.done():
        future.set_result(result)
