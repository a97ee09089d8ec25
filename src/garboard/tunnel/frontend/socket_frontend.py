"""A client at a plain socket: its bytes go through a tunnel once the dial has succeeded."""

import asyncio

from garboard.tunnel.frontend.states import DIALLING, OPEN, Tunnel
from garboard.tunnel.frontend.tunnels import Tunnels
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet
from garboard.tunnel.wire.pipes import Pipe
from garboard.tunnel.wire.sockets import SocketEnd


class SocketFrontend(SocketEnd):
    """A `Frontend` with a socket; what the client sends before the dial is answered is kept, within the read-ahead."""

    _pipe: Pipe | None = None
    _early: list[bytes] | None = None
    _has_ended_early = False

    def __init__(self, tunnels: Tunnels) -> None:
        super().__init__(tunnels.watch)
        self.tunnels = tunnels
        self.tunnel = Tunnel()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.tunnels.frontends[self.tunnel] = self

    def data_received(self, data: bytes) -> None:
        if self.tunnel.state is OPEN and self._pipe is not None:
            self._pipe.send_all(data, self)
            self.take(len(data))  # afterwards: what went on at once has not stopped the reading
        elif self.tunnel.state is DIALLING:
            self.keep_early(data)
        else:
            super().data_received(data)

    def eof_received(self) -> bool:
        """The client sends no more, which closes the connection; what the endpoint still sends is delivered."""
        stays = super().eof_received()
        if self.tunnel.state is OPEN:
            self.tunnels.frontend_closed(self.tunnel)
        elif self.tunnel.state is DIALLING and self._early:
            self._has_ended_early = True  # a whole request; without any bytes it is a client that gave up
        elif not self._is_closing:
            return False
        return stays

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._pipe is not None:
            self._pipe.sink = None
        self.tunnels.frontend_gone(self.tunnel, was_cut=exc is not None or self._was_cut)

    # Frontend.

    def opened(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def deliver_packet(self, packet: Packet) -> None:
        if type(packet) is packets.CloseResponse:
            self.flush_and_reset() if packet.error else self.flush_and_close()
        elif type(packet) is packets.DialResponse:
            if packet.error:
                self.refused(packet.error)
                return
            self.accepted()
            if self._early and self._pipe is not None:
                early, self._early = self._early, None
                for data in early:
                    self._pipe.send_all(data, self)
            if self._has_ended_early:
                self.tunnels.frontend_closed(self.tunnel)

    def accepted(self) -> None:
        """The connection is there."""

    def refused(self, error: str) -> None:
        """There will be no connection."""
        self.cut()

    def disconnect(self) -> None:
        self.cut()

    def give_up(self) -> None:
        if not self._is_closing:
            self.tunnels.frontend_stalled(self.tunnel)
        self.cut()  # what its socket holds counts, too

    def keep_early(self, data: bytes) -> None:
        self.take(len(data))
        if self._early is None:
            self._early = []
        self._early.append(data)
