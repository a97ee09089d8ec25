"""What is behind the tunnel: one port at the address of every agent, in one process.

    python -m tools.harness.soak.endpoints AGENTS PORT

prints a line once it listens, and serves until its standard input ends.
"""

import asyncio
import socket
import sys
from typing import Final, cast

from tools.harness.soak.content import HEADER_BYTES, WHOLE, WRONG, Header, Kind, address_of, piece
from tools.harness.soak.programs import run_until_told

SENT_AT_ONCE: Final = 256 * 1024
ECHOED_AT_ONCE: Final = 1 << 20


class Endpoint(asyncio.Protocol):
    """One connection of an agent."""

    transport: asyncio.Transport
    _header: Header | None = None
    _start = b""
    _at = 0
    _is_right = True
    _is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=ECHOED_AT_ONCE)

    def data_received(self, data: bytes) -> None:
        if self._header is None:
            data = self._start + data
            if len(data) < HEADER_BYTES:
                self._start = data
                return
            self._header = Header.decode(data[:HEADER_BYTES])
            data = data[HEADER_BYTES:]
        match self._header.kind:
            case Kind.ECHO:
                self.transport.write(data)
            case Kind.DOWNLOAD:
                self._send(self._header)
            case Kind.UPLOAD:
                self._compare(self._header, data)

    def pause_writing(self) -> None:
        self._is_full = True
        if self._header is not None and self._header.kind is Kind.ECHO:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        if self._header is not None and self._header.kind is Kind.DOWNLOAD:
            self._send(self._header)
        else:
            self.transport.resume_reading()

    def _send(self, header: Header) -> None:
        while not self._is_full and self._at < header.size:
            size = min(SENT_AT_ONCE, header.size - self._at)
            self._at += size
            self.transport.write(piece(header.offset, self._at - size, size))
        if self._at >= header.size:
            self.transport.close()

    def _compare(self, header: Header, data: bytes) -> None:
        self._is_right &= data == piece(header.offset, self._at, len(data))
        self._at += len(data)
        if self._at >= header.size:
            self.transport.write(WHOLE if self._is_right and self._at == header.size else WRONG)


async def serve(agents: int, port: int) -> None:
    loop = asyncio.get_running_loop()
    listeners = [socket.create_server((address_of(number), port), backlog=4096) for number in range(agents)]
    servers = [await loop.create_server(Endpoint, sock=each) for each in listeners]
    print("listening", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    run_until_told(serve(int(sys.argv[1]), int(sys.argv[2])))
