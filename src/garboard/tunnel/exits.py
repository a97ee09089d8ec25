"""The sockets of the end that dials: carries out what an exchange decides for one Connect stream."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from garboard.tunnel.connections import Connection
from garboard.tunnel.dialling import DialFailed, Dials
from garboard.tunnel.exchange import CloseEndpoint, Deny, Dial, Effect, Exchange, Forget, Guard, StopDial, ToPeer
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.packets import Packet
from garboard.tunnel.pipes import Pipe
from garboard.tunnel.sockets import SocketEnd

log = logging.getLogger("garboard.tunnel")


class Stream(Protocol):
    """The Connect stream, as the exit uses it."""

    def send(self, message: bytes, connect_id: int = 0) -> None:
        """Send a packet, behind what the connection has sent before."""

    def open_pipe(self, connect_id: int, endpoint: "Endpoint") -> Pipe: ...

    def finish_pipe(self, connect_id: int) -> None: ...


class ExitObserver(Protocol):
    """Who counts and records what an exit does."""

    def dialled(self, address: str, seconds: float) -> None: ...

    def dial_failed(self, address: str, failed: DialFailed, seconds: float) -> None: ...

    def dial_stopped(self, address: str, seconds: float) -> None: ...

    def denied(self, address: str, error: str) -> None: ...

    def closed(self, endpoint: "Endpoint") -> None: ...

    def stalled(self, address: str) -> None: ...


class Endpoint(SocketEnd):
    """The socket to an endpoint; what it says before the peer knows of it waits in the kernel."""

    pipe: Pipe | None = None

    def __init__(self, way_out: "Exit", connection: Connection, watch: StallWatch) -> None:
        super().__init__(watch)
        self._exit = way_out
        self.connection = connection
        self.opened_at = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._exit.opened(self)

    def data_received(self, data: bytes) -> None:
        if self.pipe is not None:
            self.pipe.send_all(data, self)
            self.take(len(data))  # afterwards: what went on at once has not stopped the reading

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._exit.endpoint_closed(self, "" if exc is None else str(exc))

    def give_up(self) -> None:
        self._exit.endpoint_stalled(self)


class Exit:
    """Dials, and owns the sockets it dialled."""

    def __init__(
        self, stream: Stream, ids: Iterator[int], observer: ExitObserver, watch: StallWatch, guard: Guard | None = None
    ) -> None:
        self._stream = stream
        self._observer = observer
        self._watch = watch
        self._exchange = Exchange(ids, guard) if guard else Exchange(ids)
        self._under_way = Dials()
        self._dials: dict[Connection, asyncio.Task[None]] = {}
        self.endpoints: dict[Connection, Endpoint] = {}
        self._deeds: dict[type, Callable[[Any], None]] = {
            ToPeer: self._tell_peer,
            Dial: self._dial,
            StopDial: self._stop_dial,
            Deny: self._deny,
            Forget: self._forget,
            CloseEndpoint: self._close,
        }

    def peer_said(self, packet: Packet) -> None:
        self._perform(self._exchange.peer_said(packet))

    def is_dialling(self, random: int) -> bool:
        return self._exchange.is_dialling(random)

    def peer_lost(self) -> None:
        self._perform(self._exchange.peer_lost())

    def keep_alive(self) -> None:
        """Look after the sockets that have come since the last time: most connections are shorter than that."""
        for endpoint in self.endpoints.values():
            endpoint.keep_alive()

    def close_all(self) -> int:
        """Close every connection with a word to the peer; how many there were is returned."""
        endpoints = list(self.endpoints.values())
        for endpoint in endpoints:
            self._perform(self._exchange.endpoint_closed(endpoint.connection, "the program is stopping"))
            endpoint.flush_and_close()
        return len(endpoints)

    # What the endpoints tell.

    def opened(self, endpoint: Endpoint) -> None:
        connection = endpoint.connection
        self.endpoints[connection] = endpoint
        endpoint.pipe = self._stream.open_pipe(connection.connect_id, endpoint)
        self._perform(self._exchange.dialled(connection))

    def endpoint_closed(self, endpoint: Endpoint, error: str) -> None:
        if self.endpoints.pop(endpoint.connection, None) is not None:
            self._observer.closed(endpoint)
        self._perform(self._exchange.endpoint_closed(endpoint.connection, error))

    def endpoint_stalled(self, endpoint: Endpoint) -> None:
        self._observer.stalled(endpoint.connection.address)
        self._perform(self._exchange.endpoint_stalled(endpoint.connection))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._deeds[type(effect)](effect)

    def _tell_peer(self, effect: ToPeer) -> None:
        message, connection = effect
        self._stream.send(message, connection.connect_id if connection is not None else 0)

    def _dial(self, effect: Dial) -> None:
        connection = effect.connection
        self._dials[connection] = self._under_way.start(
            connection.address,
            lambda: Endpoint(self, connection, self._watch),
            lambda failed, seconds: self._dialled(connection, failed, seconds),
        )

    def _dialled(self, connection: Connection, failed: DialFailed | None, seconds: float) -> None:
        self._dials.pop(connection, None)
        if failed is None:
            self._observer.dialled(connection.address, seconds)
        else:
            self._observer.dial_failed(connection.address, failed, seconds)
            self._perform(self._exchange.dial_failed(connection, str(failed)))

    def _stop_dial(self, effect: StopDial) -> None:
        task = self._dials.pop(effect.connection, None)
        if task is not None:
            self._observer.dial_stopped(effect.connection.address, self._under_way.stop(task))

    def _deny(self, effect: Deny) -> None:
        self._observer.denied(effect.address, effect.error)

    def _forget(self, effect: Forget) -> None:
        self._stream.finish_pipe(effect.connection.connect_id)

    def _close(self, effect: CloseEndpoint) -> None:
        endpoint = self.endpoints.get(effect.connection)
        if endpoint is not None:
            endpoint.cut() if effect.is_cut else endpoint.flush_and_close()
