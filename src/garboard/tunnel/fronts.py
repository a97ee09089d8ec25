"""A client of ours at a plain socket: its bytes go through a tunnel once the dial has succeeded."""

import asyncio

from garboard.tunnel import packets
from garboard.tunnel.entry import Entry
from garboard.tunnel.packets import Packet
from garboard.tunnel.pipes import Pipe
from garboard.tunnel.sockets import SocketEnd
from garboard.tunnel.tunnels import OPEN, State, Tunnel


class FrontSocket(SocketEnd):
    """What a client sends before the answer is kept for the destination, within the limit of what may be under way."""

    _pipe: Pipe | None = None
    _early: list[bytes] | None = None

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.watch)
        self.entry = entry
        self.tunnel = Tunnel()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.entry.fronts[self.tunnel] = self

    def data_received(self, data: bytes) -> None:
        if self.tunnel.state is OPEN and self._pipe is not None:
            self._pipe.send_all(data, self)
            self.take(len(data))  # afterwards: what went on at once has not stopped the reading
        elif self.tunnel.state is State.DIALLING:
            self.keep_early(data)

    def eof_received(self) -> bool:
        """The client sends no more, which closes the connection; what the endpoint still says is delivered."""
        if self.tunnel.state is not State.OPEN:
            return False
        self.entry.front_closed(self.tunnel)
        return self.transport is not None and self.transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._pipe is not None:
            self._pipe.sink = None
        self.entry.front_gone(self.tunnel)

    # Front.

    def opened(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def tell(self, packet: Packet) -> None:
        if type(packet) is packets.CloseResponse:
            self.flush_and_close()
        elif type(packet) is packets.DialResponse:
            if packet.error:
                self.refused(packet.error)
                return
            self.accepted()
            if self._early and self._pipe is not None:
                early, self._early = self._early, None
                for data in early:
                    self._pipe.send_all(data, self)

    def accepted(self) -> None:
        """The connection is there."""

    def refused(self, error: str) -> None:
        """There will be no connection."""
        self.cut()

    def disconnect(self) -> None:
        self.flush_and_close()

    def give_up(self) -> None:
        self.entry.front_stalled(self.tunnel)

    def keep_early(self, data: bytes) -> None:
        self.take(len(data))
        if self._early is None:
            self._early = []
        self._early.append(data)
