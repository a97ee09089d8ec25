"""Whether an agent dials an address once more, and how soon: decided from the servers that it has and what they say.

One that is known to be away is not dialled: servers of ours are asked on a stream that is there whether it is back, so
that nobody pays for TLS handshakes that lead to a server that is connected already.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from garboard.tunnel.wire.packets import ServersResponse

Address = tuple[str, int]

BACKOFF_FACTOR: Final = 1.5
# With this many in a row for each server, one that is there has been met in all but a twentieth of the cases.
DUPLICATES_PER_SERVER: Final = 3
HASTE: Final = 10  # while servers are to be met, the pause is a tenth of the usual one


class Need(Enum):
    NOTHING = auto()
    ANSWER = auto()  # someone is missing whom no dial would reach now: ask again later
    DIAL = auto()


class Outcome(Enum):
    """Of one dial."""

    NEW = auto()
    DUPLICATE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Met:
    """A server that is connected: by which address, and what it said of its workers, if it is one of ours."""

    address: Address
    told: ServersResponse | None = None


def need_of(
    address: Address,
    met: Mapping[str, Met],
    *,
    wanted: int,
    addresses: Collection[Address],
    reached: Collection[Address],
) -> Need:
    """What an address is needed for; `met` are the connected servers by id, `reached` the addresses that led to one."""
    if address not in reached:
        return Need.DIAL
    if any(each.told and set(each.told.present) - met.keys() for each in met.values() if each.address == address):
        return Need.DIAL
    if len(met) >= wanted:
        return Need.NOTHING
    return Need.ANSWER if _expected(met, len(set(addresses) - set(reached))) >= wanted else Need.DIAL


def _expected(met: Mapping[str, Met], unreached: int) -> int:
    """How many servers there are behind the addresses, as far as is known: those that are away too."""
    workers = {each.told.server: max(each.told.workers, 1) for each in met.values() if each.told}
    silent = sum(each.told is None for each in met.values())
    return sum(workers.values()) + silent + unreached * max(workers.values(), default=1)


class Pace:
    """The pauses between dials of one address."""

    def __init__(self, interval_s: float, cap_s: float) -> None:
        self._interval_s = interval_s
        self._cap_s = cap_s
        self._wait_s = interval_s
        self._duplicates = 0

    def reset(self) -> None:
        """Something has changed: what failed before may succeed now."""
        self._wait_s = self._interval_s
        self._duplicates = 0

    def after(self, outcome: Outcome, need: Need, wanted: int) -> float:
        """How long to wait after a dial, when this is needed next."""
        if outcome is Outcome.NEW:
            self.reset()
        elif outcome is Outcome.DUPLICATE:
            self._duplicates += 1
        if outcome is Outcome.FAILED or self._duplicates >= DUPLICATES_PER_SERVER * wanted:
            return self.longer()
        return self._interval_s / HASTE if need is Need.DIAL else self._interval_s

    def longer(self) -> float:
        """The usual pause at first, then more and more."""
        wait_s = self._wait_s
        self._wait_s = min(wait_s * BACKOFF_FACTOR, self._cap_s)
        return wait_s
