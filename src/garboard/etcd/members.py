"""Changing the members of etcd: adding and promoting a learner, removing a member, and refusing harmful changes."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from garboard.errors import GarboardError
from garboard.etcd.client import EtcdClient
from garboard.etcd.errors import IS_NO_LEARNER, NOT_IN_SYNC, EtcdRefused, EtcdUnreachable, MembershipRefused
from garboard.etcd.health import LearnerProgress, check_health
from garboard.etcd.values import AddedMember, Member, initial_cluster
from garboard.retry import CLOCK, Clock, Pauses, retry, wait_until

# How long a change is tried while etcd has no leader or cannot be reached: what kubeadm gives the calls of one.
CHANGE_WITHIN_S = 120.0
_PAUSES = Pauses.every(0.5)
# What etcd refuses now and may allow once members have come up, another join has ended or we have looked again.
_PASSING = ("unhealthy cluster", "not enough started", "too many learner", "already exist", "not found")

ResultT = TypeVar("ResultT")


def _silent(_line: str, /) -> None:
    return


def _nothing() -> None:
    return


def _nobody() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class EtcdMembers:
    """Changes members through `client`, which knows them by id; a node knows its own member by the peer URL.

    `has_data` says whether this machine has the data of a member, if that is known; `abandoned` returns the peer URLs
    of nodes that died while they joined, and `forget_abandoned` is called once none of them has a learner any more.
    `confirm` is called before every change, and raises if another node may be changing the members by now.
    """

    client: EtcdClient
    report: Callable[[str], None] = _silent
    has_data: Callable[[], bool] | None = None
    abandoned: Callable[[], tuple[str, ...]] = _nobody
    forget_abandoned: Callable[[], None] = _nothing
    confirm: Callable[[], None] = _nothing
    change_within_s: float = CHANGE_WITHIN_S
    clock: Clock = CLOCK

    def add(self, name: str, peer_url: str) -> AddedMember:
        """Add a learner, or find the one that was added."""
        return self._retried(lambda: self._add(name, peer_url))

    def _add(self, name: str, peer_url: str) -> AddedMember:
        members = self._without_abandoned(self.client.sync(), peer_url)
        _refuse_twin(members, name, peer_url)
        found = with_peer(members, peer_url)
        if found and self._is_lost(found, name):
            self._remove_learner(found, "it had started on a machine that is no more")
            found = None
        if found is None:
            self._refuse_old_data(peer_url)
            found, members = self._at_each(self.client, lambda member: member.add_learner(peer_url))
        else:
            self.report(f"[etcd] the member {found} is there already")
        named = (replace(each, name=name) if each.id == found.id else each for each in members)
        return AddedMember(found, initial_cluster(named))

    def _without_abandoned(self, members: tuple[Member, ...], own: str) -> tuple[Member, ...]:
        """Remove learners of dead joins: etcd accepts one learner at a time. A voting member is never removed."""
        left = set(self.abandoned()) - {own}
        orphans = [each for each in members if each.is_learner and left.intersection(each.peer_urls)]
        for orphan in orphans:
            self._remove_learner(orphan, "the join that added it died")
        self.forget_abandoned()
        return self.client.members() if orphans else members

    def _remove_learner(self, learner: Member, why: str) -> None:
        """Remove a learner if it still is one: etcd would remove a member that votes by now just as well.

        A node promotes its learner only if it has renewed its Lease a moment before. So once the Lease is ours, nobody
        else promotes one between the look and the removal.
        """
        self.confirm()
        self._refuse_promoted(learner)
        self._at_each(self.client, lambda member: member.remove(learner.id, shown=str(learner)))
        self.report(f"[etcd] removed the learner {learner}: {why}")

    def _refuse_promoted(self, learner: Member) -> None:
        """Raise if the learner has become a voting member, so that the change begins anew with what is so now."""
        if any(each.id == learner.id and not each.is_learner for each in self.client.members()):
            raise EtcdUnreachable(f"the learner {learner} has got a vote in between", hint="run the command again")

    def _is_lost(self, found: Member, name: str) -> bool:
        """Say whether the member with our peer URL has lost its data and may be removed; a voting member never may."""
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

    def _refuse_old_data(self, peer_url: str) -> None:
        """Refuse to add a member on old data: its etcd would read there that it was removed, and exit."""
        if self.has_data is not None and self.has_data():
            raise MembershipRefused(
                f"this machine holds data of a member that etcd does not have any more ({peer_url})",
                hint="it was removed after its join had stopped: garboard undo, then join again",
            )

    def promote(self, peer_url: str, timeout_s: float) -> None:
        """Wait until the learner has caught up, and promote it; a voting member is left alone."""
        progress = LearnerProgress(self.client, self.report, self.clock)

        def probe() -> str | None:
            try:
                return self._try_to_promote(peer_url, progress)
            except EtcdUnreachable as error:
                return error.message

        problem = wait_until(probe, timeout_s=timeout_s, pauses=_PAUSES, clock=self.clock)
        if problem is not None:
            raise MembershipRefused(
                f"the learner {peer_url} has no vote after {timeout_s:.0f} s: {problem}",
                hint="crictl logs $(crictl ps -aq --name etcd | head -1); it stays a learner: run again, or undo",
                error_class="learner",
            )

    def _try_to_promote(self, peer_url: str, progress: LearnerProgress) -> str | None:
        """Promote the learner; return why not if that has to wait."""
        members = self.client.sync()
        learner = with_peer(members, peer_url)
        if learner is None:
            raise MembershipRefused(
                f"etcd has no member with the peer URL {peer_url} to promote",
                hint="somebody removed it; begin again: the join adds it anew",
            )
        if not learner.is_learner:
            return None
        if not learner.has_started:
            return "its etcd has not started"
        progress.look(learner, members)
        try:
            self._at_each(self.client, lambda member: member.promote(learner.id, shown=str(learner)))
        except EtcdRefused as error:
            if NOT_IN_SYNC not in error.said and IS_NO_LEARNER not in error.said:
                raise
            return progress.summary or error.said
        return None

    def _at_each(self, client: EtcdClient, change: Callable[[EtcdClient], ResultT]) -> ResultT:
        """Ask one member after the other for a change, each at most a moment after the Lease was renewed."""
        failure: EtcdUnreachable | None = None
        for endpoint in client.by_preference:
            self.confirm()
            try:
                return change(client.at(endpoint))
            except EtcdUnreachable as error:
                failure = error
        raise failure or EtcdUnreachable("no member of etcd is known that could be asked")

    def remove(self, peer_url: str, member_id: str = "") -> None:
        """Remove a member and verify that it is gone; refuse if the others would have no quorum.

        With an id, another member with the peer URL stays: its node has been set up anew since.
        """
        self._retried(lambda: self._remove(peer_url, member_id))
        gone = f"the id {member_id}" if member_id else f"the peer URL {peer_url}"
        self.report(f"[etcd] no member has {gone} any more")

    def _remove(self, peer_url: str, member_id: str) -> None:
        members = self.client.sync()
        found = _chosen(members, peer_url, member_id)
        if found is None:
            if another := with_peer(members, peer_url):
                self.report(f"[etcd] the member {another} came later, with the same peer URL: it stays")
            return
        self._refuse_loss(members, found)
        others = self._client_of_others(members, found)
        if found.is_learner:
            self.confirm()
            self._refuse_promoted(found)
        with suppress(EtcdUnreachable):  # the connection may end with the leader that goes; looking again decides
            self._at_each(others, lambda member: member.remove(found.id, shown=str(found)))
        if any(each.id == found.id for each in others.members()):
            raise EtcdUnreachable(f"etcd still lists the member {found}", hint="run the command again")

    def _refuse_loss(self, members: Iterable[Member], leaving: Member) -> None:
        if leaving.is_learner:
            return
        health = check_health(self.client, members)
        if health.voters == (leaving,):
            raise MembershipRefused(
                f"{leaving} is the only voting member of etcd: without it the cluster has no data",
                hint="reset takes the last control plane with its data and leaves the member as it is",
                error_class="last-member",
            )
        if not health.has_quorum_without(leaving):
            raise MembershipRefused(
                f"without {leaving} etcd would have no majority: {health.unhealthy()}",
                hint="bring those members back, or remove one that is gone for good, then run the command again",
                error_class="quorum",
            )

    def _client_of_others(self, members: Iterable[Member], leaving: Member) -> EtcdClient:
        urls = [url for each in members if each.id != leaving.id and not each.is_learner for url in each.client_urls]
        return self.client.at(*urls)

    def _retried(self, change: Callable[[], ResultT]) -> ResultT:
        """Retry a change until etcd can be reached and allows it; each attempt lists the members anew."""
        reported = ""

        def report(error: GarboardError, _left_s: float) -> None:
            nonlocal reported
            if error.message != reported:
                reported = error.message
                self.report(f"[etcd] trying for up to {self.change_within_s:.0f} s: {reported}")

        return retry(
            change,
            timeout_s=self.change_within_s,
            pauses=_PAUSES,
            is_passing=_is_passing,
            on_failure=report,
            clock=self.clock,
        )


def _is_passing(error: GarboardError) -> bool:
    if isinstance(error, EtcdRefused):
        return any(part in error.said for part in _PASSING)
    return isinstance(error, EtcdUnreachable)


def with_peer(members: Iterable[Member], peer_url: str) -> Member | None:
    """Return the member with that peer URL, if there is one."""
    return next((each for each in members if peer_url in each.peer_urls), None)


def _chosen(members: Iterable[Member], peer_url: str, member_id: str) -> Member | None:
    if not member_id:
        return with_peer(members, peer_url)
    return next((each for each in members if each.hex_id == member_id), None)


def _refuse_twin(members: Iterable[Member], name: str, peer_url: str) -> None:
    """Refuse a second member of the same name: in `--initial-cluster` they would be one member with two addresses."""
    twin = next((each for each in members if each.name == name and peer_url not in each.peer_urls), None)
    if twin:
        raise MembershipRefused(
            f"etcd has a member {twin} already, and {name} would join with {peer_url}",
            hint=_gone_for_good(twin),
        )


def _gone_for_good(member: Member) -> str:
    return f"if it is gone for good, remove it on another control-plane node: etcdctl member remove {member.hex_id}"
