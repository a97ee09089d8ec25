"""The tunnels of an end that asks for connections: which frontend and which stream belong to each."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from garboard.tunnel.frontend.effects import (
    Accepted,
    Cut,
    Doubt,
    ForgetTunnel,
    FrontendEffect,
    ToAgent,
    ToFrontend,
)
from garboard.tunnel.frontend.protocol import FrontendProtocol, Routes, TunnelQuota, TunnelTimeouts
from garboard.tunnel.frontend.states import Backend, FlushProgress, Tunnel
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.flow import NO_SOURCE, ByteSource, Outflow, StallWatch
from garboard.tunnel.wire.packets import Packet
from garboard.tunnel.wire.pipes import DataSink, Pipe

TICK_S: Final = 0.25


class Frontend(DataSink, Protocol):
    """One client's connection."""

    outflow: Outflow
    writes: int  # how many writes it was given

    @property
    def is_held_back(self) -> bool:
        """Whether what the client sends waits for the tunnel."""

    def opened(self, pipe: Pipe) -> None:
        """Data may flow; the answer to the dial follows."""

    def deliver_packet(self, packet: Packet) -> None:
        """Send the client a DIAL_RSP or CLOSE_RSP, in the form that it understands."""

    def disconnect(self) -> None:
        """Close the connection: the program stops."""


class BackendStream(Protocol):
    """A Connect stream, as the tunnels use it."""

    def send(self, message: bytes, connect_id: int = 0) -> None:
        """Send a packet, behind what the connection has sent before."""

    def open_pipe(self, connect_id: int, frontend: Frontend) -> Pipe: ...

    def forward(self, connect_id: int, message: bytes, source: ByteSource) -> None: ...

    def cut_pipe(self, connect_id: int, message: bytes) -> None:
        """Drop what the connection has queued; if there was something, send this message instead."""

    def finish_pipe(self, connect_id: int) -> None: ...

    def unsent_messages(self, connect_id: int) -> int:
        """How many messages of the connection wait to be sent."""

    def check_peer(self) -> None:
        """See whether the peer is still there, and give the stream up if it is not."""

    def drain(self) -> None:
        """Tell the peer to prefer others."""

    def close_endpoints(self) -> None:
        """Close the connections that were dialled for the peer."""

    def keep_endpoints_alive(self) -> None:
        """Turn TCP keepalive on for them, so that a dead endpoint is noticed."""

    @property
    def queued_bytes(self) -> int: ...


class Tunnels:
    """Carries out what the protocol decides, on streams and frontends."""

    def __init__(
        self, routes: Routes, *, timeouts: TunnelTimeouts, watch: StallWatch, quota: TunnelQuota | None = None
    ) -> None:
        self.protocol = FrontendProtocol(
            routes, clock=time.monotonic, timeouts=timeouts, progress_of=self._progress_of, quota=quota
        )
        self.watch = watch
        self.streams: dict[Backend, BackendStream] = {}
        self.frontends: dict[Tunnel, Frontend] = {}
        self.stalled = 0
        self.past_writes = 0  # of frontends that are gone
        self._dial_numbers = itertools.count(1)
        self._handlers: dict[type, Callable[[Any], None]] = {
            ToFrontend: self._send_to_frontend,
            Accepted: self._open,
            ToAgent: self._send_to_agent,
            Cut: self._cut,
            Doubt: self._doubt,
            ForgetTunnel: self._forget,
        }

    def join(self, backend: Backend, stream: BackendStream) -> None:
        self.streams[backend] = stream
        self.protocol.agent_joined(backend)

    def leave(self, backend: Backend) -> None:
        """The stream is gone; nothing happens if it was gone before."""
        if self.streams.pop(backend, None) is not None:
            self.perform(self.protocol.agent_left(backend))

    def agent_sent(self, backend: Backend, packet: Packet) -> None:
        self.perform(self.protocol.agent_sent(backend, packet))

    def dial(self, tunnel: Tunnel, request: packets.DialRequest, via: Backend | None = None) -> None:
        self.perform(self.protocol.dial(tunnel, request, via))

    def dial_to(self, tunnel: Tunnel, address: str, via: Backend | None = None) -> None:
        """Dial for a client that gave the dial no number of its own."""
        # A counter will do, since only the peer sees it; a small number is quicker to write and read, four times.
        self.dial(tunnel, packets.DialRequest("tcp", address, next(self._dial_numbers)), via)

    def frontend_sent(self, tunnel: Tunnel, message: bytes, source: ByteSource) -> None:
        """A packet of a gRPC frontend. Raises `BadWire`."""
        self.perform(self.protocol.frontend_sent(tunnel, message), message, source)

    def frontend_closed(self, tunnel: Tunnel) -> None:
        self.perform(self.protocol.frontend_closed(tunnel))

    def frontend_gone(self, tunnel: Tunnel, *, was_cut: bool = False) -> None:
        self.perform(self.protocol.frontend_gone(tunnel, was_cut=was_cut))
        frontend = self.frontends.pop(tunnel, None)
        if frontend is not None:
            self.past_writes += frontend.writes

    def frontend_stalled(self, tunnel: Tunnel) -> None:
        self.stalled += 1
        self.frontends[tunnel].outflow.clear()
        self.perform(self.protocol.frontend_stalled(tunnel))

    def perform(self, effects: list[FrontendEffect], message: bytes = b"", source: ByteSource = NO_SOURCE) -> None:
        """Carry the effects of a message out; its bytes are released when they have gone on."""
        has_gone_on = False
        for effect in effects:
            if message and type(effect) is ToAgent and effect.message is message and effect.tunnel is not None:
                has_gone_on = True
                self._forward(effect.backend, effect.tunnel, message, source)
            else:
                self._handlers[type(effect)](effect)
        if message and not has_gone_on:
            source.release(len(message))

    def _progress_of(self, tunnel: Tunnel) -> FlushProgress:
        stream = self.streams.get(tunnel.backend) if tunnel.backend is not None else None
        unsent = stream.unsent_messages(tunnel.connect_id) if stream is not None else 0
        frontend = self.frontends.get(tunnel)
        if frontend is None or tunnel.is_over_for_frontend:
            return FlushProgress(unsent, 0, 0)
        return FlushProgress(unsent, frontend.outflow.pushed, frontend.outflow.queued_bytes)

    def _forward(self, backend: Backend, tunnel: Tunnel, message: bytes, source: ByteSource) -> None:
        stream = self.streams.get(backend)
        if stream is None:
            source.release(len(message))
        else:
            stream.forward(tunnel.connect_id, message, source)

    def _send_to_frontend(self, effect: ToFrontend) -> None:
        tunnel, packet = effect
        frontend = self.frontends.get(tunnel)
        if frontend is not None:
            frontend.deliver_packet(packet)

    def _open(self, effect: Accepted) -> None:
        tunnel, backend = effect
        frontend = self.frontends[tunnel]
        frontend.opened(self.streams[backend].open_pipe(tunnel.connect_id, frontend))

    def _send_to_agent(self, effect: ToAgent) -> None:
        backend, message, tunnel = effect
        stream = self.streams.get(backend)
        if stream is not None:
            stream.send(message, tunnel.connect_id if tunnel is not None else 0)

    def _cut(self, effect: Cut) -> None:
        stream = self.streams.get(effect.backend)
        if stream is not None:
            stream.cut_pipe(effect.tunnel.connect_id, effect.message)

    def _doubt(self, effect: Doubt) -> None:
        stream = self.streams.get(effect.backend)
        if stream is not None:
            stream.check_peer()

    def _forget(self, effect: ForgetTunnel) -> None:
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
        self.perform(self.protocol.expire())
