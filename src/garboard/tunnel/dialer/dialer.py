"""The sockets of the end that dials: carries out what the protocol decides for one Connect stream."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from garboard.tunnel.dialer.dialling import DialFailed, Dials
from garboard.tunnel.dialer.protocol import (
    CLOSE,
    CloseEndpoint,
    Deny,
    Dial,
    DialerEffect,
    DialerProtocol,
    Ending,
    ForgetConnection,
    Guard,
    StopDial,
    ToPeer,
)
from garboard.tunnel.dialer.resolving import Resolver
from garboard.tunnel.dialer.states import EndpointConnection
from garboard.tunnel.wire.flow import StallWatch
from garboard.tunnel.wire.packets import STOPPING, DialRequest, Packet
from garboard.tunnel.wire.pipes import Pipe
from garboard.tunnel.wire.sockets import SocketEnd

log = logging.getLogger("garboard.tunnel")


class DialerStream(Protocol):
    """The Connect stream, as the dialer uses it."""

    def send(self, message: bytes, connect_id: int = 0) -> None:
        """Send a packet, behind what the connection has sent before."""

    def open_pipe(self, connect_id: int, endpoint: "EndpointSocket") -> Pipe: ...

    def finish_pipe(self, connect_id: int) -> None: ...


class DialerObserver(Protocol):
    """Counts and records what a dialer does."""

    def dialling(self, connection: EndpointConnection) -> None: ...

    def dialled(self, connection: EndpointConnection, seconds: float) -> None: ...

    def dial_failed(self, connection: EndpointConnection, failed: DialFailed, seconds: float) -> None: ...

    def dial_stopped(self, connection: EndpointConnection, seconds: float) -> None: ...

    def denied(self, request: DialRequest, error: str) -> None: ...

    def closed(self, endpoint: "EndpointSocket") -> None: ...

    def stalled(self, connection: EndpointConnection) -> None: ...


class EndpointSocket(SocketEnd):
    """The socket to an endpoint; what it sends before the peer knows of the connection waits in the kernel."""

    pipe: Pipe | None = None

    def __init__(self, dialer: "Dialer", connection: EndpointConnection, watch: StallWatch) -> None:
        super().__init__(watch)
        self._dialer = dialer
        self.connection = connection
        self.opened_at = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._dialer.opened(self)

    def data_received(self, data: bytes) -> None:
        if self.pipe is not None and not self._is_closing:
            self.pipe.send_all(data, self)
            self.take(len(data))  # afterwards: what went on at once has not stopped the reading
        else:
            super().data_received(data)

    def eof_received(self) -> bool:
        """The endpoint sends no more, which closes the connection; what waits for it is written first."""
        stays = super().eof_received()
        self._dialer.endpoint_ended(self)
        self.flush_and_close()
        return stays

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._dialer.endpoint_closed(self, "" if exc is None else str(exc))

    def give_up(self) -> None:
        if self._is_closing:
            self.cut()
        else:
            self._dialer.endpoint_stalled(self)


class Dialer:
    """Dials, and owns the sockets it dialled."""

    def __init__(
        self,
        stream: DialerStream,
        ids: Iterator[int],
        observer: DialerObserver,
        watch: StallWatch,
        resolver: Resolver,
        guard: Guard | None = None,
    ) -> None:
        self._stream = stream
        self._observer = observer
        self._watch = watch
        self._protocol = DialerProtocol(ids, guard) if guard else DialerProtocol(ids)
        self._under_way = Dials(resolver)
        self._dials: dict[EndpointConnection, asyncio.Task[None]] = {}
        self.endpoints: dict[EndpointConnection, EndpointSocket] = {}

    def peer_sent(self, packet: Packet) -> None:
        self._perform(self._protocol.peer_sent(packet))

    def is_dialling(self, random: int) -> bool:
        return self._protocol.is_dialling(random)

    def peer_lost(self) -> None:
        self._perform(self._protocol.peer_lost())

    def keep_alive(self) -> None:
        """Turn TCP keepalive on for sockets opened since the last call: most connections do not live that long."""
        for endpoint in self.endpoints.values():
            endpoint.keep_alive()

    def close_all(self) -> int:
        """Reset every connection and send the peer a CLOSE_RSP for each; how many there were is returned."""
        endpoints = list(self.endpoints.values())
        for endpoint in endpoints:
            self._perform(self._protocol.endpoint_closed(endpoint.connection, STOPPING))
            endpoint.cut()
        return len(endpoints)

    # What the endpoints report.

    def opened(self, endpoint: EndpointSocket) -> None:
        connection = endpoint.connection
        self.endpoints[connection] = endpoint
        endpoint.pipe = self._stream.open_pipe(connection.connect_id, endpoint)
        self._perform(self._protocol.dialled(connection))

    def endpoint_ended(self, endpoint: EndpointSocket) -> None:
        self._perform(self._protocol.endpoint_closed(endpoint.connection))

    def endpoint_closed(self, endpoint: EndpointSocket, error: str) -> None:
        if self.endpoints.pop(endpoint.connection, None) is not None:
            self._observer.closed(endpoint)
        self._perform(self._protocol.endpoint_closed(endpoint.connection, error))

    def endpoint_stalled(self, endpoint: EndpointSocket) -> None:
        self._observer.stalled(endpoint.connection)
        self._perform(self._protocol.endpoint_stalled(endpoint.connection))

    def _perform(self, effects: list[DialerEffect]) -> None:
        for effect in effects:
            _HANDLERS[type(effect)](self, effect)

    def _send_to_peer(self, effect: ToPeer) -> None:
        message, connection = effect
        self._stream.send(message, connection.connect_id if connection is not None else 0)

    def _dial(self, effect: Dial) -> None:
        connection = effect.connection
        self._observer.dialling(connection)
        self._dials[connection] = self._under_way.start(
            connection.address,
            lambda: EndpointSocket(self, connection, self._watch),
            lambda failed, seconds: self._dialled(connection, failed, seconds),
        )

    def _dialled(self, connection: EndpointConnection, failed: DialFailed | None, seconds: float) -> None:
        self._dials.pop(connection, None)
        if failed is None:
            self._observer.dialled(connection, seconds)
        else:
            self._observer.dial_failed(connection, failed, seconds)
            self._perform(self._protocol.dial_failed(connection, str(failed)))

    def _stop_dial(self, effect: StopDial) -> None:
        task = self._dials.pop(effect.connection, None)
        if task is not None:
            self._observer.dial_stopped(effect.connection, self._under_way.stop(task))

    def _deny(self, effect: Deny) -> None:
        self._observer.denied(effect.request, effect.error)

    def _forget(self, effect: ForgetConnection) -> None:
        self._stream.finish_pipe(effect.connection.connect_id)

    def _close(self, effect: CloseEndpoint) -> None:
        endpoint = self.endpoints.get(effect.connection)
        if endpoint is None:
            return
        if effect.ending is CLOSE:  # first, and by a name of its own: it is how nearly all of them end
            endpoint.flush_and_close()
        elif effect.ending is Ending.RESET:
            endpoint.flush_and_reset()
        else:
            endpoint.cut()

    @classmethod
    def handlers(cls) -> "dict[type, Callable[[Dialer, Any], None]]":
        """Return the methods by the type of an effect. What held its own would wait for the garbage collector."""
        return {
            ToPeer: cls._send_to_peer,
            Dial: cls._dial,
            StopDial: cls._stop_dial,
            Deny: cls._deny,
            ForgetConnection: cls._forget,
            CloseEndpoint: cls._close,
        }


_HANDLERS: Final = Dialer.handlers()
