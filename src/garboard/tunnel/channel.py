"""One Connect stream with what it carries: connections the peer asks for, and connections we ask it for.

DATA goes straight to its pipe. Every other packet goes to the end it belongs to: the dialer, which dials for the
peer, or the tunnels, which have the peer dial. Ids tell them apart: agents count their connections in even numbers,
servers in odd ones.
"""

from abc import ABC, abstractmethod
from typing import Final

from garboard.rpc import Call, Status
from garboard.rpc.aio import AioLink
from garboard.rpc.wire import BadWire
from garboard.tunnel.dialer.dialer import Dialer
from garboard.tunnel.frontend.states import Backend
from garboard.tunnel.frontend.tunnels import Tunnels
from garboard.tunnel.metrics import Count, Counter, StreamErrors
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.flow import ByteSource
from garboard.tunnel.wire.packets import (
    Packet,
    counted_type_of,
    decode_packet,
    encode_packet,
    is_usual_start,
    peek_data,
)
from garboard.tunnel.wire.pipes import DataSink, Pipe, PipeSender

DRAIN: Final = encode_packet(packets.Drain())
OVERDRAWN = "more data on a connection than its credit allows"
_SERVERS: Final = (packets.ServersRequest, packets.ServersResponse)
_OF_A_CONNECTION: Final = frozenset({packets.CloseRequest, packets.CloseResponse, packets.Data})


