"""The agent's streams: one to every server behind the addresses, and new ones when servers are missing."""

import asyncio
import contextlib
import itertools
import logging
import random
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from garboard.errors import GarboardError, InvalidValue
from garboard.net.proxies import proxy_for
from garboard.rpc import KeepaliveConfig, Metadata, PeerUnreachable, TcpTarget
from garboard.rpc.aio import AioClient
from garboard.tunnel.agent.listeners import TargetPorts
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.seeking import Address, Met, Need, Outcome, Pace, need_of
from garboard.tunnel.agent.server_count import ServerCount
from garboard.tunnel.agent.server_stream import AgentCounts, ServerStream
from garboard.tunnel.dialer.resolving import Resolver
from garboard.tunnel.log_text import one_word, quoted
from garboard.tunnel.wire.capabilities import offer
from garboard.tunnel.wire.flow import StallWatch
from garboard.tunnel.wire.packets import ServersResponse
from garboard.tunnel.wire.sockets import KEEPALIVE_EVERY_S, give_up_soon, keep_alive

CONNECT_TIMEOUT_S: Final = 10.0
JITTER: Final = 0.1
MOST_WORKERS: Final = 1024  # of one server, that are believed in
ASK_EVERY_S: Final = 30.0  # whether there are more servers by now, while none is missed

log = logging.getLogger("garboard.tunnel")


