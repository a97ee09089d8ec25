"""Looking after etcd without changing its members: a snapshot that is complete, and a leader that goes elsewhere."""

import hashlib
from collections.abc import Callable

from garboard.errors import GarboardError
from garboard.etcd.client import EtcdClient
from garboard.etcd.errors import DatabaseUnreadable, EtcdRefused, EtcdUnreachable, MembershipRefused
from garboard.etcd.health import check_health, status_of
from garboard.etcd.members import with_peer
from garboard.etcd.values import Member
from garboard.retry import CLOCK, Clock, Pauses, wait_until

_DIGEST_BYTES = hashlib.sha256().digest_size
_PAGE_BYTES = 512  # of which every database is made; etcd's own tools tell by this whether a digest stands behind
_PAUSES = Pauses.every(0.25)


class SnapshotDigest:
    """Computes the digest of a snapshot while it comes, and compares it with the one that etcd sends last."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._last = b""  # it may be the digest, or the end of the data
        self._bytes = 0

    def add(self, data: bytes) -> None:
        self._bytes += len(data)
        held = self._last + data
        self._digest.update(held[:-_DIGEST_BYTES])
        self._last = held[-_DIGEST_BYTES:]

    def verified(self) -> str:
        """Return the digest in hexadecimal digits; a snapshot that is not what it says is refused."""
        if self._bytes % _PAGE_BYTES != _DIGEST_BYTES or self._digest.digest() != self._last:
            raise DatabaseUnreadable(
                f"the snapshot of {self._bytes} bytes is damaged or not complete: its digest is another one",
                hint="try again; if that does not help, look at the disk of that member",
            )
        return self._last.hex()


def save_snapshot(client: EtcdClient, endpoint: str, write: Callable[[bytes], object]) -> str:
    """Write a snapshot of the member at that endpoint as etcd's own tools do; return the digest that it was sent with.

    If this raises, what has been written is of no use.
    """
    digest = SnapshotDigest()

    def take(data: bytes) -> None:
        digest.add(data)
        write(data)

    client.snapshot(endpoint, take)
    return digest.verified()


class Leadership:
    """Has another member lead than the one with the peer URL."""

    def __init__(self, client: EtcdClient, peer_url: str, report: Callable[[str], None], clock: Clock = CLOCK) -> None:
        self._client = client
        self._peer_url = peer_url
        self._report = report
        self._clock = clock

    def move(self, timeout_s: float) -> None:
        """Return once another member leads; refuse if no other voting member is healthy."""

        def probe() -> str | None:
            try:
                return self._try()
            except EtcdUnreachable as error:
                return error.message
            except EtcdRefused as error:  # it may have lost the lead by itself, or the target is not there any more
                return error.said

        problem = wait_until(probe, timeout_s=timeout_s, pauses=_PAUSES, clock=self._clock)
        if problem is not None:
            raise MembershipRefused(
                f"the etcd member {self._peer_url} still leads after {timeout_s:.0f} s: {problem}",
                hint="etcdctl endpoint status --cluster shows who leads",
                error_class="leader",
            )

    def _try(self) -> str | None:
        members = self._client.sync()
        own = with_peer(members, self._peer_url)
        if own is None:
            raise MembershipRefused(f"etcd has no member with the peer URL {self._peer_url}")
        status = status_of(self._client, own)
        if not status.leader:
            return "etcd has no leader"
        if status.leader != own.id:
            return None
        target = self._successor(members, own)
        self._client.move_leader(own.client_urls[0], target.id, shown=str(target))
        self._report(f"[etcd] {target} is to lead instead of {own}")
        return "the others have not agreed yet"

    def _successor(self, members: tuple[Member, ...], own: Member) -> Member:
        """Return the healthy voting member that has come furthest."""
        health = check_health(self._client, members)
        others = [each for each in health.voters if each.id not in health.ills and each.id != own.id]
        if not others:
            reason = health.unhealthy() or "there is no other one"
            raise MembershipRefused(
                f"{own} has to go on leading etcd, because no other voting member is healthy: {reason}",
                hint="bring another member up first",
                error_class="leader",
            )
        return max(others, key=self._applied)

    def _applied(self, member: Member) -> int:
        try:
            return status_of(self._client, member).applied_index
        except GarboardError:
            return 0
