"""The coordinator: carries out a cluster plan, one part after the other, each node through the operator's command.

It holds the Lease of the control plane all the time, and hands its token to the runs of the nodes. What it does not
know it asks the nodes; it stops at the first failure, and where nobody can tell what a node has done.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from garboard.engine import LEASE_TOKEN, ClusterPart, ClusterPlan, NodePart, PlanCodec, PlanRefused
from garboard.errors import GarboardError, NotReady
from garboard.host.runs import RunFolder, RunFolders
from garboard.node.coordinator_record import CoordinatorRecord, PartRecord, PartState, RecordJournal, read_record
from garboard.node.interpreters.leases import LeaseToken, NodeLeases, coordinator_cut_short, node_cut_short
from garboard.node.reporter import Reporter, SteadyReporter
from garboard.node.via import Carrier, CommandFound, NodeUnknown, RemoteRun, RemoteStatus
from garboard.phases.control_plane_lease import COORDINATOR, UNIT, acquire_lease, release_lease
from garboard.values import dataclass

# The API server that renews the Lease may be the only one, and away for a while.
_LEASE_S = 600.0
_REMEMBERED = 20
_DONE = ("committed", "confirmed", "unconfirmed")
_OPEN = ("open", "damaged")
# What takes a run back, and what arms its node before it: they are not the run of a part.
_BESIDE = ("undo", "change arm", "change disarm")
# Carries out steps on what all nodes share, under the coordinator's Lease; given again if it was cut short.
OnCluster: TypeAlias = Callable[[ClusterPart, LeaseToken], None]


class CoordinatorStopped(GarboardError):
    """A part has failed, or nobody can tell whether it has; no further part was begun."""

    default_class = "coordinator-stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorOptions:
    """How long a coordinator waits: for the Lease, for a part, and for a node that it has lost.

    `abandons` are records of coordinators that were cut short, and that nobody will resume.
    """

    lease_within_s: float = 30.0
    part_within_s: float = 1800.0
    find_out_s: float = 300.0
    abandons: tuple[str, ...] = ()


class Coordinator:
    """Carries out cluster plans from the machine `node_name`; one at a time."""

    def __init__(
        self,
        node_name: str,
        carrier: Carrier,
        leases: NodeLeases,
        folders: RunFolders,
        codec: PlanCodec,
        on_cluster: OnCluster,
        reporter: Reporter,
        options: CoordinatorOptions | None = None,
    ) -> None:
        self._node_name = node_name
        self._carrier = carrier
        self._leases = leases
        self._folders = folders
        self._codec = codec
        self._on_cluster = on_cluster
        self._reporter = SteadyReporter(reporter)
        self._options = options or CoordinatorOptions()

    def records(self) -> tuple[CoordinatorRecord, ...]:
        """Return what the coordinators of this machine have done, the oldest first."""
        found = (read_record(folder.lines()) for folder in self._folders.all())
        return tuple(sorted((each for each in found if each), key=lambda each: (each.started_at, each.name)))

    def begin(self, command: str, plan: ClusterPlan) -> str:
        """Carry out a plan, and return the name of its record; nothing stays if it cannot begin."""
        if wrong := [*plan.misplaced()]:
            raise PlanRefused(f"the plan is not one for these nodes: {'; '.join(wrong)}", error_class="wrong-node")
        with self._folders.lock(f"garboard {command}"):
            self._refuse_open()
            self._tidy()
            folder = self._folders.new(f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}-{command.split()[0]}")
            journal = RecordJournal(folder, self._codec)
            journal.begin(command, plan)
            try:
                token = self._prepare(folder.name, plan)
            except GarboardError:
                self._leases.close()
                folder.remove()
                raise
            self._drive(journal, plan, token)
            return folder.name

    def resume(self, name: str = "", given: ClusterPlan | None = None) -> str:
        """Go on with the plan that was cut short or stopped, and return the name of its record.

        `given` is the plan of the same command given again: what is left is told to its nodes with the flags of that,
        and a node that is not in it has left the cluster.
        """
        with self._folders.lock("garboard resume"):
            folder = self._to_resume(name)
            journal = RecordJournal(folder, self._codec)
            plan = _as_given(journal.read().plan(folder, self._codec), given)
            gone = frozenset(plan.nodes) - frozenset(given.nodes if given else plan.nodes)
            try:
                token = self._prepare(folder.name, plan, gone)
            except GarboardError:
                self._leases.close()
                raise
            self._leave_out(journal, plan, gone)
            self._drive(journal, plan, token)
            return folder.name

    def abandon(self, name: str = "") -> str:
        """Close the record that nobody will resume, and return its name; what was done stays, and others may begin."""
        with self._folders.lock("garboard abandon"):
            folder = self._to_resume(name)
            holder = f"{self._node_name}/{folder.name}"
            wanted = acquire_lease(holder, payload=f"{COORDINATOR}:{holder}", timeout_s=self._options.lease_within_s)
            try:
                self._leases.acquire(wanted)  # with the payload of the record, which goes when it is released
                self._leases.release(release_lease(holder))
            finally:
                self._leases.close()
            RecordJournal(folder, self._codec).close()
            return folder.name

    def _leave_out(self, journal: RecordJournal, plan: ClusterPlan, gone: frozenset[str]) -> None:
        """Record that there is nothing to do on nodes that have left the cluster."""
        states = [each.state for each in journal.read().parts]
        for index, part in enumerate(plan.parts):
            if isinstance(part, NodePart) and part.node in gone and states[index] != "done":
                self._reporter.report(f"[coordinator] {part.node} has left the cluster, and is left out")
                journal.note(index, PartRecord("done", reason="the node has left the cluster"))

    def _prepare(self, name: str, plan: ClusterPlan, gone: frozenset[str] = frozenset()) -> LeaseToken:
        """Look at all nodes, and acquire the Lease; a plan that another coordinator has left half done is refused."""
        self._carrier.require_same_version(tuple(each for each in plan.nodes if each not in gone))
        holder = f"{self._node_name}/{name}"
        wanted = acquire_lease(
            holder,
            payload=f"{COORDINATOR}:{holder}",
            duration_s=_LEASE_S,
            timeout_s=self._options.lease_within_s,
        )
        token = LeaseToken(holder, int(self._leases.acquire(wanted)[LEASE_TOKEN]))
        dead = [each for each in self._leases.left_behind(COORDINATOR) if each not in self._options.abandons]
        others = [each for each in self._leases.left_behind(UNIT) if each not in plan.nodes]
        if dead or others:
            self._leases.release(release_lease(holder))
            raise coordinator_cut_short(dead[0]) if dead else node_cut_short(others[0])
        self._leases.forget_left_behind(COORDINATOR)
        return token

    def _drive(self, journal: RecordJournal, plan: ClusterPlan, token: LeaseToken) -> None:
        try:
            for index, part in enumerate(plan.parts):
                if journal.read().parts[index].state != "done":
                    self._leases.check()
                    self._reporter.report(f"[coordinator] part {index + 1} of {len(plan.parts)}: {part.title}")
                    self._take(journal, index, part, token)
            journal.close()
            self._leases.forget_left_behind(UNIT)  # every node of the plan has ended its own
            self._leases.release(release_lease(token.holder))
        finally:
            self._leases.close()

    def _take(self, journal: RecordJournal, index: int, part: NodePart | ClusterPart, token: LeaseToken) -> None:
        """Carry out a part and record its end; stop if it is not done."""
        try:
            if isinstance(part, NodePart):
                ended = self._take_node(journal, index, part, token)
            else:
                journal.note(index, PartRecord("running"))
                self._on_cluster(part, token)
                ended = PartRecord("done")
        except GarboardError as error:
            last = journal.read().parts[index]  # before a node was told anything, its part is pending
            state: PartState
            state = "pending" if last.state == "pending" else "unknown" if isinstance(error, NodeUnknown) else "failed"
            ended = replace(last, state=state, reason=error.message)
        journal.note(index, ended)
        if ended.state != "done":
            raise _stopped(journal.read(), index, ended)

    def _take_node(self, journal: RecordJournal, index: int, part: NodePart, token: LeaseToken) -> PartRecord:
        former = journal.read().parts[index]
        words, stdin, run = part.words, part.stdin, ""
        if former.state != "pending":
            found = self._found(part, former)
            if found and found.state in _DONE:
                return PartRecord("done", found.name)
            if found and found.state in _OPEN:
                words, stdin, run = ("resume", found.name), b"", found.name
        before = self._carrier.status(part.node)
        journal.note(index, PartRecord("running", run, before=before))
        outcome = self._carrier.change(
            part.node,
            (*words, "--lease", str(token)),
            stdin=stdin,
            before=before,
            timeout_s=self._options.part_within_s,
            find_out_s=self._options.find_out_s,
        )
        if isinstance(outcome, CommandFound):
            return _judged(PartRecord("running", run, outcome.reason, before), _run_of(outcome.runs))
        name = run or self._name_of_run(part.node, before)
        if outcome.status == 0:
            return PartRecord("done", name)
        return PartRecord("failed", name, f"it ended with status {outcome.status}", before)

    def _name_of_run(self, node: str, before: RemoteStatus) -> str:
        """Return the run that a command has made which has ended; empty if it made none, or the node is silent."""
        with suppress(NodeUnknown):
            made = _run_of(self._carrier.status(node).since(before))
            return made.name if made else ""
        return ""

    def _found(self, part: NodePart, former: PartRecord) -> RemoteRun | None:
        """Ask a node for the run of a part that had begun; wait while anything is at work there."""
        self._reporter.report(f"[{part.node}] asking what became of garboard {' '.join(part.words)}")
        found = self._carrier.find_out(
            part.node, part.words, former.before, f"the part was {former.state}", self._options.find_out_s,
            has_ended=former.state == "failed" and former.status is not None,
        )  # fmt: skip
        if former.run:
            return self._carrier.status(part.node).runs.get(former.run)
        return _run_of(found.runs)

    def _refuse_open(self) -> None:
        for each in self.records():
            if each.is_open:
                raise NotReady(
                    f"{each.command} ({each.name}) was cut short; left are {', '.join(each.left)}",
                    hint="resume it first",
                    error_class="coordinator-open",
                )

    def _to_resume(self, name: str) -> RunFolder:
        found = [each.name for each in self.records() if each.is_open and name in ("", each.name)]
        folder = next((each for each in self._folders.all() if found and each.name == found[-1]), None)
        if folder is None:
            what = f"no open record {name}" if name else "no open record of a coordinator"
            raise NotReady(f"there is {what} on this machine", error_class="no-run")
        return folder

    def _tidy(self) -> None:
        closed = {each.name for each in self.records()[:-_REMEMBERED] if not each.is_open}
        for folder in self._folders.all():
            if folder.name in closed or read_record(folder.lines()) is None:
                folder.remove()


def _as_given(plan: ClusterPlan, given: ClusterPlan | None) -> ClusterPlan:
    """Return a plan with the words that its nodes are told now: what stopped it may need another flag."""
    words = {each.node: each.words for each in given.parts if isinstance(each, NodePart)} if given else {}
    return ClusterPlan(
        tuple(
            replace(each, words=words.get(each.node, each.words)) if isinstance(each, NodePart) else each
            for each in plan.parts
        )
    )


def _run_of(runs: Sequence[RemoteRun]) -> RemoteRun | None:
    """Return the run that a command has begun or gone on with, and not one that has taken it back."""
    own = [each for each in runs if each.command not in _BESIDE]
    return own[-1] if own else None


def _judged(part: PartRecord, found: RemoteRun | None) -> PartRecord:
    """Say where a part is whose connection was lost, by what the node tells of its run."""
    if found is None:
        state: PartState = "failed" if part.run else "pending"
        return replace(part, state=state, reason=f"{part.reason}; nothing has begun there")
    if found.state in _DONE:
        return PartRecord("done", found.name)
    return replace(part, state="failed", run=found.name, reason=f"{part.reason}; {found}")


def _stopped(record: CoordinatorRecord, index: int, part: PartRecord) -> CoordinatorStopped:
    run = f" (run {part.run})" if part.run else ""
    is_known = "is unknown" if part.state == "unknown" else "has failed" if part.state == "failed" else "did not begin"
    return CoordinatorStopped(
        f"{record.titles[index]}{run} {is_known}: {part.reason}; left are {', '.join(record.left)}",
        hint=f"nothing else was begun; look at {record.titles[index]} with garboard status, then resume {record.name}",
    )
