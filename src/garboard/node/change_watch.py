"""The watcher of a node that is armed: it reads whether the change was confirmed, keeps it, or takes it back in time.

systemd starts it again and again until the node is disarmed. It remembers nothing that has to outlive it: what it does
next follows from the arming, the journal of the run, the record in the cluster, the members of etcd and the time.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from garboard.change.confirming import (
    LOOK_EVERY_S,
    Arming,
    Confirmation,
    Move,
    MoveKind,
    RunPhase,
    SeenPart,
    due_at,
    next_move,
    revision_deadline,
)
from garboard.errors import GarboardError
from garboard.model.paths import ADMIN_CONF
from garboard.node.change_arming import (
    disarm,
    own_kubeconfig,
    phase_of,
    read_armed,
    run_of,
    settle_arming,
)
from garboard.node.change_cluster import ChangeCluster, StoredTarget
from garboard.node.interpreters.members import EtcdReader
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.workflow import LocalNode
from garboard.phases.revision import NodeReport, ReportResult, moment
from garboard.retry import CLOCK
from garboard.values import dataclass

IS_KEPT, IS_TAKEN_BACK, NEEDS_HELP = 0, 13, 14
_SAID_BY_ITSELF = timedelta(seconds=30)
_TAKEN_BACK: tuple[ReportResult, ...] = ("reverted", "failed")


class MemberReadiness(Protocol):
    def is_serving(self, client_url: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEdges:
    """What a watcher looks at besides the node itself, and the clock it goes by."""

    cluster: ChangeCluster
    members: MemberReadiness
    is_administrator: bool  # else it may only read the target, and write its own report
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = CLOCK.sleep


class DownMembers:
    """For how long members of etcd have not answered, as far as this process has seen."""

    def __init__(self, members: MemberReadiness) -> None:
        self._members = members
        self._since: dict[str, datetime] = {}

    def look(self, urls: dict[str, str], now: datetime) -> dict[str, float]:
        """Return for how many seconds each member that is down has been so, by the names of nodes."""
        down = {node for node, url in urls.items() if not self._members.is_serving(url)}
        kept = {node: since for node, since in self._since.items() if node in down or node not in urls}
        self._since = kept | {node: now for node in down if node not in kept}
        return {node: (now - self._since[node]).total_seconds() for node in sorted(down)}


class ChangeWatcher:
    """Does what `next_move` says until this node is disarmed."""

    def __init__(self, node: LocalNode, edges: WatchEdges) -> None:
        self._node, self._edges = node, edges
        self._transactions = Transactions(node.runs, node.reporter)
        self._down = DownMembers(edges.members)
        self._stored: StoredTarget | None = None  # as it was read last, if it is that of the arming
        self._edited: tuple[str, ...] = ()
        self._told: dict[str, str] = {}  # the last line about each matter
        self.status = IS_KEPT

    def watch(self) -> int:
        """Return what became of the change: it was kept, taken back, or taken back except for what somebody edited."""
        while arming := read_armed(self._node):
            try:
                self._move(arming)
            except GarboardError as error:  # nobody else would go on
                self._tell("failure", f"{error.message}; it is tried again")
                self._edges.sleep(LOOK_EVERY_S)
        return self.status

    def _move(self, arming: Arming) -> None:
        if not self._node.runs.lock_holder():
            settle_arming(self._node)
        phase, run = phase_of(self._node.runs, arming)
        seen = self._look(arming, phase)
        move = next_move(arming, seen, self._edges.now())
        self._tell("move", f"{move.kind}: {move.why}")
        match move.kind:
            case MoveKind.WAIT:
                self._edges.sleep(max(move.wait_s, 0.1))
            case MoveKind.KEEP:
                self._transactions.confirm(run)
            case MoveKind.REVERT:
                self._take_back(arming, run, seen)
            case MoveKind.DISARM:
                self._disarm(arming, phase, move)

    def _look(self, arming: Arming, phase: RunPhase) -> SeenPart:
        confirmation = self._ask(arming)
        now = self._edges.now()
        deadline = self._deadline(arming, phase)
        seen = SeenPart(run=phase, confirmation=confirmation, deadline=deadline)
        urls = {**arming.other_members}
        if not urls or phase in ("none", "running", "kept", "reverted") or now < due_at(arming, deadline, now):
            return seen
        urls[arming.node] = arming.members[arming.node]
        down_for_s = self._down.look(urls, now)
        own_down_for_s = down_for_s.pop(arming.node, 0.0)
        return replace(seen, down_for_s=down_for_s, own_down_for_s=own_down_for_s)

    def _ask(self, arming: Arming) -> Confirmation:
        """Read the target; one of another change, or none, confirms nothing."""
        self._stored = None
        try:
            stored = self._edges.cluster.target()
            if stored is None or (stored.target.revision, stored.target.digest) != (arming.revision, arming.digest):
                return "awaited"
            self._stored = self._with_deadline(arming, stored)
        except GarboardError as error:  # whatever keeps it from answering: the change goes back without it
            self._tell("cluster", f"the cluster does not say whether the change was confirmed: {error.message}")
            return "unknown"
        return "given" if self._stored.target.confirmed else "awaited"

    def _with_deadline(self, arming: Arming, stored: StoredTarget) -> StoredTarget:
        """Write until when the change can be confirmed, once all nodes report that they are done."""
        target = stored.target
        # The last node that follows says itself that it was the last one; a worker may not.
        is_open = target.is_unconfirmed and target.state in ("rolling", "committed") and not target.confirm_by
        if not is_open or not self._edges.is_administrator:
            return stored
        reports = self._edges.cluster.reports(target)
        if not all(each in reports and reports[each].result == "done" for each in target.nodes):
            return stored
        now, last = self._edges.now(), max((each.at for each in reports.values()), default="")
        if target.state == "rolling" and moment(now - _SAID_BY_ITSELF) < last:
            return stored
        until = revision_deadline(arming, now, target.confirm_within_seconds)
        moved = target.moved("committed", now, confirm_by=moment(until))
        self._edges.cluster.replace(stored, moved)
        return self._edges.cluster.target() or stored

    def _deadline(self, arming: Arming, phase: RunPhase) -> datetime | None:
        """Return the deadline of the revision, and have the journal hold it for when nobody answers."""
        run = run_of(self._node.runs, arming)
        known = run.record.until if run else None
        confirm_by = self._stored.target.confirm_by if self._stored else ""
        if confirm_by:
            until = datetime.fromisoformat(confirm_by)
            if phase == "unconfirmed" and run and known != until:
                self._transactions.extend(run.header.run, until)
            return until
        return known if known != arming.until else None

    def _take_back(self, arming: Arming, run: str, seen: SeenPart) -> None:
        reaches_cluster = seen.confirmation != "unknown"
        # From here on nobody can confirm the change any more; who does it just now comes before.
        if reaches_cluster and not self._begin_reverting() and seen.run == "unconfirmed":
            self._edges.sleep(1.0)
            return
        edited = self._transactions.take_back(RunOptions(command="undo"), run, reaches_cluster=reaches_cluster)
        self._edited = tuple(sorted(edited))

    def _begin_reverting(self) -> bool:
        """Say in the record that the change is taken back; False if it has moved, such as by being confirmed."""
        stored = self._stored
        if stored is None or not self._edges.is_administrator or stored.target.state in ("reverting", "reverted"):
            return True
        moved = stored.target.moved("reverting", self._edges.now())
        return not stored.target.confirmed and self._edges.cluster.replace(stored, moved)

    def _disarm(self, arming: Arming, phase: RunPhase, move: Move) -> None:
        result: ReportResult | None = "confirmed" if phase == "kept" else None
        if phase == "reverted":
            result = self._end_reverting(arming)
        report = self._report(arming, result) if result else None
        disarm(self._node, arming, report, move.why)
        if result in _TAKEN_BACK:
            self._settle(arming)
            self.status = NEEDS_HELP if result == "failed" else IS_TAKEN_BACK

    def _end_reverting(self, arming: Arming) -> ReportResult | None:
        """Put back what all nodes share; None if the run was taken back by its own command, which says so itself."""
        now = self._edges.now()
        if now >= due_at(arming, self._deadline(arming, "reverted"), now):
            self._begin_reverting()
            self._ask(arming)
        target = self._stored.target if self._stored else None
        if target is None or (target.state not in ("reverting", "reverted") and not target.confirmed):
            return None
        if self._edges.is_administrator and target.state == "reverting":
            edited = self._edges.cluster.restore_documents(target)
            self._edited = (*self._edited, *(f"ConfigMap {each}" for each in edited))
        if self._edited:
            self._tell("edited", f"somebody has edited {', '.join(self._edited)} since the change: that stays as it is")
        return "failed" if self._edited else "reverted"

    def _report(self, arming: Arming, result: ReportResult) -> NodeReport:
        at = moment(self._edges.now())
        return NodeReport(revision=arming.revision, digest=arming.digest, result=result, at=at)

    def _settle(self, arming: Arming) -> None:
        """Say in the record that the change is taken back, if this was the last control plane."""
        if not self._edges.is_administrator or self._ask(arming) == "unknown" or self._stored is None:
            return
        target = self._stored.target
        if target.state == "reverting" and not self._edges.cluster.control_planes_left(target):
            self._edges.cluster.replace(self._stored, target.moved("reverted", self._edges.now()))

    def _tell(self, matter: str, text: str) -> None:
        if self._told.get(matter) != text:
            self._node.reporter.report(f"[confirm] {text}")
        self._told[matter] = text


def edges_of(node: LocalNode) -> WatchEdges:
    """Return what the watcher of this machine looks at, with the credentials that the node has."""
    kubeconfig = own_kubeconfig(node)
    arming = read_armed(node)
    cluster = NodeCluster(node.machine, kubeconfig, "")
    members = EtcdReader(node.machine, cluster, arming.certificates_dir if arming else "")
    is_administrator = kubeconfig == ADMIN_CONF
    return WatchEdges(cluster=ChangeCluster(kubeconfig), members=members, is_administrator=is_administrator)
