"""A client that only dials: it waits for the answer and closes the connection at once."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from garboard.model.json_value import Json
from garboard.tunnel import packets
from garboard.tunnel.entry import Entry
from garboard.tunnel.flow import Chunk, Outflow, Source
from garboard.tunnel.packets import Packet
from garboard.tunnel.pipes import Pipe
from garboard.tunnel.tunnels import Backend, Tunnel

PROBE_TIMEOUT_S: Final = 15.0
ROUND_TRIP_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Hop:
    """One part of a way: what was found there, why it ends there if it does, and how long it took."""

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
    """A `Front` without a socket."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._tunnel = Tunnel()
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.outflow = Outflow(self, entry.watch)
        self.writes = 0

    async def dial(self, address: str, via: Backend) -> tuple[str, float]:
        """Why the address cannot be reached through this peer (empty when it can), and how long that took to know."""
        self._entry.fronts[self._tunnel] = self
        began = time.monotonic()
        try:
            self._entry.dial_to(self._tunnel, address, via)
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                error = await self._answer
        except TimeoutError:
            error = "no answer in time"
        finally:
            self._entry.front_gone(self._tunnel)
        return error, time.monotonic() - began

    # Front and Sink; what the destination says is of no interest.

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

    def deliver_data(self, message: bytes, start: int, source: Source) -> None:
        source.release(len(message))

    def opened(self, pipe: Pipe) -> None:
        pass

    def tell(self, packet: Packet) -> None:
        if isinstance(packet, packets.DialResponse) and not self._answer.done():
            self._answer.set_result(packet.error)

    def disconnect(self) -> None:
        if not self._answer.done():
            self._answer.set_result("this end is stopping")
