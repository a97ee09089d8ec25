"""An HTTP/2 server over TLS by the library h2, which answers as a test says: the other end of the asyncio client."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

from garboard.kube import Access
from tools.harness.certificates import Certificates


@dataclass
class Asked:
    """One request, and the means to answer it."""

    peer: "H2Peer"
    stream: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def line(self) -> str:
        return f"{self.headers[':method']} {self.headers[':path'].partition('?')[0]}"

    @property
    def query(self) -> str:
        return self.headers[":path"].partition("?")[2]

    async def answer(self, status: int, body: bytes = b"{}", **headers: str) -> None:
        self.begin(status, **headers)
        await self.send(body, ends=True)

    def begin(self, status: int = 200, **headers: str) -> None:
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.peer.http.send_headers(self.stream, [(":status", str(status)), *named])
        self.peer.flush()

    async def send(self, data: bytes, *, ends: bool = False) -> None:
        """Send data as the windows of the client allow."""
        while data:
            window = self.peer.http.local_flow_control_window(self.stream)
            size = min(window, self.peer.http.max_outbound_frame_size, len(data))
            if size == 0:
                await self.peer.window_opened()
                continue
            self.peer.http.send_data(self.stream, data[:size])
            self.peer.flush()
            data = data[size:]
        if ends:
            self.peer.http.end_stream(self.stream)
            self.peer.flush()

    def refuse(self) -> None:
        """Say that nothing was done with the request."""
        self.peer.http.reset_stream(self.stream, h2.errors.ErrorCodes.REFUSED_STREAM)
        self.peer.flush()

    def hang_up(self) -> None:
        assert self.peer.transport is not None
        self.peer.transport.abort()

    def say_goodbye(self) -> None:
        """Take no more streams, and go on with those that there are."""
        self.peer.say_goodbye(self.stream)


Handler = Callable[[Asked], Awaitable[None]]


@dataclass
class H2Server:
    """What was asked for, how many connections there were, and which streams clients have given up."""

    handler: Handler
    max_streams: int = 100
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    given_up: list[str] = field(default_factory=list)
    peers: list["H2Peer"] = field(default_factory=list)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    port: int = 0

    def access(self, certificates: Certificates, token: str = "one") -> Access:
        return Access(
            server=f"https://127.0.0.1:{self.port}",
            host="127.0.0.1",
            port=self.port,
            ca=certificates.ca.read_bytes(),
            credential=certificates.client.read_bytes() + certificates.client_key.read_bytes(),
            token=token,
        )

    @property
    def lines(self) -> list[str]:
        return [each.line for each in self.asked]


class H2Peer(asyncio.Protocol):
    def __init__(self, server: H2Server) -> None:
        self.server = server
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.transport: asyncio.Transport | None = None
        self.open: dict[int, Asked] = {}
        self.waiters: list[asyncio.Future[None]] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.server.connections += 1
        self.server.peers.append(self)
        self.http.local_settings = h2.settings.Settings(
            client=False,
            initial_values={h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.server.max_streams},
        )
        self.http.initiate_connection()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.peers.remove(self)
        self.transport = None

    def data_received(self, data: bytes) -> None:
        for event in self.http.receive_data(data):
            match event:
                case h2.events.RequestReceived():
                    self.open[event.stream_id] = Asked(self, event.stream_id, dict(event.headers))  # type: ignore[arg-type]
                case h2.events.DataReceived():
                    self.open[event.stream_id].body += event.data
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case h2.events.StreamEnded():
                    self.begin(self.open[event.stream_id])
                case h2.events.StreamReset():
                    self.server.given_up.append(self.open[event.stream_id].line)
                case h2.events.WindowUpdated():
                    waiters, self.waiters = self.waiters, []
                    for each in waiters:
                        each.set_result(None)
                case _:
                    pass
        self.flush()

    def begin(self, asked: Asked) -> None:
        self.server.asked.append(asked)
        task = asyncio.ensure_future(self.server.handler(asked))
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)

    async def window_opened(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters.append(waiter)
        await waiter

    def say_goodbye(self, last_stream: int) -> None:
        frame = h2.connection.GoAwayFrame(0)  # type: ignore[attr-defined]  # h2's own way would end the connection
        frame.last_stream_id, frame.error_code = last_stream, 0
        assert self.transport is not None
        self.transport.write(frame.serialize())

    def flush(self) -> None:
        if self.transport is not None and (data := self.http.data_to_send()):
            self.transport.write(data)


@asynccontextmanager
async def h2_server(
    certificates: Certificates, handler: Handler, *, max_streams: int = 100, speaks: str = "h2"
) -> AsyncIterator[H2Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server, certificates.server_key)
    context.set_alpn_protocols([speaks])
    server = H2Server(handler, max_streams)
    listening = await asyncio.get_running_loop().create_server(lambda: H2Peer(server), "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        for peer in list(server.peers):
            if peer.transport is not None:
                peer.transport.abort()
