"""The asyncio driver's core: one connection as a protocol of the event loop.

Bytes are read into a reused buffer and written at most once per turn of the loop. Back-pressure is kept on both
sides: HTTP/2 windows hold the peer back, and a transport that is full stops the streams, whose queues are bounded.
"""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable
from typing import Final, cast
from weakref import WeakKeyDictionary

from garboard.rpc.calls import Call, CallEnded, CallStarted, MessagesReceived, PeerEnded, ServerCall
from garboard.rpc.endpoint import Endpoint, EndpointEvent
from garboard.rpc.events import ConnectionEnded, GoingAway, PeerSettled, PingAcknowledged
from garboard.rpc.keepalive import Keepalive, KeepaliveAction, KeepaliveConfig
from garboard.rpc.violations import ErrorCode

READ_BYTES: Final = 256 * 1024
WRITE_BYTES: Final = 256 * 1024
HANDSHAKE_TIMEOUT_S: Final = 10.0
GOODBYE_TIMEOUT_S: Final = 1.0
KEEPALIVE_PING: Final = b"keepaliv"

log = logging.getLogger("garboard.rpc")

# What is read is taken in before the loop reads again, so the connections of a loop can share one buffer: an idle
# connection costs nothing for it, and no read pays for a large allocation.
_buffers: "WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview]" = WeakKeyDictionary()


def _shared_buffer(loop: asyncio.AbstractEventLoop) -> memoryview:
    buffer = _buffers.get(loop)
    if buffer is None:
        buffer = _buffers[loop] = memoryview(bytearray(READ_BYTES))
    return buffer


