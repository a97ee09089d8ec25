"""A port with TLS that anyone can reach: no crowd of silent peers takes the descriptors that others need.

A peer has a slot from when it is accepted until it has shown who it is. Slots are bounded, for each address and in all,
and no connection is accepted that would take one of the last descriptors. Workers of one server share the bounds.
"""

import asyncio
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from garboard.tunnel.log_text import quoted
from garboard.tunnel.server.shares import share_of
from garboard.tunnel.web import cannot_listen
from garboard.tunnel.wire.sockets import BACKLOG, keep_alive

UNPROVEN: Final = 1000
UNPROVEN_PER_ADDRESS: Final = 400  # a whole site may come back at once behind one address
ACCEPTS_AT_ONCE: Final = 64
SHARED_ACCEPTS: Final = 2  # of a queue that workers share, so that one does not take all
PAUSE_S: Final = 1.0
REFUSALS_EVERY_S: Final = 10.0
# Of the descriptors that a process may have, what a port leaves to the others of the server.
AGENTS_LEAVE: Final = 4  # a quarter, for API servers, their connections and the pages
FRONT_LEAVES: Final = 16

log = logging.getLogger("garboard.tunnel")


class Slot:
    """The place of a peer that has not shown yet who it is."""

    __slots__ = ("_address", "_slots")

    def __init__(self, slots: "PeerSlots", address: str) -> None:
        self._slots: PeerSlots | None = slots
        self._address = address

    def release(self) -> None:
        """It has, or is gone; once is enough."""
        if self._slots is not None:
            self._slots.give_back(self._address)
            self._slots = None


class PeerSlots:
    """How many peers may be there that have not shown who they are."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._taken: Counter[str] = Counter()
        self.count = 0

    @property
    def is_full(self) -> bool:
        return self.count >= self._most

    def take(self, address: str) -> Slot | None:
        """A slot, or None for an address that has too many."""
        if self._taken[address] >= self._most_per_address:
            return None
        self._taken[address] += 1
        self.count += 1
        return Slot(self, address)

    def give_back(self, address: str) -> None:
        self.count -= 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


class TlsListener:
    """Accepts connections while there are slots and descriptors, and begins TLS on them.

    `accept` makes the protocol of a connection and gets its slot, to be released once the peer is known; a connection
    that does not get so far releases it here.
    """

    def __init__(
        self, accept: Callable[[Slot], asyncio.BaseProtocol], tls: dict[str, Any], *, leaves: int, workers: int = 1
    ) -> None:
        self._accept = accept
        self._tls = tls
        self._leaves = leaves
        self._loop = asyncio.get_running_loop()
        self._slots = PeerSlots(share_of(UNPROVEN, workers), share_of(UNPROVEN_PER_ADDRESS, workers))
        self._accepts_at_once = ACCEPTS_AT_ONCE
        self._handshakes: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.TimerHandle | None = None
        self._told_at = float("-inf")
        self.refused = 0
        self.sockets: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self.sockets[0].getsockname()[1])

    async def listen(self, host: str, port: int, *, is_shared: bool = False) -> None:
        """On every address of the host, or of the machine if it is empty; each worker may, if it is shared.

        Raises `NotReady`.
        """
        try:
            for family, address in await addresses_of(host, port):
                self.sockets.append(listening_socket(family, address, is_shared=is_shared))
        except OSError as error:
            self.close()
            raise cannot_listen(f"port {port}", error) from error
        self._resume()

    def adopt(self, sockets: Iterable[socket.socket]) -> None:
        """Accept from sockets that listen already, and that other workers accept from too."""
        self._accepts_at_once = SHARED_ACCEPTS
        self.sockets = [each.dup() for each in sockets]
        self._resume()

    def set_open(self, is_open: bool) -> None:
        """Whether to accept, or to leave what comes to other workers."""
        if is_open:
            self._resume()
        else:
            self._pause_reading()

    def drain(self) -> None:
        """Accept what is in the kernel's queue, which would be reset otherwise, and then nothing more."""
        self._pause_reading()
        for each in self.sockets:
            while self._accept_one(each):
                pass
            each.close()
        self.sockets.clear()

    def close(self) -> None:
        """Accept nothing more; connections whose TLS is not agreed on end."""
        self._pause_reading()
        for each in self.sockets:
            each.close()
        self.sockets.clear()
        for handshake in self._handshakes:
            handshake.cancel()

    def _resume(self) -> None:
        self._resuming = None
        for each in self.sockets:
            self._loop.add_reader(each.fileno(), self._on_readable, each)

    def _pause_reading(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        for each in self.sockets:
            self._loop.remove_reader(each.fileno())

    def _pause(self, reason: str) -> None:
        """Leave what comes to the kernel's queue for a moment."""
        self._pause_reading()
        log.warning("accept.paused port=%d unproven=%d reason=%s", self.port, self._slots.count, quoted(reason))
        self._resuming = self._loop.call_later(PAUSE_S, self._resume)

    def _on_readable(self, listener: socket.socket) -> None:
        for _ in range(self._accepts_at_once):
            if not self._accept_one(listener):
                return

    def _accept_one(self, listener: socket.socket) -> bool:
        """Take one connection from the queue; False if there is none, or no room for it."""
        if self._slots.is_full:
            self._pause("too many peers have not shown who they are")
            return False
        try:
            peer, address = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            self._pause(f"cannot accept: {error.strerror}")
            return False
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # The kernel gives the lowest number that is free: all below this one are in use.
        if most > 0 and peer.fileno() >= most - most // self._leaves:
            peer.close()
            self._pause(f"few of the {most} descriptors are left")
            return False
        self._begin(peer, str(address[0]))
        return True

    def _begin(self, peer: socket.socket, address: str) -> None:
        slot = self._slots.take(address)
        if slot is None:
            peer.close()
            self._tell_refusal(address)
            return
        peer.setblocking(False)
        handshake = self._loop.create_task(self._shake_hands(peer, slot))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, peer: socket.socket, slot: Slot) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: self._accept(slot), peer, **self._tls)
        except OSError:
            slot.release()  # it never got to its protocol
        except BaseException:
            slot.release()
            raise

    def _tell_refusal(self, address: str) -> None:
        self.refused += 1
        now = self._loop.time()
        if now - self._told_at >= REFUSALS_EVERY_S:
            self._told_at = now
            log.warning("accept.refused from=%s port=%d refused=%d reason=%s", address, self.port, self.refused,
                        quoted("too many of its connections have not shown who they are"))  # fmt: skip


async def addresses_of(host: str, port: int) -> list[tuple[int, Any]]:
    """Family and address of all that a host stands for; every address of the machine for an empty one."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((each[0], each[4]) for each in found))


def listening_socket(family: int, address: Any, *, is_shared: bool = False) -> socket.socket:
    """One that listens; a shared one lets others that are shared listen there too."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        keep_alive(listener)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
