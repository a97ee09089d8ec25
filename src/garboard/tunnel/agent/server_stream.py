"""The Connect stream to one proxy server, and the endpoint sockets it carries."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from garboard.rpc import ClientCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.rpc.wire import BadWire
from garboard.tunnel.agent.connections import Connection
from garboard.tunnel.agent.dialling import DialFailed, dial
from garboard.tunnel.agent.exchange import DRAIN, CloseEndpoint, Dial, Effect, Exchange, StopDial, ToEndpoint, ToServer
from garboard.tunnel.flow import MAX_PAYLOAD, NOBODY, FairSender, Patience, Source
from garboard.tunnel.metrics import Counter, Histogram
from garboard.tunnel.packets import counted_type_of, data_header, payload_of, peek_data
from garboard.tunnel.sockets import SocketEnd

DIAL_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)

log = logging.getLogger("garboard.tunnel")


class AgentCounts:
    """What the streams of an agent count together."""

    def __init__(self) -> None:
        self.packets = Counter("segment", "packet_type")
        self.dial_seconds = Histogram(DIAL_BUCKETS)
        self.dial_failures = Counter("reason")
        self.connection_failures = Counter("direction")
        self.stalled = Counter()
        self.data_in = self.packets.of("from_server", "DATA")
        self.data_out = self.packets.of("to_server", "DATA")


class Endpoint(SocketEnd):
    """The socket to an endpoint; what it says before the server knows of it waits in the kernel."""

    def __init__(self, stream: "ServerStream", connection: Connection, patience: Patience) -> None:
        super().__init__(patience)
        self._stream = stream
        self.connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._stream.dialled(self)

    def data_received(self, data: bytes) -> None:
        self.take(len(data))
        self._stream.send_payload(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stream.endpoint_closed(self, "" if exc is None else str(exc))


class ServerStream:
    """Listens to the call (`CallListener`), carries out what the protocol decides, and is the source of its packets."""

    def __init__(
        self,
        link: AioLink,
        call: ClientCall,
        *,
        ids: Iterator[int],
        counts: AgentCounts,
        patience: Patience,
        on_end: Callable[["ServerStream", str], None],
    ) -> None:
        self.link = link
        self.call = call
        self.endpoints: dict[Connection, Endpoint] = {}
        self.begun: asyncio.Future[None] = link.loop.create_future()
        self._exchange = Exchange(ids)
        self._sender = FairSender(link, call)
        self._dials: dict[Connection, asyncio.Task[None]] = {}
        self._counts = counts
        self._patience = patience
        self._on_end = on_end
        call.listener = self

    def drain(self) -> None:
        """Tell the server to prefer others."""
        self._send(DRAIN, None)

    def check_stalled(self, now: float) -> None:
        for connection, endpoint in list(self.endpoints.items()):
            if endpoint.outflow.is_stalled(now):
                self._counts.stalled.of().value += 1
                self._perform(self._exchange.endpoint_stalled(connection))

    # CallListener and Source.

    def release(self, size: int) -> None:
        self.call.consume(size)
        self.link.poke()

    def started(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def messages_received(self, messages: list[bytes]) -> None:
        for message in messages:
            if peek_data(message) is None:
                self._counts.packets.of("from_server", counted_type_of(message)).value += 1
            else:
                self._counts.data_in.value += 1
            try:
                effects = self._exchange.server_said(message)
            except BadWire as error:
                status = Status(StatusCode.INTERNAL, f"the server sent what is no packet: {error.message}")
                self.call.abort(status)
                self.ended(status)
                return
            self._perform(effects, message, self)

    def peer_ended(self) -> None:
        pass  # a server ends a call with its status

    def writable(self) -> None:
        self._sender.writable()

    def ended(self, status: Status) -> None:
        self._sender.clear()
        self._perform(self._exchange.server_lost())
        self.started()
        self._on_end(self, status.message or status.code.name)

    # Endpoints.

    def dialled(self, endpoint: Endpoint) -> None:
        self.endpoints[endpoint.connection] = endpoint
        self._perform(self._exchange.dialled(endpoint.connection))

    def endpoint_closed(self, endpoint: Endpoint, error: str) -> None:
        self.endpoints.pop(endpoint.connection, None)
        self._perform(self._exchange.endpoint_closed(endpoint.connection, error))

    def send_payload(self, endpoint: Endpoint, data: bytes) -> None:
        connection, view = endpoint.connection, memoryview(data)
        for start in range(0, len(data), MAX_PAYLOAD):
            chunk = view[start : start + MAX_PAYLOAD]
            header = data_header(connection.connect_id, len(chunk))
            self._counts.data_out.value += 1
            self._sender.send(connection, (header, chunk), len(chunk), endpoint)

    def _perform(self, effects: list[Effect], message: bytes = b"", source: Source = NOBODY) -> None:
        has_gone_on = False
        for effect in effects:
            if type(effect) is ToEndpoint:
                has_gone_on = True
                self.endpoints[effect.connection].deliver(payload_of(message), len(message), source)
            else:
                self._do(effect)
        if not has_gone_on:
            source.release(len(message))

    def _do(self, effect: Effect) -> None:
        match effect:
            case ToServer(packet, connection):
                self._send(packet, connection)
            case Dial(connection):
                self._dials[connection] = self.link.loop.create_task(self._dial(connection))
            case StopDial(connection):
                task = self._dials.pop(connection, None)
                if task is not None:
                    task.cancel()
            case CloseEndpoint(connection, is_cut):
                endpoint = self.endpoints.get(connection)
                if endpoint is not None:
                    endpoint.cut() if is_cut else endpoint.flush_and_close()

    def _send(self, message: bytes, connection: Connection | None) -> None:
        self._counts.packets.of("to_server", counted_type_of(message)).value += 1
        self._sender.send(connection, (message,), 0, NOBODY)

    async def _dial(self, connection: Connection) -> None:
        began = time.monotonic()
        try:
            await dial(connection.address, lambda: Endpoint(self, connection, self._patience))
            self._counts.dial_seconds.observe(time.monotonic() - began)
        except DialFailed as failed:
            self._counts.dial_failures.of("timeout" if failed.is_timeout else "unknown").value += 1
            log.info("endpoint.dial.failed address=%s error=%s", connection.address, failed)
            self._perform(self._exchange.dial_failed(connection, str(failed)))
        finally:
            self._dials.pop(connection, None)
