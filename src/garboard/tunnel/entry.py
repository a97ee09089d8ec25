"""The registers of the end that asks for connections: which stream and which client belong to which tunnel."""

import asyncio
import time
from typing import Final, Protocol

from garboard.tunnel import packets
from garboard.tunnel.flow import NOBODY, Outflow, Source, StallWatch
from garboard.tunnel.packets import Packet
from garboard.tunnel.pipes import DataSink, Pipe
from garboard.tunnel.switchboard import Accepted, Cut, Effect, Forget, Routes, Switchboard, Times, ToAgent, ToFront
from garboard.tunnel.tunnels import Backend, Tunnel

TICK_S: Final = 0.25


class Front(DataSink, Protocol):
    """One client's connection."""

    outflow: Outflow
    writes: int  # what it was given to send on

    @property
    def is_held_back(self) -> bool:
        """Whether what the client says waits for the tunnel."""

    def opened(self, pipe: Pipe) -> None:
        """Data may flow; the answer to the dial follows."""

    def tell(self, packet: Packet) -> None:
        """DIAL_RSP or CLOSE_RSP."""

    def disconnect(self) -> None:
        """The program stops."""


class Stream(Protocol):
    """A Connect stream, as the entry uses it."""

    def send(self, message: bytes, connect_id: int = 0) -> None:
        """Send a packet, behind what the connection has sent before."""

    def open_pipe(self, connect_id: int, front: Front) -> Pipe: ...

    def forward(self, connect_id: int, message: bytes, source: Source) -> None: ...

    def cut_pipe(self, connect_id: int, message: bytes) -> None:
        """Drop what the connection still wanted to send; if there was something, say this instead."""

    def finish_pipe(self, connect_id: int) -> None: ...

    def close_exits(self) -> None:
        """Close what we dialled for the peer."""

    def keep_exits_alive(self) -> None:
        """Notice when the far end of it is gone."""

    @property
    def queued_bytes(self) -> int: ...


class Entry:
    """Joins the switchboard with streams and clients."""

    def __init__(self, routes: Routes, *, times: Times, watch: StallWatch) -> None:
        self.board = Switchboard(routes, clock=time.monotonic, times=times)
        self.watch = watch
        self.streams: dict[Backend, Stream] = {}
        self.fronts: dict[Tunnel, Front] = {}
        self.stalled = 0
        self.past_writes = 0  # of fronts that are gone

    def join(self, backend: Backend, stream: Stream) -> None:
        self.streams[backend] = stream
        self.board.agent_joined(backend)

    def leave(self, backend: Backend) -> None:
        """The stream is gone; nothing happens if it was gone before."""
        if self.streams.pop(backend, None) is not None:
            self.perform(self.board.agent_left(backend))

    def agent_said(self, backend: Backend, packet: Packet) -> None:
        self.perform(self.board.agent_said(backend, packet))

    def dial(self, tunnel: Tunnel, request: packets.DialRequest, via: Backend | None = None) -> None:
        self.perform(self.board.dial(tunnel, request, via))

    def front_said(self, tunnel: Tunnel, message: bytes, source: Source) -> None:
        """A packet of a client that speaks in packets. Raises `BadWire`."""
        self.perform(self.board.front_said(tunnel, message), message, source)

    def front_closed(self, tunnel: Tunnel) -> None:
        self.perform(self.board.front_closed(tunnel))

    def front_gone(self, tunnel: Tunnel) -> None:
        self.perform(self.board.front_gone(tunnel))
        front = self.fronts.pop(tunnel, None)
        if front is not None:
            self.past_writes += front.writes

    def front_stalled(self, tunnel: Tunnel) -> None:
        self.stalled += 1
        self.fronts[tunnel].outflow.clear()
        self.perform(self.board.front_stalled(tunnel))

    def perform(self, effects: list[Effect], message: bytes = b"", source: Source = NOBODY) -> None:
        """Carry the effects of a message out; its bytes are released when they have gone on."""
        has_gone_on = False
        for effect in effects:
            if type(effect) is ToAgent and effect.message is message and effect.tunnel is not None:
                has_gone_on = True
                self._forward(effect.backend, effect.tunnel, message, source)
            else:
                self._do(effect)
        if not has_gone_on:
            source.release(len(message))

    def _forward(self, backend: Backend, tunnel: Tunnel, message: bytes, source: Source) -> None:
        stream = self.streams.get(backend)
        if stream is None:
            source.release(len(message))
        else:
            stream.forward(tunnel.connect_id, message, source)

    def _do(self, effect: Effect) -> None:
        match effect:
            case ToFront(tunnel, packet):
                if (front := self.fronts.get(tunnel)) is not None:
                    front.tell(packet)
            case Accepted(tunnel, backend):
                front = self.fronts[tunnel]
                front.opened(self.streams[backend].open_pipe(tunnel.connect_id, front))
            case ToAgent(backend, message, tunnel) if backend in self.streams:
                self.streams[backend].send(message, tunnel.connect_id if tunnel else 0)
            case Cut(tunnel, backend, message) if backend in self.streams:
                self.streams[backend].cut_pipe(tunnel.connect_id, message)
            case Forget(tunnel, backend) if backend in self.streams:
                self.streams[backend].finish_pipe(tunnel.connect_id)

    async def keep_time(self) -> None:
        """End what waits too long, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            self.expire()

    def expire(self) -> None:
        self.perform(self.board.expire())
