"""How far a learner has come, told now and then."""

import time
from collections.abc import Callable, Iterable

from garboard.errors import GarboardError
from garboard.etcd.client import EtcdClient
from garboard.etcd.health import status_of
from garboard.etcd.values import Member, MemberStatus

_TOLD_EVERY_S = 2.0


class Progress:
    """Compares a learner with the leader; `told` is the last that was seen of it, in words."""

    def __init__(
        self, client: EtcdClient, report: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.told = ""
        self._client = client
        self._report = report
        self._now = now
        self._next_at = now()

    def look(self, learner: Member, members: Iterable[Member]) -> None:
        """Find out how far the learner is; report it if that changed, and not too often."""
        told = self._compared(learner, members)
        if told != self.told and self._now() >= self._next_at:
            self._report(f"[etcd] {learner.name}: {told}")
            self._next_at = self._now() + _TOLD_EVERY_S
        self.told = told

    def _compared(self, learner: Member, members: Iterable[Member]) -> str:
        try:
            behind = status_of(self._client, learner)
        except GarboardError as error:
            return f"the learner does not answer yet ({error.message})"
        ahead = self._status_of_leader(members)
        if ahead is None:
            return f"the learner is at raft index {behind.raft_index}, and no voting member answers"
        return (
            f"the learner is at raft index {behind.raft_index} of {ahead.raft_index}, "
            f"{_megabytes(behind.db_bytes)} of {_megabytes(ahead.db_bytes)}"
        )

    def _status_of_leader(self, members: Iterable[Member]) -> MemberStatus | None:
        best: MemberStatus | None = None
        for member in members:
            if member.is_learner:
                continue
            try:
                status = status_of(self._client, member)
            except GarboardError:
                continue
            if status.member_id == status.leader:
                return status
            best = status
        return best


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"
