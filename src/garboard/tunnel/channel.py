"""One Connect stream with what it carries: connections the peer asks for, and connections we ask it for.

DATA goes straight to its pipe. Every other packet goes to the machine it belongs to: the exit, which dials for the
peer, or the entry, which has the peer dial. Ids tell them apart: agents count their connections in even numbers,
servers in odd ones.
"""

from abc import ABC, abstractmethod
from typing import Final

from garboard.rpc import Call, Status
from garboard.rpc.aio import AioLink
from garboard.rpc.wire import BadWire
from garboard.tunnel import packets
from garboard.tunnel.entry import Entry
from garboard.tunnel.exits import Exit
from garboard.tunnel.flow import Source
from garboard.tunnel.metrics import Count, Counter
from garboard.tunnel.packets import Packet, counted_type_of, decode_packet, encode_packet, peek_data
from garboard.tunnel.pipes import DataSink, Pipe, PipeSender
from garboard.tunnel.stream_errors import StreamErrors
from garboard.tunnel.tunnels import Backend

OVERDRAWN = "more data on a connection than its credit allows"
_CLOSES: Final = (packets.CloseRequest, packets.CloseResponse)
_OF_A_CONNECTION: Final = (packets.CloseRequest, packets.CloseResponse, packets.Data)


class Channel(ABC):
    """The part of a Connect stream that is the same at both ends."""

    def __init__(self, link: AioLink, call: Call, counts: Counter, *, segments: tuple[str, str]) -> None:
        self.link = link
        self.call = call
        self.sender = PipeSender(link, call, counts.of(segments[1], "DATA"))
        self.exit: Exit | None = None
        self.exit_parity = 0  # of the ids that our exit gives
        self.entry: Entry | None = None
        self.backend: Backend | None = None
        self._from, self._to = segments
        self._received, self._sent = _ByType(counts, segments[0]), _ByType(counts, segments[1])
        self._data_in = self._received["DATA"]

    @abstractmethod
    def refuse(self, reason: str) -> None:
        """The peer sent what it must not: the stream is over."""

    def messages_received(self, messages: list[bytes]) -> None:
        pipes, has_credit = self.sender.pipes, self.sender.terms.has_credit
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

    # What exits and entries use.

    def send(self, message: bytes, connect_id: int = 0) -> None:
        self._sent[counted_type_of(message)].value += 1
        pipe = self.sender.pipes.get(connect_id) if connect_id else None
        if pipe is None:
            self.sender.say(message)
        else:
            self.sender.say_last(pipe, message)

    def forward(self, connect_id: int, message: bytes, source: Source) -> None:
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
        if pipe is not None and self.sender.terms.has_credit:
            self.sender.drop(pipe)
            self.send(message)

    def finish_pipe(self, connect_id: int) -> None:
        pipe = self.sender.pipes.get(connect_id)
        if pipe is not None:
            self.sender.finish(pipe)

    def close_exits(self) -> None:
        if self.exit is not None:
            self.exit.close_all()

    def keep_exits_alive(self) -> None:
        if self.exit is not None:
            self.exit.keep_alive()

    @property
    def queued_bytes(self) -> int:
        return self.sender.queued_bytes

    def writable(self) -> None:
        self.sender.writable()

    def close(self) -> None:
        """The stream is gone, and what it carried."""
        self.sender.clear()
        if self.exit is not None:
            self.exit.peer_lost()
        if self.entry is not None and self.backend is not None:
            self.entry.leave(self.backend)

    def _packet_received(self, message: bytes) -> bool:
        """Take a packet in that is not plain DATA for a pipe, and tell whether its bytes are done with."""
        self._received[counted_type_of(message)].value += 1
        packet = decode_packet(message)
        if isinstance(packet, packets.Credit):
            if self.sender.terms.has_credit:
                self.sender.credit(packet.connect_id, packet.size)
        elif isinstance(packet, packets.Data) and packet.connect_id in self.sender.pipes:
            return self._odd_data_received(packet, len(message))
        elif packet is not None:
            self._to_machine(packet)
        return True

    def _odd_data_received(self, packet: packets.Data, size: int) -> bool:
        """DATA written in a way that nobody does: it goes on as everybody writes it."""
        if not packet.data:
            return True
        usual = encode_packet(packets.Data(packet.connect_id, "", packet.data))
        found = peek_data(usual)
        assert found is not None
        self.sender.pipes[packet.connect_id].receive(usual, found[1])
        if not self.sender.terms.has_credit:
            self.call.consume(size - len(usual), 0)  # the pipe's receiver does the rest
        return self.sender.terms.has_credit

    def _to_machine(self, packet: Packet) -> None:
        if isinstance(packet, _CLOSES):
            pipe = self.sender.pipes.get(packet.connect_id)
            if pipe is not None and isinstance(packet, packets.CloseResponse):
                self.sender.drop(pipe)  # nobody is there to take it
            elif pipe is not None and pipe.is_over:
                return  # the answer waits behind the data already
        if self.exit is not None and (self.entry is None or self._is_for_exit(self.exit, packet)):
            self.exit.peer_said(packet)
        elif self.entry is not None and self.backend is not None:
            self.entry.agent_said(self.backend, packet)

    def _is_for_exit(self, way_out: Exit, packet: Packet) -> bool:
        if isinstance(packet, _OF_A_CONNECTION):
            return packet.connect_id % 2 == self.exit_parity
        if isinstance(packet, packets.CloseDial):
            return way_out.is_dialling(packet.random)
        return isinstance(packet, packets.DialRequest)


class _ByType(dict[str, Count]):
    """The counts of one direction by the packet's type, each made when it is needed first."""

    def __init__(self, counts: Counter, segment: str) -> None:
        super().__init__()
        self._counts = counts
        self._segment = segment

    def __missing__(self, packet_type: str) -> Count:
        count = self[packet_type] = self._counts.of(self._segment, packet_type)
        return count
