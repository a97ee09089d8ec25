"""The agent's streams: one to every server behind the address, and new ones when servers are missing."""

import asyncio
import itertools
import logging
import random
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Final

from garboard.errors import GarboardError, InvalidValue
from garboard.rpc import KeepaliveConfig, Metadata, PeerUnreachable, TcpTarget
from garboard.rpc.aio import AioClient
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.server_count import ServerCount
from garboard.tunnel.agent.server_stream import AgentCounts, ServerStream

CONNECT_TIMEOUT_S: Final = 10.0
BACKOFF_FACTOR: Final = 1.5
JITTER: Final = 0.1
TICK_S: Final = 0.25

log = logging.getLogger("garboard.tunnel")


class ServerPool:
    """Keeps the streams. Even ids for connections leave the odd ones to connections that servers may open one day."""

    def __init__(self, options: AgentOptions, make_tls: Callable[[], ssl.SSLContext], counts: AgentCounts) -> None:
        self._options = options
        self._make_tls = make_tls
        self._counts = counts
        self._ids: Iterator[int] = itertools.count(2, 2)
        self._wake = asyncio.Event()
        self._clients: dict[ServerStream, AioClient] = {}
        self.streams: dict[str, ServerStream] = {}  # by server id
        self.count = ServerCount(options.server_count_source, counts_leases=options.lease_book is not None)
        self.is_draining = False

    @property
    def server_count(self) -> int:
        """How many servers there should be streams to."""
        return self.count.wanted

    @property
    def open_endpoints(self) -> int:
        return sum(len(stream.endpoints) for stream in self.streams.values())

    async def run(self) -> None:
        """Connect, and connect again, for ever."""
        wait_s = self._options.sync_interval_s
        while True:
            self._wake.clear()
            if not self.is_draining and (self._options.sync_forever or len(self.streams) < self.server_count):
                wait_s = await self._connect_once(wait_s)
            # What was lost is looked for at once, unless it had only just come; what fails again, more and more slowly.
            may_go_on_at = time.monotonic() + wait_s * (1 + JITTER * random.random())
            if not self._needs_more and not self._options.sync_forever:
                await self._wake.wait()
            await asyncio.sleep(max(may_go_on_at - time.monotonic(), 0))

    async def watch(self) -> None:
        """Cut endpoints that stall, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            for stream in list(self.streams.values()):
                stream.check_stalled(now)

    def drain(self) -> None:
        """Make no new streams, and tell the servers to prefer other agents; what is asked of us we still do."""
        self.is_draining = True
        for stream in self.streams.values():
            stream.drain()

    def recount(self) -> None:
        """There may be more servers than before."""
        self._wake.set()

    async def close(self) -> None:
        self.is_draining = True
        for client in list(self._clients.values()):
            await client.close()

    @property
    def _needs_more(self) -> bool:
        return not self.is_draining and len(self.streams) < self.server_count

    async def _connect_once(self, wait_s: float) -> float:
        """One more stream, if there is a server we have none to; how long to wait before the next attempt."""
        try:
            await self._connect()
        except (GarboardError, TimeoutError) as error:
            reason = error.message if isinstance(error, GarboardError) else "the server did not answer in time"
            log.warning("server.connect.failed retry_after_s=%.1f reason=%s", wait_s, reason)
            self._counts.connection_failures.of("to_server").value += 1
            return min(wait_s * BACKOFF_FACTOR, self._options.sync_interval_cap_s)
        return self._options.sync_interval_s

    async def _connect(self) -> None:
        options = self._options
        name = options.tls_server_name or None
        target = TcpTarget(options.proxy_server_host, options.proxy_server_port, self._make_tls(), name)
        metadata = self._metadata()
        client = await AioClient.connect(
            target, keepalive=KeepaliveConfig(options.keepalive_s), timeout_s=CONNECT_TIMEOUT_S
        )
        try:
            stream = await self._open_stream(client, metadata)
            self._register(stream, client)
        except BaseException:
            await client.close()
            raise

    async def _open_stream(self, client: AioClient, metadata: Metadata) -> ServerStream:
        call = await client.call("/AgentService/Connect", metadata=metadata)
        stream = ServerStream(
            client.link, call.call, ids=self._ids, counts=self._counts, patience=self._options.patience,
            on_end=self._lost,
        )  # fmt: skip
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await stream.begun
        if call.status is not None:
            raise PeerUnreachable(f"the server refused the agent: {call.status.message}", error_class="refused")
        return stream

    def _register(self, stream: ServerStream, client: AioClient) -> None:
        server_id = _one_value(stream.call.metadata, "serverid")
        count = _one_value(stream.call.metadata, "servercount")
        if server_id in self.streams:
            log.debug("server.duplicate server=%s", server_id)
            client.link.close("already connected to this server")
            return
        self.count.server_said(count)
        self.streams[server_id] = stream
        self._clients[stream] = client
        log.info("server.connected server=%s connected=%d of=%d", server_id, len(self.streams), self.server_count)

    def _lost(self, stream: ServerStream, reason: str) -> None:
        client = self._clients.pop(stream, None)
        for server_id in [each for each, known in self.streams.items() if known is stream]:
            del self.streams[server_id]
            log.warning("server.lost server=%s reason=%s", server_id, reason)
            self._counts.connection_failures.of("from_server").value += 1
        if client is not None:
            client.link.close(reason)
        self._wake.set()

    def _metadata(self) -> Metadata:
        read_token = self._options.read_token
        token = (("authorization", f"Bearer {read_token().strip()}"),) if read_token else ()
        return (
            ("agentid", self._options.agent_id),
            ("agentidentifiers", self._options.agent_identifiers),
            *token,
        )


def _one_value(metadata: Metadata, key: str) -> str:
    values = [value for name, value in metadata if name == key]
    if len(values) != 1 or not isinstance(values[0], str):
        raise InvalidValue(f"the server sent {len(values)} values for {key!r} where one is due")
    return values[0]
