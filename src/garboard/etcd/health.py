"""How the members fare: who answers, and whether those that do are a majority."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from garboard.errors import GarboardError
from garboard.etcd.client import EtcdClient
from garboard.etcd.errors import EtcdUnreachable
from garboard.etcd.values import Member, MemberStatus

# kubeadm looks 8 times, 5 s apart.
AVAILABLE_WITHIN_S = 40.0
_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class Health:
    """The voting members, and why some of them do not count as healthy, by member id."""

    voters: tuple[Member, ...]
    ills: dict[int, str]

    @property
    def has_quorum(self) -> bool:
        return _is_majority(len(self.voters) - len(self.ills), len(self.voters))

    def has_quorum_without(self, member: Member) -> bool:
        """Say whether the others would still be able to decide anything once `member` has gone."""
        others = [voter for voter in self.voters if voter.id != member.id]
        return _is_majority(sum(voter.id not in self.ills for voter in others), len(others))

    def told(self) -> str:
        """Name those that do not answer, with the reason."""
        return "; ".join(f"{voter}: {self.ills[voter.id]}" for voter in self.voters if voter.id in self.ills)


def _is_majority(count: int, of: int) -> bool:
    return count > of // 2


def look_at(client: EtcdClient, members: Iterable[Member]) -> Health:
    """Ask every voting member how it is."""
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
    """Return what a member says of itself, at the first of its client URLs that answers."""
    failure: GarboardError | None = None
    for url in member.client_urls:
        try:
            return client.status(url)
        except GarboardError as error:
            failure = error
    raise failure or EtcdUnreachable(f"the member {member} announces no client URL")


def await_quorum(
    client: EtcdClient,
    *,
    timeout_s: float = AVAILABLE_WITHIN_S,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Health:
    """Return once more than half of the voting members are healthy; raise with what ails the others."""
    give_up_at = now() + timeout_s
    while True:
        told = ""
        try:
            health = look_at(client, client.members())
            if health.has_quorum:
                return health
            told = health.told()
        except GarboardError as error:
            told = error.message
        if now() >= give_up_at:
            raise EtcdUnreachable(
                f"etcd has no majority of healthy members after {timeout_s:.0f} s: {told}",
                hint="look at the logs of the members named above: crictl logs $(crictl ps -aq --name etcd | head -1)",
            )
        sleep(_INTERVAL_S)
