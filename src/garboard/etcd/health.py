"""The health of the members: which of them answer, whether those are a majority, and how far a learner has come."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from garboard.errors import GarboardError
from garboard.etcd.client import EtcdClient
from garboard.etcd.errors import EtcdUnreachable
from garboard.etcd.values import Member, MemberStatus
from garboard.retry import CLOCK, Clock, Pauses, wait_until

# kubeadm looks 8 times, 5 s apart.
AVAILABLE_WITHIN_S = 40.0
_PAUSES = Pauses.every(0.5)

_REPORTED_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Health:
    """The voting members, and why some of them are not healthy, by member id."""

    voters: tuple[Member, ...]
    ills: dict[int, str]

    @property
    def has_quorum(self) -> bool:
        return _is_majority(len(self.voters) - len(self.ills), len(self.voters))

    def has_quorum_without(self, member: Member) -> bool:
        """Say whether the other members would have quorum without `member`."""
        others = [voter for voter in self.voters if voter.id != member.id]
        return _is_majority(sum(voter.id not in self.ills for voter in others), len(others))

    def spares(self, peer_url: str) -> bool:
        """Say whether etcd stays available while the member at `peer_url` is away, and goes on counting.

        One voter of one or two can never be spared: then it has to do that all others are healthy.
        """
        others = [voter for voter in self.voters if peer_url not in voter.peer_urls]
        needed = min(len(self.voters) // 2 + 1, len(self.voters) - 1)
        return sum(voter.id not in self.ills for voter in others) >= needed

    def unhealthy(self) -> str:
        """Name the voting members that are not healthy, each with the reason."""
        return "; ".join(f"{voter}: {self.ills[voter.id]}" for voter in self.voters if voter.id in self.ills)


def _is_majority(count: int, of: int) -> bool:
    return count > of // 2


def check_health(client: EtcdClient, members: Iterable[Member]) -> Health:
    """Return the health of every voting member."""
    voters = tuple(member for member in members if not member.is_learner)
    looked_at = ((voter, _ill(client, voter)) for voter in voters)
    return Health(voters, {voter.id: ill for voter, ill in looked_at if ill})


def _ill(client: EtcdClient, member: Member) -> str:
    if not member.has_started:
        return "it has never started"
    try:
        status = status_of(client, member)
    except GarboardError as error:
        return error.message
    return ", ".join(status.errors)


def status_of(client: EtcdClient, member: Member) -> MemberStatus:
    """Return the status of a member, from the first of its client URLs that answers."""
    failure: GarboardError | None = None
    for url in member.client_urls:
        try:
            return client.status(url)
        except GarboardError as error:
            failure = error
    raise failure or EtcdUnreachable(f"the member {member} announces no client URL")


def await_quorum(client: EtcdClient, *, timeout_s: float = AVAILABLE_WITHIN_S, clock: Clock = CLOCK) -> Health:
    """Return once more than half of the voting members are healthy; on a timeout, raise with the others' problems."""
    found: list[Health] = []

    def probe() -> str | None:
        try:
            found[:] = [check_health(client, client.members())]
        except GarboardError as error:
            return error.message
        return None if found[0].has_quorum else found[0].unhealthy()

    problem = wait_until(probe, timeout_s=timeout_s, pauses=_PAUSES, clock=clock)
    if problem is None:
        return found[0]
    raise EtcdUnreachable(
        f"etcd has no majority of healthy members after {timeout_s:.0f} s: {problem}",
        hint="look at the logs of the members named above: crictl logs $(crictl ps -aq --name etcd | head -1)",
    )


class LearnerProgress:
    """Compares a learner with the leader; `summary` says how far it had caught up at the last look."""

    def __init__(self, client: EtcdClient, report: Callable[[str], None], clock: Clock = CLOCK) -> None:
        self.summary = ""
        self._client = client
        self._report = report
        self._clock = clock
        self._next_report_at = clock.now_s()

    def look(self, learner: Member, members: Iterable[Member]) -> None:
        """Find out how far the learner is; report it if that changed, and not too often."""
        summary = self._compared(learner, members)
        if summary != self.summary and self._clock.now_s() >= self._next_report_at:
            self._report(f"[etcd] {learner.name}: {summary}")
            self._next_report_at = self._clock.now_s() + _REPORTED_EVERY_S
        self.summary = summary

    def _compared(self, learner: Member, members: Iterable[Member]) -> str:
        try:
            behind = status_of(self._client, learner)
        except GarboardError as error:
            return f"the learner does not answer yet ({error.message})"
        ahead = _status_of_leader(self._client, members)
        if ahead is None:
            return f"the learner is at raft index {behind.raft_index}, and no voting member answers"
        return (
            f"the learner is at raft index {behind.raft_index} of {ahead.raft_index}, "
            f"{_megabytes(behind.db_bytes)} of {_megabytes(ahead.db_bytes)}"
        )


class CaughtUp:
    """Whether a member has applied all that etcd had when this was first asked."""

    def __init__(self, client: EtcdClient, peer_url: str) -> None:
        self._client = client
        self._peer_url = peer_url
        self._goal: int | None = None

    def problem(self) -> str | None:
        """Return what is missing; None if the member has caught up."""
        members = self._client.members()
        own = next((each for each in members if self._peer_url in each.peer_urls), None)
        if own is None:
            return f"etcd has no member {self._peer_url}"
        if self._goal is None:
            leader = _status_of_leader(self._client, members)
            if leader is None or not leader.leader:
                return "etcd has no leader"
            self._goal = leader.raft_index
        status = status_of(self._client, own)
        if status.errors:
            return ", ".join(status.errors)
        if status.applied_index >= self._goal:
            return None
        return f"it has applied {status.applied_index} of {self._goal} entries"


def _status_of_leader(client: EtcdClient, members: Iterable[Member]) -> MemberStatus | None:
    """Return the status of the leader; if it does not answer, of those that know one, that with most of its log."""
    found: list[MemberStatus] = []
    for member in members:
        if member.is_learner:
            continue
        with suppress(GarboardError):
            status = status_of(client, member)
            if status.member_id == status.leader:
                return status
            found.append(status)
    return max(found, key=lambda each: (bool(each.leader), each.raft_index), default=None)


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"
