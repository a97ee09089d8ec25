"""A load balancer on loopback: every connection goes to the next of its ports."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Balancer:
    """Takes the ports in turn; `connections` are all that it has accepted."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.port = 0
        self.connections = 0

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self.ports[self.connections % len(self.ports)]
        self.connections += 1
        with contextlib.suppress(OSError):
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def balance(*ports: int) -> AsyncIterator[Balancer]:
    balancer = Balancer(list(ports))
    server = await asyncio.start_server(balancer.relay, "127.0.0.1", 0)
    balancer.port = server.sockets[0].getsockname()[1]
    try:
        yield balancer
    finally:
        server.close()