class Channel(ABC):
    """The part of a Connect stream that is the same at both ends."""

    def __init__(self, link: AioLink, call: Call, counts: Counter, *, segments: tuple[str, str]) -> None:
        self.link = link
        self.call = call
        self.sender = PipeSender(link, call, counts.of(segments[1], "DATA"))
        self.dialer: Dialer | None = None
        self.dialer_parity = 0  # of the ids that our dialer gives
        self.tunnels: Tunnels | None = None
        self.backend: Backend | None = None
        self._from, self._to = segments
        self._received, self._sent = _ByType(counts, segments[0]), _ByType(counts, segments[1])
        self._data_in = counts.of(segments[0], "DATA")

    @abstractmethod
    def refuse(self, reason: str) -> None:
        """The peer sent what it must not: the stream is over."""

    @abstractmethod
    def servers_received(self, packet: packets.ServersRequest | packets.ServersResponse) -> None:
        """The question about the servers that are there, which a server answers, or the answer."""

    def messages_received(self, messages: list[bytes]) -> None:
        pipes, has_credit = self.sender.pipes, self.sender.has_credit
        data, consumed_bytes, consumed = 0, 0, 0
        for message in messages:
            found = peek_data(message)
            if found is not None and (pipe := pipes.get(found[0])) is not None:
                data += 1
                if not pipe.receive(message, found[1]):
                    self.refuse(OVERDRAWN)
                    return
                is_consumed = has_credit  # otherwise the pipe's receiver decides when
            else:
                try:
                    is_consumed = self._packet_received(message)
                except BadWire as error:
                    self.refuse(error.message)
                    return
            if is_consumed:
                consumed += 1
                consumed_bytes += len(message)
        self._data_in.value += data
        if consumed:
            self.call.consume(consumed_bytes, consumed)
            self.link.poke()

    def count_errors(self, errors: StreamErrors, status: Status) -> None:
        """The stream ended so: nothing more comes from the peer, and what waits does not reach it."""
        errors.ended(self._from, status)
        errors.not_sent(self._to, status, self.sender.waiting_types())

    # What the dialer and the tunnels use.

    def send(self, message: bytes, connect_id: int = 0) -> None:
        (self._sent.get(message[:2]) or self._sent.of(message)).value += 1
        pipe = self.sender.pipes.get(connect_id) if connect_id else None
        if pipe is None:
            self.sender.send_urgent(message)
        else:
            self.sender.send_last(pipe, message)

    def forward(self, connect_id: int, message: bytes, source: ByteSource) -> None:
        pipe = self.sender.pipes.get(connect_id)
        if pipe is None:
            source.release(len(message))
        else:
            pipe.forward(message, source)

    def open_pipe(self, connect_id: int, sink: DataSink) -> Pipe:
        return self.sender.open(connect_id, sink)

    def cut_pipe(self, connect_id: int, message: bytes) -> None:
        """Where credit can hold a queue up for ever, drop it and send the message instead."""
        pipe = self.sender.pipes.get(connect_id)
        if pipe is not None and self.sender.has_credit:
            self.sender.drop(pipe)
            self.send(message)

    def finish_pipe(self, connect_id: int) -> None:
        pipe = self.sender.pipes.get(connect_id)
        if pipe is not None:
            self.sender.finish(pipe)

    def unsent_messages(self, connect_id: int) -> int:
        pipe = self.sender.pipes.get(connect_id)
        return len(pipe.queue or ()) if pipe is not None else 0

    def check_peer(self) -> None:
        self.link.check_peer()

    def drain(self) -> None:
        """Tell the peer to prefer others."""
        self.send(DRAIN)

    def close_endpoints(self) -> None:
        if self.dialer is not None:
            self.dialer.close_all()

    def keep_endpoints_alive(self) -> None:
        if self.dialer is not None:
            self.dialer.keep_alive()

    @property
    def queued_bytes(self) -> int:
        return self.sender.queued_bytes

    def writable(self) -> None:
        self.sender.writable()

    def close(self) -> None:
        """The stream is gone, and what it carried."""
        self.sender.clear()
        dialer, self.dialer = self.dialer, None  # each would keep the other
        if dialer is not None:
            dialer.peer_lost()
        if self.tunnels is not None and self.backend is not None:
            self.tunnels.leave(self.backend)

    def _packet_received(self, message: bytes) -> bool:
        """Take a packet that is not plain DATA for a pipe; whether its bytes are consumed is returned."""
        (self._received.get(message[:2]) or self._received.of(message)).value += 1
        packet = decode_packet(message)
        kind = type(packet)  # compared, and not tried as classes: every connection has four packets here
        if kind is packets.CloseResponse or kind is packets.CloseRequest:
            self._close_received(packet)  # type: ignore[arg-type]
        elif isinstance(packet, packets.Credit):
            if self.sender.has_credit:
                self.sender.credit(packet.connect_id, packet.size)
        elif isinstance(packet, packets.Data) and packet.connect_id in self.sender.pipes:
            return self._odd_data_received(packet, len(message))
        elif isinstance(packet, _SERVERS):
            if self.sender.terms.tells_servers:
                self.servers_received(packet)
        elif packet is not None:
            self._to_end(packet)
        return True

    def _odd_data_received(self, packet: packets.Data, size: int) -> bool:
        """DATA in an unusual encoding: it is encoded again as every other program writes it."""
        if not packet.data:
            return True
        usual = encode_packet(packets.Data(packet.connect_id, "", packet.data))
        found = peek_data(usual)
        assert found is not None
        self.sender.pipes[packet.connect_id].receive(usual, found[1])
        if not self.sender.has_credit:
            self.call.consume(size - len(usual), 0)  # the pipe's receiver does the rest
        return self.sender.has_credit

    def _close_received(self, packet: packets.CloseRequest | packets.CloseResponse) -> None:
        pipe = self.sender.pipes.get(packet.connect_id)
        if pipe is not None:
            if type(packet) is packets.CloseResponse:
                self.sender.drop(pipe)  # nobody is there to take it
            elif pipe.is_over:
                return  # the answer waits behind the data already
        self._to_end(packet)

    def _to_end(self, packet: Packet) -> None:
        if self.dialer is not None and (self.tunnels is None or self._is_for_dialer(self.dialer, packet)):
            self.dialer.peer_sent(packet)
        elif self.tunnels is not None and self.backend is not None:
            self.tunnels.agent_sent(self.backend, packet)

    def _is_for_dialer(self, dialer: Dialer, packet: Packet) -> bool:
        kind = type(packet)
        if kind in _OF_A_CONNECTION:
            return packet.connect_id % 2 == self.dialer_parity  # type: ignore[union-attr]
        if kind is packets.CloseDial:
            return dialer.is_dialling(packet.random)  # type: ignore[union-attr]
        return kind is packets.DialRequest


class _ByType(dict[bytes, Count]):
    """The counts of one direction by the first two bytes of a packet, which tell the type of nearly all of them."""

    def __init__(self, counts: Counter, segment: str) -> None:
        super().__init__()
        self._counts = counts
        self._segment = segment

    def of(self, message: bytes) -> Count:
        """The count for a packet; what peers may begin with in many ways is not remembered."""
        count = self._counts.of(self._segment, counted_type_of(message))
        if is_usual_start(message[:2]):
            self[message[:2]] = count
        return count
