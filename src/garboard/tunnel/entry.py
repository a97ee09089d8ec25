"""The registers of the end that asks for connections: which stream and which client belong to which tunnel."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

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
        self._dial_numbers = itertools.count(1)
        self._deeds: dict[type, Callable[[Any], None]] = {
            ToFront: self._tell_front,
            Accepted: self._open,
            ToAgent: self._tell_agent,
            Cut: self._cut,
            Forget: self._forget,
        }

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

    def dial_to(self, tunnel: Tunnel, address: str, via: Backend | None = None) -> None:
        """Dial for a client that gave the dial no number of its own."""
        # Counted, since only the peer that is asked sees it: a small number is quicker to write and read, four times.
        self.dial(tunnel, packets.DialRequest("tcp", address, next(self._dial_numbers)), via)

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
            if message and type(effect) is ToAgent and effect.message is message and effect.tunnel is not None:
                has_gone_on = True
                self._forward(effect.backend, effect.tunnel, message, source)
            else:
                self._deeds[type(effect)](effect)
        if message and not has_gone_on:
            source.release(len(message))

    def _forward(self, backend: Backend, tunnel: Tunnel, message: bytes, source: Source) -> None:
        stream = self.streams.get(backend)
        if stream is None:
            source.release(len(message))
        else:
            stream.forward(tunnel.connect_id, message, source)

    def _tell_front(self, effect: ToFront) -> None:
        tunnel, packet = effect
        front = self.fronts.get(tunnel)
        if front is not None:
            front.tell(packet)

    def _open(self, effect: Accepted) -> None:
        tunnel, backend = effect
        front = self.fronts[tunnel]
        front.opened(self.streams[backend].open_pipe(tunnel.connect_id, front))

    def _tell_agent(self, effect: ToAgent) -> None:
        backend, message, tunnel = effect
        stream = self.streams.get(backend)
        if stream is not None:
            stream.send(message, tunnel.connect_id if tunnel is not None else 0)

    def _cut(self, effect: Cut) -> None:
        stream = self.streams.get(effect.backend)
        if stream is not None:
            stream.cut_pipe(effect.tunnel.connect_id, effect.message)

    def _forget(self, effect: Forget) -> None:
        tunnel, backend = effect
        stream = self.streams.get(backend)
        if stream is not None:
            stream.finish_pipe(tunnel.connect_id)

    async def keep_time(self) -> None:
        """End what waits too long, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            self.expire()

    def expire(self) -> None:
        self.perform(self.board.expire())
