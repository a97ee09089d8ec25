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
from garboard.tunnel.agent.listeners import TargetPorts
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.server_count import ServerCount
from garboard.tunnel.agent.server_stream import AgentCounts, ServerStream
from garboard.tunnel.capabilities import offer
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.sockets import KEEPALIVE_EVERY_S, keep_alive

CONNECT_TIMEOUT_S: Final = 10.0
BACKOFF_FACTOR: Final = 1.5
JITTER: Final = 0.1

Address = tuple[str, int]

log = logging.getLogger("garboard.tunnel")


class ServerPool:
    """Keeps the streams. Its connections have even ids: the odd ones belong to the servers'."""

    def __init__(
        self,
        options: AgentOptions,
        make_tls: Callable[[], ssl.SSLContext],
        counts: AgentCounts,
        watch: StallWatch,
        ports: TargetPorts,
    ) -> None:
        self._options = options
        self._make_tls = make_tls
        self._counts = counts
        self._watch = watch
        self._ports = ports
        self._ids: Iterator[int] = itertools.count(2, 2)
        self._addresses = options.addresses
        self._wakes = {address: asyncio.Event() for address in self._addresses}
        self._clients: dict[ServerStream, AioClient] = {}
        self._reached: dict[Address, ServerStream] = {}  # who answered last at each address
        self.streams: dict[str, ServerStream] = {}  # by server id
        self.count = ServerCount(options.server_count_source, counts_leases=options.lease_book is not None)
        self.is_draining = False

    @property
    def server_count(self) -> int:
        """How many servers there should be: as many as they or their leases say, or as many as we were told of."""
        return max(self.count.wanted, len(self._addresses))

    @property
    def open_endpoints(self) -> int:
        return sum(stream.endpoints for stream in self.streams.values())

    async def run(self) -> None:
        """Connect, and connect again, for ever."""
        async with asyncio.TaskGroup() as group:
            for address in self._addresses:
                group.create_task(self._keep(address))

    async def keep_alive(self) -> None:
        """Notice endpoints that are gone without a word, for ever."""
        while True:
            await asyncio.sleep(KEEPALIVE_EVERY_S)
            for stream in self.streams.values():
                stream.keep_exits_alive()

    def drain(self) -> None:
        """Make no new streams, and tell the servers to prefer other agents; what is asked of us we still do."""
        self.is_draining = True
        for stream in self.streams.values():
            stream.drain()

    def recount(self) -> None:
        """There may be more servers than before."""
        for wake in self._wakes.values():
            wake.set()

    async def close(self) -> None:
        self.is_draining = True
        for client in list(self._clients.values()):
            await client.close()

    async def _keep(self, address: Address) -> None:
        wait_s, wake = self._options.sync_interval_s, self._wakes[address]
        while True:
            wake.clear()
            if self._lacks(address) or self._looks_for_more:
                wait_s = await self._connect_once(address, wait_s)
            # What was lost is looked for at once, unless it had only just come; what fails again, more and more slowly.
            may_go_on_at = time.monotonic() + wait_s * (1 + JITTER * random.random())
            if not self._lacks(address) and not self._looks_for_more:
                await wake.wait()
            await asyncio.sleep(max(may_go_on_at - time.monotonic(), 0))

    def _lacks(self, address: Address) -> bool:
        """Whether a server is missing there; behind the only address there may be many."""
        if self.is_draining:
            return False
        if len(self._addresses) > 1:
            return address not in self._reached
        return len(self.streams) < self.server_count

    @property
    def _looks_for_more(self) -> bool:
        return self._options.sync_forever and len(self._addresses) == 1 and not self.is_draining

    async def _connect_once(self, address: Address, wait_s: float) -> float:
        """One more stream, if there is a server we have none to; how long to wait before the next attempt."""
        try:
            await self._connect(address)
        except (GarboardError, TimeoutError) as error:
            reason = error.message if isinstance(error, GarboardError) else "the server did not answer in time"
            log.warning("server.connect.failed retry_after_s=%.1f reason=%s", wait_s, reason)
            self._counts.connection_failures.of("to_server").value += 1
            return min(wait_s * BACKOFF_FACTOR, self._options.sync_interval_cap_s)
        return self._options.sync_interval_s

    async def _connect(self, address: Address) -> None:
        target = TcpTarget(*address, self._make_tls(), self._options.tls_server_name or None)
        metadata = self._metadata()
        client = await AioClient.connect(
            target, keepalive=KeepaliveConfig(self._options.keepalive_s), timeout_s=CONNECT_TIMEOUT_S
        )
        try:
            assert client.link.transport is not None
            keep_alive(client.link.transport.get_extra_info("socket"))
            stream = await self._open_stream(client, metadata)
            self._register(address, stream, client)
        except BaseException:
            await client.close()
            raise

    async def _open_stream(self, client: AioClient, metadata: Metadata) -> ServerStream:
        call = await client.call("/AgentService/Connect", metadata=metadata)
        stream = ServerStream(
            client.link, call.call, ids=self._ids, counts=self._counts, watch=self._watch, on_end=self._lost
        )
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await stream.begun
        if call.status is not None:
            raise PeerUnreachable(f"the server refused the agent: {call.status.message}", error_class="refused")
        return stream

    def _register(self, address: Address, stream: ServerStream, client: AioClient) -> None:
        server_id = _one_value(stream.call.metadata, "serverid")
        count = _one_value(stream.call.metadata, "servercount")
        known = self.streams.get(server_id)
        self._reached[address] = known or stream
        if known is not None:
            log.debug("server.duplicate server=%s", server_id)
            client.link.close("already connected to this server")
            return
        self.count.server_said(count)
        self.streams[server_id] = stream
        self._clients[stream] = client
        log.info("server.connected server=%s connected=%d of=%d", server_id, len(self.streams), self.server_count)
        if self._ports.targets:
            self._offer_targets(stream, server_id)

    def _offer_targets(self, stream: ServerStream, server_id: str) -> None:
        stream.offer_to(self._ports.entry, server_id)
        terms = stream.sender.terms
        if not terms.takes_dials:
            log.warning("targets.unsupported server=%s reason=it takes no connections of nodes", server_id)
        for destination in terms.refused:
            log.warning("target.refused server=%s target=%s reason=not an allowed destination", server_id, destination)

    def _lost(self, stream: ServerStream, reason: str) -> None:
        client = self._clients.pop(stream, None)
        for server_id in [each for each, known in self.streams.items() if known is stream]:
            del self.streams[server_id]
            log.warning("server.lost server=%s reason=%s", server_id, reason)
            self._counts.connection_failures.of("from_server").value += 1
        for address in [each for each, reached in self._reached.items() if reached is stream]:
            del self._reached[address]
        if client is not None:
            client.link.close(reason)
        for wake in self._wakes.values():
            wake.set()

    def _metadata(self) -> Metadata:
        read_token = self._options.read_token
        token = (("authorization", f"Bearer {read_token().strip()}"),) if read_token else ()
        return (
            ("agentid", self._options.agent_id),
            ("agentidentifiers", self._options.agent_identifiers),
            *token,
            *offer(target.destination for target in self._ports.targets),
        )


def _one_value(metadata: Metadata, key: str) -> str:
    values = [value for name, value in metadata if name == key]
    if len(values) != 1 or not isinstance(values[0], str):
        raise InvalidValue(f"the server sent {len(values)} values for {key!r} where one is due")
    return values[0]
