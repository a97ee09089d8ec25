"""Changing who is a member of etcd: adding a learner, giving it a vote, taking a member away."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from garboard.engine import AddMember, PromoteMember, RemoveMember
from garboard.etcd.client import EtcdClient
from garboard.etcd.errors import IS_NO_LEARNER, NOT_IN_SYNC, EtcdRefused, EtcdUnreachable, MembershipRefused
from garboard.etcd.health import look_at
from garboard.etcd.progress import Progress
from garboard.etcd.values import Member, initial_cluster

# How long a change is tried while etcd has no leader or cannot be reached: what kubeadm gives the calls of one.
CHANGE_WITHIN_S = 120.0
_INTERVAL_S = 0.5
# What etcd refuses now and may allow once members have come up, another join has ended or we have looked again.
_PASSING = ("unhealthy cluster", "not enough started", "too many learner", "already exist", "not found")

ResultT = TypeVar("ResultT")


def _silent(_line: str, /) -> None:
    return


def _nobody() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class EtcdMembers:
    """Changes members through `client`.

    `has_data` says whether this machine holds what a member has stored, if that is known; `abandoned` are the peer URLs
    that nodes wanted to join with whose turn ended because they died.
    """

    client: EtcdClient
    report: Callable[[str], None] = _silent
    has_data: Callable[[], bool] | None = None
    abandoned: Callable[[], tuple[str, ...]] = _nobody
    change_within_s: float = CHANGE_WITHIN_S
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def add(self, action: AddMember) -> str:
        """Add a learner, or find the one that was added; return what `--initial-cluster` has to say."""
        return self._retried(lambda: self._add(action))

    def _add(self, action: AddMember) -> str:
        members = self._without_abandoned(self.client.sync(), action.peer_url)
        _refuse_twin(members, action)
        found = with_peer(members, action.peer_url)
        if found and self._is_lost(found, action.name):
            self.client.remove(found)
            self.report(f"[etcd] removed the learner {found}: it had started on a machine that is no more")
            found = None
        if found is None:
            self._refuse_old_data(action)
            found, members = self.client.add_learner(action.peer_url)
        else:
            self.report(f"[etcd] the member {found} is there already")
        named = (replace(each, name=action.name) if each.id == found.id else each for each in members)
        return initial_cluster(named)

    def _without_abandoned(self, members: tuple[Member, ...], own: str) -> tuple[Member, ...]:
        """Remove learners that nobody will promote: etcd takes only one at a time, and a voter is never among them."""
        left = set(self.abandoned()) - {own}
        orphans = [each for each in members if each.is_learner and left.intersection(each.peer_urls)]
        for orphan in orphans:
            self.client.remove(orphan)
            self.report(f"[etcd] removed the learner {orphan}: the join that added it died")
        return self.client.members() if orphans else members

    def _is_lost(self, found: Member, name: str) -> bool:
        """Say whether a member of our peer URL can never come back, and may go; a voter is not ours to take away."""
        is_here = self.has_data is None or self.has_data()
        if not found.has_started or (found.name == name and is_here):
            return False
        if found.is_learner:
            return True
        reason = "its data are not on this machine" if found.name == name else f"this machine is {name}"
        raise MembershipRefused(
            f"etcd has a voting member {found} with this machine's address, but {reason}",
            hint=_gone_for_good(found),
        )

    def _refuse_old_data(self, action: AddMember) -> None:
        """Refuse to add a member whose etcd could not start: it would read that it was removed, and end."""
        if self.has_data is not None and self.has_data():
            raise MembershipRefused(
                f"this machine holds data of a member that etcd does not have any more ({action.peer_url})",
                hint="it was removed after its join had stopped: garboard undo, then join again",
            )

    def promote(self, action: PromoteMember) -> None:
        """Wait until the learner has caught up, and give it its vote; one that votes already is left alone."""
        give_up_at = self.now() + action.timeout_s
        progress = Progress(self.client, self.report)
        said = ""
        while True:
            try:
                said = self._try_to_promote(action.peer_url, progress)
            except EtcdUnreachable as error:
                said = error.message
            if not said:
                return
            if self.now() >= give_up_at:
                raise MembershipRefused(
                    f"the learner {action.peer_url} has no vote after {action.timeout_s:.0f} s: {said}",
                    hint="crictl logs $(crictl ps -aq --name etcd | head -1); it stays a learner: run again, or undo",
                    error_class="learner",
                )
            self.sleep(_INTERVAL_S)

    def _try_to_promote(self, peer_url: str, progress: Progress) -> str:
        """Give the learner its vote; say why not if that has to wait."""
        members = self.client.sync()
        learner = with_peer(members, peer_url)
        if learner is None:
            raise MembershipRefused(
                f"etcd has no member with the peer URL {peer_url} to promote",
                hint="somebody removed it; begin again: the join adds it anew",
            )
        if not learner.is_learner:
            return ""
        if not learner.has_started:
            return "its etcd has not started"
        progress.look(learner, members)
        try:
            self.client.promote(learner)
        except EtcdRefused as error:
            if NOT_IN_SYNC not in error.said and IS_NO_LEARNER not in error.said:
                raise
            return progress.told or error.said
        return ""

    def remove(self, action: RemoveMember) -> None:
        """Remove a member and make sure that it has gone; refuse if the others could decide nothing then."""
        self._retried(lambda: self._remove(action.peer_url))
        self.report(f"[etcd] no member has the peer URL {action.peer_url} any more")

    def _remove(self, peer_url: str) -> None:
        members = self.client.sync()
        found = with_peer(members, peer_url)
        if found is None:
            return
        self._refuse_loss(members, found)
        others = self._client_of_others(members, found)
        with suppress(EtcdUnreachable):  # the connection may end with the leader that goes; looking again decides
            others.remove(found)
        if with_peer(others.members(), peer_url):
            raise EtcdUnreachable(f"etcd still lists the member {found}", hint="run the command again")

    def _refuse_loss(self, members: Iterable[Member], leaving: Member) -> None:
        if leaving.is_learner:
            return
        health = look_at(self.client, members)
        if health.voters == (leaving,):
            raise MembershipRefused(
                f"{leaving} is the only voting member of etcd: without it the cluster has no data",
                hint="reset takes the last control plane with its data and leaves the member as it is",
                error_class="last-member",
            )
        if not health.has_quorum_without(leaving):
            raise MembershipRefused(
                f"without {leaving} etcd would have no majority: {health.told()}",
                hint="bring those members back, or remove one that is gone for good, then run the command again",
                error_class="quorum",
            )

    def _client_of_others(self, members: Iterable[Member], leaving: Member) -> EtcdClient:
        urls = [url for each in members if each.id != leaving.id and not each.is_learner for url in each.client_urls]
        return self.client.at(*urls)

    def _retried(self, change: Callable[[], ResultT]) -> ResultT:
        """Try a change until etcd can be reached and allows it; each try looks at the members anew."""
        give_up_at = self.now() + self.change_within_s
        told = ""
        while True:
            try:
                return change()
            except (EtcdUnreachable, EtcdRefused) as error:
                is_final = isinstance(error, EtcdRefused) and not any(part in error.said for part in _PASSING)
                if is_final or self.now() >= give_up_at:
                    raise
                if error.message != told:
                    told = error.message
                    self.report(f"[etcd] trying for up to {self.change_within_s:.0f} s: {told}")
            self.sleep(_INTERVAL_S)


def with_peer(members: Iterable[Member], peer_url: str) -> Member | None:
    """Return the member of that peer URL, if there is one."""
    return next((each for each in members if peer_url in each.peer_urls), None)


def _refuse_twin(members: Iterable[Member], action: AddMember) -> None:
    """Refuse a second member of one name: `--initial-cluster` would take the two for one with two addresses."""
    twin = next((each for each in members if each.name == action.name and action.peer_url not in each.peer_urls), None)
    if twin:
        raise MembershipRefused(
            f"etcd has a member {twin} already, and {action.name} would join with {action.peer_url}",
            hint=_gone_for_good(twin),
        )


def _gone_for_good(member: Member) -> str:
    return f"if it is gone for good, remove it on another control-plane node: etcdctl member remove {member.hex_id}"
