"""A call for coroutines: await its messages and its room; the quick path for callbacks is `CallListener`."""

import asyncio
from collections import deque
from typing import Final, Generic, TypeVar

from garboard.rpc.aio.link import AioLink
from garboard.rpc.calls import Call, ClientCall, ServerCall
from garboard.rpc.errors import RpcFailed
from garboard.rpc.metadata import Metadata
from garboard.rpc.status import OK, Status, StatusCode
from garboard.rpc.streams import Chunk

EXPIRED: Final = Status(StatusCode.DEADLINE_EXCEEDED, "the deadline has passed")

CallT = TypeVar("CallT", bound=Call)


class AioCall(Generic[CallT]):
    """Either side of a call. One task at a time may receive, and one may send."""

    def __init__(self, link: AioLink, call: CallT, timeout_s: float | None) -> None:
        self.call = call
        self.link = link
        self._messages: deque[bytes] = deque()
        self._no_more_messages = False
        self._receiver: asyncio.Future[None] | None = None
        self._sender: asyncio.Future[None] | None = None
        self._timer = link.loop.call_later(timeout_s, self._expire) if timeout_s is not None else None
        self._is_late = False  # whether the call ended when its deadline had passed
        call.listener = self

    @property
    def method(self) -> str:
        return self.call.method

    @property
    def metadata(self) -> Metadata:
        return self.call.metadata

    @property
    def status(self) -> Status | None:
        """How the call ended; None while it goes on."""
        return self.call.status

    async def send(self, *chunks: Chunk) -> None:
        """Queue one message as soon as there is room for it."""
        while not self.call.has_room and self.call.status is None:
            self._sender = self.link.loop.create_future()
            await self._sender
        self.call.send(*chunks)
        self.link.poke()

    async def receive(self) -> bytes | None:
        """The next message; None when there are no more. A call that failed raises `RpcFailed`."""
        while not self._messages:
            self._raise_failure()
            if self._no_more_messages:
                return None
            self._receiver = self.link.loop.create_future()
            await self._receiver
        message = self._messages.popleft()
        self.call.consume(len(message))
        self.link.poke()
        return message

    def __aiter__(self) -> "AioCall[CallT]":
        return self

    async def __anext__(self) -> bytes:
        message = await self.receive()
        if message is None:
            raise StopAsyncIteration
        return message

    def cancel(self, reason: str = "cancelled") -> None:
        """Give the call up; what it has not delivered is dropped."""
        self._stop(Status(StatusCode.CANCELLED, reason))

    # CallListener

    def started(self) -> None:
        """Nobody waits for a response to begin; its metadata are there with its first message."""

    def messages_received(self, messages: list[bytes]) -> None:
        self._messages.extend(messages)
        if self._receiver is not None:
            _wake(self._receiver)

    def peer_ended(self) -> None:
        self._no_more_messages = True
        _wake(self._receiver)

    def writable(self) -> None:
        _wake(self._sender)

    def ended(self, status: Status) -> None:
        self._no_more_messages = True
        if self._timer is not None:
            self._is_late = self.link.loop.time() >= self._timer.when()
            self._timer.cancel()
        for waiting in (self._receiver, self._sender):
            _wake(waiting)

    def _raise_failure(self) -> None:
        status = self.call.status
        if status is not None and not status.is_ok:
            raise RpcFailed(self.method, status)

    def _expire(self) -> None:
        self._stop(EXPIRED)

    def _stop(self, status: Status) -> None:
        if self.call.status is not None:
            return
        self.call.abort(status)
        while self._messages:
            self.call.consume(len(self._messages.popleft()))
        self.ended(status)
        self.link.poke()


class AioClientCall(AioCall[ClientCall]):
    """A call we made."""

    def _raise_failure(self) -> None:
        # A server resets a call whose time is up, and a busy loop may hear of that before its own clock rings.
        status = self.call.status
        if self._is_late and status is not None and status.code is StatusCode.CANCELLED:
            raise RpcFailed(self.method, EXPIRED)
        super()._raise_failure()

    def end_sending(self) -> None:
        self.call.end_sending()
        self.link.poke()


class AioServerCall(AioCall[ServerCall]):
    """A call of the peer; when the peer gives it up, the task that runs its handler is cancelled."""

    task: "asyncio.Task[None] | None" = None

    def ended(self, status: Status) -> None:
        super().ended(status)
        if self.task is not None:
            self.task.cancel()

    def start(self, metadata: Metadata = ()) -> None:
        """Send the response headers now; otherwise they go with the first message."""
        self.call.start(metadata)
        self.link.poke()

    def finish(self, status: Status = OK) -> None:
        """End the call; messages the handler left unread are dropped."""
        self.call.finish(status)
        while self._messages:
            self.call.consume(len(self._messages.popleft()))
        super().ended(status)
        self.link.poke()

    def _expire(self) -> None:
        # With a status and not a reset: it may arrive before the client's own clock has said the same.
        self.finish(EXPIRED)
        if self.task is not None:
            self.task.cancel()


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
