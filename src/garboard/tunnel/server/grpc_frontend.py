"""The gRPC frontend: one Proxy stream of an API server, which carries one connection."""

from garboard.rpc import ServerCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.rpc.wire import BadWire
from garboard.tunnel.frontend.protocol import STALLED
from garboard.tunnel.frontend.states import Tunnel, TunnelState
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.flow import MAX_PAYLOAD, NO_SOURCE, ByteSource, Chunk, Outflow
from garboard.tunnel.wire.packets import Packet, counted_type_of, data_header, encode_packet, peek_data, type_of
from garboard.tunnel.wire.pipes import Pipe


class GrpcFrontend:
    """Listens to the call (`CallListener`), and is source and sink of what it carries."""

    shares_credit = False
    takes_in_steps = True

    def __init__(self, proxy: Proxy, link: AioLink, call: ServerCall) -> None:
        self._proxy = proxy
        self._link = link
        self._call = call
        self._tunnel = Tunnel()
        self._pipe: Pipe | None = None
        self.outflow = Outflow(self, proxy.watch)
        self.outflow.waited = proxy.write_seconds.observe
        self.writes = 0
        self._data_from_client = proxy.packets.of("from_client", "DATA")
        self._data_to_client = proxy.packets.of("to_client", "DATA")
        proxy.frontends[self._tunnel] = self
        call.listener = self
        call.start()
        link.poke()

    # ByteSink and ByteSource.

    @property
    def has_room(self) -> bool:
        return self._call.has_room

    @property
    def backlog(self) -> int:
        return self._call.stream.queued_bytes

    @property
    def is_held_back(self) -> bool:
        return self._pipe is not None and bool(self._pipe.queue)

    def push(self, chunk: Chunk) -> None:
        self.writes += 1
        self._call.send(chunk)
        self._link.poke()

    def give_up(self) -> None:
        if self._tunnel.state is TunnelState.DONE:
            self._end(Status(StatusCode.RESOURCE_EXHAUSTED, STALLED))
        else:
            self._proxy.frontend_stalled(self._tunnel)

    def release(self, size: int) -> None:
        self._call.consume(size)
        self._link.poke()

    # Frontend.

    def deliver_data(self, message: bytes, start: int, source: ByteSource) -> None:
        if len(message) - start > MAX_PAYLOAD:
            self._deliver_in_parts(message, start, source)
            return
        self._data_to_client.value += 1
        self.outflow.put(message, len(message), source)

    def _deliver_in_parts(self, message: bytes, start: int, source: ByteSource) -> None:
        """An API server gives up a connection whose client does not take one packet in ten seconds."""
        data, overhead = memoryview(message)[start:], start
        for begin in range(0, len(data), MAX_PAYLOAD):
            part = data[begin : begin + MAX_PAYLOAD]
            self._data_to_client.value += 1
            packet = data_header(self._tunnel.connect_id, len(part)) + part
            self.outflow.put(packet, overhead + len(part), source)
            overhead = 0

    def opened(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def deliver_packet(self, packet: Packet) -> None:
        self._proxy.packets.of("to_client", type_of(packet).name).value += 1
        self.outflow.put(encode_packet(packet), 0, NO_SOURCE)
        if isinstance(packet, packets.CloseResponse):
            self._stop_listening()
            self.outflow.let_go()

    def disconnect(self) -> None:
        self._end(Status(StatusCode.UNAVAILABLE, "the proxy server is stopping"))

    # CallListener.

    def started(self) -> None:
        pass

    def messages_received(self, messages: list[bytes]) -> None:
        tunnel, pipe = self._tunnel, self._pipe
        for message in messages:
            found = peek_data(message)
            if found is not None:
                self._data_from_client.value += 1
                if pipe is not None and found[0] == tunnel.connect_id and tunnel.state is TunnelState.OPEN:
                    pipe.forward(message, self)
                    continue
            else:
                self._proxy.packets.of("from_client", counted_type_of(message)).value += 1
            try:
                self._proxy.frontend_sent(tunnel, message, self)
            except BadWire as error:
                self._end(Status(StatusCode.INVALID_ARGUMENT, error.message))
                return
            pipe = self._pipe

    def peer_ended(self) -> None:
        self._end(Status(StatusCode.OK))

    def writable(self) -> None:
        self.outflow.drain()

    def ended(self, status: Status) -> None:
        self._proxy.errors.ended("from_client", status)
        unsent = (counted_type_of(bytes(chunk)) for chunk in self.outflow.waiting())
        self._proxy.errors.not_sent("to_client", status, unsent)
        self._stop_listening()
        self.outflow.close()
        self._call.listener = None
        # One that leaves in good order may leave its streams open, as a client of Konnectivity does.
        self._proxy.frontend_gone(self._tunnel, was_cut=not status.is_ok and not self._link.peer_is_leaving)

    def _end(self, status: Status) -> None:
        self._call.finish(status)
        self.ended(status)
        self._link.poke()

    def _stop_listening(self) -> None:
        if self._pipe is not None:
            self._pipe.sink = None