class AioLink(asyncio.BufferedProtocol):
    """An endpoint on a transport. `on_call` gets every call of the peer, `on_change` what may free or end things."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        on_call: Callable[["AioLink", ServerCall], None] | None = None,
        on_change: Callable[["AioLink"], None] | None = None,
        keepalive: KeepaliveConfig | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._outbox = endpoint.http.outbox
        self.loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self.loop.create_future()
        self.settled: asyncio.Future[None] = self.loop.create_future()
        self.transport: asyncio.Transport | None = None
        self.farewell = ""
        self.peer_is_leaving = False  # it said so, and not for a mistake
        self._on_call = on_call
        self._on_change = on_change
        self._buffer = _shared_buffer(self.loop)
        self._keepalive = Keepalive(keepalive, self.loop.time()) if keepalive else None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._round_trips: dict[bytes, asyncio.Future[float]] = {}
        self._is_paused = False
        self._will_flush = False

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asserted: the transports of other event loops only look like asyncio's.
        self.transport = transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(high=2 * WRITE_BYTES)
        secure: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if secure is not None and secure.selected_alpn_protocol() != "h2":
            self.abort("the TLS peer did not agree to speak h2")
            return
        self._timers["handshake"] = self.loop.call_later(HANDSHAKE_TIMEOUT_S, self._check_settled)
        if self._keepalive is not None:
            self._keep_alive()
        self._changed()
        self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._keepalive is not None:
            self._keepalive.heard(self.loop.time())
        self._will_flush = True  # below, with whatever the messages lead to
        for event in self.endpoint.receive_data(self._buffer[:nbytes]):
            if type(event) is MessagesReceived:
                listener = event.call.listener
                if listener is not None:
                    listener.messages_received(event.messages)
            else:
                self._on_event(event)
        self._flush()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        reason = self.farewell or (f"connection lost: {exc}" if exc else "the peer closed the connection")
        for timer in self._timers.values():
            timer.cancel()
        for ended in self.endpoint.close(reason):
            self._tell_ended(ended)
        self.settled.cancel()
        self.lost.set_result(reason)
        self._changed()
        # Nothing of a link should wait for the garbage collector, which comes rarely; least of all the buffers of TLS.
        self._timers.clear()
        self._on_call = self._on_change = self.transport = None

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._flush()

    # What calls and their owners use.

    @property
    def is_lost(self) -> bool:
        return self.lost.done()

    def poke(self) -> None:
        """Something may wait to be sent: send it at the end of this turn of the loop."""
        if not self._will_flush and not self._is_paused and not self._outbox.is_empty:
            self._will_flush = True
            self.loop.call_soon(self._flush)

    async def round_trip(self, timeout_s: float) -> float:
        """How long the peer takes to answer a ping, in seconds. Raises `TimeoutError`."""
        payload = secrets.token_bytes(8)
        answer: asyncio.Future[float] = self.loop.create_future()
        self._round_trips[payload] = answer
        began = self.loop.time()
        try:
            self.endpoint.http.ping(payload)
            self._flush()
            async with asyncio.timeout(timeout_s):
                return await answer - began
        finally:
            del self._round_trips[payload]

    def check_peer(self) -> None:
        """Ping the peer now, and give the connection up if nothing comes back in the time for that."""
        if self._keepalive is not None and not self.is_lost and self._keepalive.ask(self.loop.time()):
            self.endpoint.http.ping(KEEPALIVE_PING)
            self._flush()
            self._timers["keepalive"].cancel()
            self._keep_alive()

    def close(self, reason: str = "closed by us", code: ErrorCode = ErrorCode.NO_ERROR) -> None:
        """Say goodbye and close; calls that are open end."""
        for ended in self.endpoint.close(reason, code):
            self._tell_ended(ended)
        self._say_goodbye()

    def abort(self, reason: str) -> None:
        self.farewell = reason
        if self.transport is not None:
            self.transport.abort()

    def _flush(self) -> None:
        self._will_flush = False
        if self._is_paused or self.transport is None:
            return
        outbox = self._outbox
        if not outbox.is_empty:
            self.transport.write(self.endpoint.data_to_send(WRITE_BYTES))
            self._will_flush = not outbox.is_empty
            if self._will_flush:
                self.loop.call_soon(self._flush)
        if outbox.writable:
            for call in self.endpoint.take_writable():
                if call.listener is not None:
                    call.listener.writable()

    def _on_event(self, event: EndpointEvent) -> None:
        match event:
            case CallStarted(call):
                self._tell_started(call)
            case PeerEnded(call):
                if call.listener is not None:
                    call.listener.peer_ended()
            case CallEnded():
                self._tell_ended(event)
                self._changed()
            case PeerSettled():
                self.settled.set_result(None)
                self._timers["handshake"].cancel()
                self._changed()
            case GoingAway(code, debug):
                self.peer_is_leaving = code is ErrorCode.NO_ERROR
                self.farewell = f"the peer is going away ({code.name}{': ' + debug if debug else ''})"
                if debug == "too_many_pings" and self._keepalive is not None:
                    self._keepalive.slow_down()
                self._changed()
            case ConnectionEnded(code, reason):
                log.warning("rpc.connection.refused code=%s reason=%r", code.name, reason)
                self.farewell = reason
                self._say_goodbye()
            case PingAcknowledged(payload):
                if (answer := self._round_trips.get(payload)) is not None and not answer.done():
                    answer.set_result(self.loop.time())
            case _:
                pass

    def _tell_started(self, call: Call) -> None:
        if call.listener is not None:
            call.listener.started()
        elif self._on_call is not None and isinstance(call, ServerCall):
            self._on_call(self, call)

    def _tell_ended(self, event: CallEnded) -> None:
        listener, event.call.listener = event.call.listener, None
        if listener is not None:
            listener.ended(event.status)

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)

    def _say_goodbye(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(self.endpoint.data_to_send())
            self.transport.close()
            # The peer may never read what we have for it, nor end TLS from its side.
            self._timers["goodbye"] = self.loop.call_later(GOODBYE_TIMEOUT_S, self.transport.abort)

    def _check_settled(self) -> None:
        if not self.settled.done():
            self.abort("the peer did not begin to speak HTTP/2 in time")

    def _keep_alive(self) -> None:
        assert self._keepalive is not None
        now = self.loop.time()
        action, again_at = self._keepalive.decide(now, has_calls=bool(self.endpoint.calls))
        if action is KeepaliveAction.GIVE_UP:
            self.abort("the peer did not answer a keepalive ping")
            return
        if action is KeepaliveAction.PING:
            self.endpoint.http.ping(KEEPALIVE_PING)
            self._flush()
        self._timers["keepalive"] = self.loop.call_later(max(again_at - now, 0.001), self._keep_alive)