class ServerPool:
    """Keeps the streams. Connections that it dials have even ids; odd ones are dialled by servers."""

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
        self._resolver = Resolver()
        self._ids: Iterator[int] = itertools.count(2, 2)
        self._addresses = options.addresses
        self._wakes = {address: asyncio.Event() for address in self._addresses}
        self._clients: dict[ServerStream, AioClient] = {}
        self._reached: dict[Address, ServerStream] = {}  # who answered last at each address
        self._met: dict[str, Met] = {}  # the connected servers, by server id
        self._short_lived: set[Address] = set()  # where a stream ended when it had only just begun
        self.streams: dict[str, ServerStream] = {}  # by server id
        self.count = ServerCount(options.server_count_source, counts_leases=options.lease_store is not None)
        self.is_draining = False
        self.last_failure = ""  # why a server could not be reached; empty once one is

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
        """Keep turning TCP keepalive on for new endpoints, for ever."""
        while True:
            await asyncio.sleep(KEEPALIVE_EVERY_S)
            for stream in self.streams.values():
                stream.keep_endpoints_alive()

    def drain(self) -> None:
        """Make no new streams, and tell the servers to prefer other agents; dials that still come are served."""
        self.is_draining = True
        for stream in self.streams.values():
            stream.drain()

    def recount(self) -> None:
        """There may be more servers than before."""
        for wake in self._wakes.values():
            wake.set()

    async def close(self) -> None:
        self.is_draining = True
        for stream in self.streams.values():
            stream.close_endpoints()
        for client in list(self._clients.values()):
            await client.close()

    async def ask(self) -> None:
        """Keep asking a server of ours whether there are more servers than before, for ever."""
        while True:
            await asyncio.sleep(ASK_EVERY_S * (1 + JITTER * random.random()))
            self._ask_one()

    def _ask_one(self) -> None:
        able = [each for each in self.streams.values() if each.sender.terms.tells_servers]
        if able:
            random.choice(able).ask_for_servers()

    async def _keep(self, address: Address) -> None:
        pace, wake = Pace(self._options.sync_interval_s, self._options.sync_interval_cap_s), self._wakes[address]
        while True:
            if wake.is_set():
                wake.clear()
                pace.reset()
            if address in self._short_lived:
                self._short_lived.discard(address)
                await asyncio.sleep(self._options.sync_interval_s)
            need = self._need(address)
            if need is Need.DIAL or self._looks_for_more:
                await self._pause(await self._connect_once(address, pace), wake)
            elif need is Need.ANSWER:
                self._ask_one()
                await self._pause(pace.longer(), wake)
            else:
                await wake.wait()

    async def _pause(self, wait_s: float, wake: asyncio.Event) -> None:
        """Wait as long; what has changed meanwhile ends the longer waits, but not that between two dials."""
        wait_s *= 1 + JITTER * random.random()
        least_s = min(wait_s, self._options.sync_interval_s)
        await asyncio.sleep(least_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s - least_s):
                await wake.wait()

    def _need(self, address: Address) -> Need:
        if self.is_draining:
            return Need.NOTHING
        return need_of(
            address, self._met, wanted=self.count.wanted, addresses=self._addresses, reached=self._reached.keys()
        )

    @property
    def _looks_for_more(self) -> bool:
        return self._options.sync_forever and len(self._addresses) == 1 and not self.is_draining

    async def _connect_once(self, address: Address, pace: Pace) -> float:
        """One more stream, if there is a server we have none to; how long to wait before the next attempt."""
        try:
            outcome = await self._connect(address)
        except (GarboardError, TimeoutError) as error:
            wait_s = pace.after(Outcome.FAILED, Need.DIAL, self.count.wanted)
            reason = error.message if isinstance(error, GarboardError) else "the server did not answer in time"
            self.last_failure = reason
            log.warning("server.connect.failed retry_after_s=%.1f reason=%s", wait_s, quoted(reason))
            self._counts.connection_failures.of("to_server").value += 1
            return wait_s
        return pace.after(outcome, self._need(address), self.count.wanted)

    async def _connect(self, address: Address) -> Outcome:
        proxy = proxy_for("https", *address, self._options.environment)
        target = TcpTarget(*address, self._make_tls(), self._options.tls_server_name or None, proxy)
        metadata = self._metadata()
        client = await AioClient.connect(
            target, keepalive=KeepaliveConfig(self._options.keepalive_s), timeout_s=CONNECT_TIMEOUT_S
        )
        try:
            assert client.link.transport is not None
            peer = client.link.transport.get_extra_info("socket")
            keep_alive(peer)
            give_up_soon(peer)
            stream = await self._open_stream(client, address, metadata)
            return self._register(address, stream, client)
        except BaseException:
            await client.close()
            raise

    async def _open_stream(self, client: AioClient, address: Address, metadata: Metadata) -> ServerStream:
        call = await client.call("/AgentService/Connect", metadata=metadata)
        stream = ServerStream(
            client.link,
            call.call,
            address,
            ids=self._ids,
            counts=self._counts,
            watch=self._watch,
            resolver=self._resolver,
            on_end=self._lost,
            on_told=self._told,
        )
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await stream.begun
        if call.status is not None:
            raise PeerUnreachable(f"the server refused the agent: {call.status.message}", error_class="refused")
        return stream

    def _register(self, address: Address, stream: ServerStream, client: AioClient) -> Outcome:
        server_id = _one_value(stream.call.metadata, "serverid")
        count = _one_value(stream.call.metadata, "servercount")
        known = self.streams.get(server_id)
        self._reached[address] = known or stream
        if known is not None:
            log.debug("server.duplicate server=%s", one_word(server_id))
            client.link.close("already connected to this server")
            known.ask_for_servers()  # the one that we look for may have gone again
            return Outcome.DUPLICATE
        self.count.server_said(count)
        self.last_failure = ""
        self.streams[server_id] = stream
        self._met[server_id] = Met(address)
        self._clients[stream] = client
        log.info(
            "server.connected server=%s connected=%d of=%d", one_word(server_id), len(self.streams), self.server_count
        )
        if self._ports.targets:
            self._offer_targets(stream, server_id)
        stream.ask_for_servers()
        return Outcome.NEW

    def _offer_targets(self, stream: ServerStream, server_id: str) -> None:
        stream.offer_to(self._ports.tunnels, server_id)
        terms, name = stream.sender.terms, one_word(server_id)
        if not terms.takes_dials:
            log.warning('targets.unsupported server=%s reason="it takes no connections of nodes"', name)
        for destination in terms.refused:
            log.warning('target.refused server=%s target=%s reason="not an allowed destination"', name, destination)

    def _told(self, stream: ServerStream, told: ServersResponse) -> None:
        """A server of ours said who is there."""
        told = replace(told, present=told.present[:MOST_WORKERS])
        server_id = next((each for each, known in self.streams.items() if known is stream), None)
        if server_id is None or self._met[server_id].told == told:
            return
        self._met[server_id] = replace(self._met[server_id], told=told)
        self.count.server_said(str(told.count))
        self.recount()

    def _lost(self, stream: ServerStream, reason: str) -> None:
        client = self._clients.pop(stream, None)
        if client is None:
            return  # a duplicate, or one that never began
        server_id = next(each for each, known in self.streams.items() if known is stream)
        del self.streams[server_id]
        log.warning("server.lost server=%s reason=%s", one_word(server_id), quoted(reason))
        self._counts.connection_failures.of("from_server").value += 1
        self._forget(server_id)
        if time.monotonic() - stream.began_at < self._options.sync_interval_s:
            self._short_lived.add(stream.address)
        client.link.close(reason)
        self.recount()

    def _forget(self, server_id: str) -> None:
        """A server is gone; that others said it was there no longer counts."""
        gone = self._met.pop(server_id)
        others = {each.address: self.streams[name] for name, each in self._met.items()}
        if gone.address in others:
            self._reached[gone.address] = others[gone.address]
        self._reached = {each: stream for each, stream in self._reached.items() if stream in self._clients}
        for name, each in self._met.items():
            if each.told is not None and server_id in each.told.present:
                present = tuple(other for other in each.told.present if other != server_id)
                self._met[name] = replace(each, told=replace(each.told, present=present))

    def _metadata(self) -> Metadata:
        read_token = self._options.read_token
        token = (("authorization", f"Bearer {_one_token(read_token)}"),) if read_token else ()
        return (
            ("agentid", self._options.agent_id),
            ("agentidentifiers", self._options.agent_identifiers),
            *token,
            *offer(target.destination for target in self._ports.targets),
        )


def _one_token(read: Callable[[], str]) -> str:
    """The token as it is now. Raises `InvalidValue`, which says nothing of what was read."""
    try:
        words = read().split()
    except UnicodeDecodeError:
        words = []
    if len(words) != 1 or not words[0].isascii() or not words[0].isprintable():
        raise InvalidValue(
            f"the file of the token holds {len(words) or 'no'} words and not one token",
            hint="--service-account-token-path names a file with a token and nothing else",
        )
    return words[0]


def _one_value(metadata: Metadata, key: str) -> str:
    values = [value for name, value in metadata if name == key]
    if len(values) != 1 or not isinstance(values[0], str):
        raise InvalidValue(f"the server sent {len(values)} values for {key!r} where one is due")
    return values[0]
