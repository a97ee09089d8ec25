"""The probe of `tunnel trace`: it dials, waits for the answer and closes the connection at once."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from garboard.tunnel.frontend.states import Backend, Tunnel
from garboard.tunnel.frontend.tunnels import Tunnels
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.flow import ByteSource, Chunk, Outflow
from garboard.tunnel.wire.packets import Packet
from garboard.tunnel.wire.pipes import Pipe
from garboard.values import Json

PROBE_TIMEOUT_S: Final = 15.0
ROUND_TRIP_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of a traced connection: what was found there, the problem if there is one, and how long it took."""

    name: str
    detail: str
    problem: str = ""
    seconds: float | None = None

    def as_json(self) -> dict[str, Json]:
        took: Json = round(self.seconds * 1000, 3) if self.seconds is not None else None
        return {"hop": self.name, "detail": self.detail, "verdict": self.problem or "ok", "ms": took}


def trace_document(to: str, hops: list[Hop]) -> Json:
    """What `tunnel trace` prints: the hops in their order, and whether the way is open."""
    rows: list[Json] = [hop.as_json() for hop in hops]
    return {"to": to, "isOpen": bool(hops) and not any(hop.problem for hop in hops), "hops": rows}


class Probe:
    """A `Frontend` without a socket."""

    takes_in_steps = False

    def __init__(self, tunnels: Tunnels) -> None:
        self._tunnels = tunnels
        self._tunnel = Tunnel()
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.outflow = Outflow(self, tunnels.watch)
        self.writes = 0

    async def dial(self, address: str, via: Backend) -> tuple[str, float]:
        """Why the address cannot be reached through this peer (empty when it can), and how long that took to know."""
        self._tunnels.frontends[self._tunnel] = self
        began = time.monotonic()
        try:
            self._tunnels.dial_to(self._tunnel, address, via)
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                error = await self._answer
        except TimeoutError:
            error = "no answer in time"
        finally:
            self._tunnels.frontend_gone(self._tunnel)
        return error, time.monotonic() - began

    # Frontend and ByteSink; what the destination sends is dropped.

    @property
    def has_room(self) -> bool:
        return True

    @property
    def is_held_back(self) -> bool:
        return False

    @property
    def backlog(self) -> int:
        return 0

    def push(self, chunk: Chunk) -> None:
        pass

    def give_up(self) -> None:
        pass

    def deliver_data(self, message: bytes, start: int, source: ByteSource) -> None:
        source.release(len(message))

    def opened(self, pipe: Pipe) -> None:
        pass

    def deliver_packet(self, packet: Packet) -> None:
        if isinstance(packet, packets.DialResponse) and not self._answer.done():
            self._answer.set_result(packet.error)

    def disconnect(self) -> None:
        if not self._answer.done():
            self._answer.set_result("this end is stopping")
