"""Runs as transactions: begun with a journal, resumed where they stopped, undone, closed."""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from garboard.engine import (
    ClusterPlace,
    Executor,
    Journal,
    Observers,
    Plan,
    Progress,
    RemoveMember,
    RunHeader,
    RunRecord,
    Salvage,
    Step,
    UndoLimits,
    added_members,
    edited_since,
    plan_undo,
    point_of_no_return,
    read_run,
    refuse_units,
    traits_of,
)
from garboard.engine.journal import NO_PROGRESS
from garboard.engine.newcomers import Newcomers, newcomers, sparing
from garboard.engine.undo import NO_LIMITS, UndoRefused
from garboard.errors import GarboardError, StalePlan
from garboard.host.locks import NodeLocked
from garboard.host.runs import RunFolder
from garboard.node.diagnostics import keep_diagnostics
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.observe import looking_again
from garboard.node.reporter import Reporter, SteadyReporter
from garboard.node.runs import Run, Runs
from garboard.node.step_hooks import Boundaries, Interruption, Stopwatch, without_hangup
from garboard.node.wiring import RunSettings, Wiring, wired_for
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.node.interpreters.objects import NodeCluster
    from garboard.pki.keys import KeySource

TimingsFormat: TypeAlias = Literal["", "text", "json"]
# A single phase is short: a second one waits for it instead of being refused, and a whole run is not refused for one
# that is just ending.
_WAIT_FOR_PHASE_S, _WAIT_S = 30.0, 3.0
_MOST_NAMED = 5  # of what came into a folder
PLAN_AGAIN = "nothing was changed; run the command again: it plans from what is there now"
# While a control plane is taken away, the load balancer may still send requests to it for a moment.
_RETRY_WHILE_UNDOING_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """What sets the runs of one workflow apart from those of another."""

    cluster: ClusterPlace = "local"  # where the objects of the run live; "made": the run makes the cluster
    supersedes: bool = False  # it may begin on top of open runs, and closes them all when it ends
    is_undoable: bool = True  # else nothing is kept of what it changes
    undoes_on_failure: bool = False  # as if the user had asked for it


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a plan is carried out; `command` is what was typed, such as `init phase certs`."""

    command: str
    is_whole: bool = True
    policy: RunPolicy = RunPolicy()
    undoes_on_failure: bool = False
    diagnostics: str = ""  # the folder for what explains a failed step; empty if nobody wants that
    timings: TimingsFormat = ""
    is_saved: bool = (
        False  # the plan was not made under the lock that is held now: what it was made from may have moved
    )
    confirm_within_s: float = 0.0  # when all is done, the run waits for as long to be confirmed; 0: it is committed
    confirm_by: datetime | None = None  # a moment instead, if the run is one of several nodes
    lease: LeaseToken | None = None  # of the coordinator that holds the Lease for a run that is resumed or undone


@dataclass(frozen=True, slots=True)
class Transactions:
    """Begins, resumes and undoes the runs of this node."""

    runs: Runs
    reporter: Reporter

    @property
    def _steady(self) -> SteadyReporter:
        return SteadyReporter(self.reporter)

    @contextmanager
    def locked(
        self, command: str, *, is_whole: bool = True, lock: Callable[..., AbstractContextManager[None]] | None = None
    ) -> Iterator[None]:
        """Hold the node lock, so that what is planned is still so when it is carried out; a wait says who holds it.

        Another `lock` is taken instead if it is given.
        """

        def waiting(error: NodeLocked) -> None:
            self._steady.report(f"[{command}] waiting for the node lock: {error.message}")

        with (lock or self.runs.lock)(command, wait_s=_WAIT_S if is_whole else _WAIT_FOR_PHASE_S, on_wait=waiting):
            yield

    def carry_out(
        self,
        plan: Plan,
        settings: RunSettings,
        options: RunOptions,
        cluster: "NodeCluster | None" = None,
        keys: "KeySource | None" = None,
    ) -> None:
        """Carry out a plan as one run; the caller holds the node lock since before the plan was made."""
        settings = replace(settings, lease_id=secrets.token_hex(4))
        header = RunHeader(
            run="",
            command=options.command,
            started_at=datetime.now(UTC),
            cluster=options.policy.cluster,
            is_whole=options.is_whole,
            supersedes=options.policy.supersedes,
            is_undoable=options.policy.is_undoable,
            confirm_within_s=options.confirm_within_s,
            confirm_by=options.confirm_by,
            settings=settings.texts(),
        )
        _refuse_unconfirmed(plan, header)
        with without_hangup(), self._wired(plan, settings, header, cluster, keys) as wiring:
            if not header.supersedes:
                self.runs.refuse_open()
            executor = Executor(wiring.interpreters, observers=wiring.observers, node=settings.node_name)
            executor.refuse(plan)
            refuse_units(plan)
            look = looking_again(self.runs.machine, wiring.cluster, wiring.member_lines) if options.is_saved else None
            executor.refuse_stale(plan, hint=PLAN_AGAIN, look=look)
            wiring.check(plan)
            wiring.leases.begin_run()
            self.runs.tidy()
            journal = self._begin(header, plan, wiring.observers)
            self._perform(plan, journal, wiring, replace(options, lease=settings.lease), header=header)
            self.close_superseded(options.command, options.policy)

    def close_superseded(self, command: str, policy: RunPolicy) -> None:
        """Close the open runs and remove the damaged ones, if the workflow that has ended supersedes them."""
        if policy.supersedes:
            self.runs.last_good.remove()
            for name in self.runs.close_superseded():
                self._steady.report(f"[{command}] the damaged journal of run {name} is removed")

    def forget(self, name: str) -> Salvage:
        """Set aside a run that can be neither resumed nor undone; the node stays as it is."""
        with self.locked("runs forget"):
            return self.runs.forget(name)

    def resume(self, options: RunOptions, name: str = "") -> str:
        """Finish the open run, and return its name; refuse if it is not the one that is named."""
        with self.locked(options.command):
            self.runs.tidy()
            run = self.runs.to_resume(name)
            self._continue(run, options)
            return run.header.run

    def confirm(self, name: str = "") -> str:
        """Keep for good what an unconfirmed run has done, and return its name."""
        with self.locked("runs confirm"):
            run = self.runs.to_confirm(name)
            self._keep_last_good(run.folder.name, run.header, run.record.plan(run.folder, self.runs.codec))
            self.runs.journal(run).close("confirmed")
            return run.header.run

    def extend(self, name: str, until: datetime) -> None:
        """Have an unconfirmed run wait until another moment."""
        with self.locked("runs confirm"):
            run = self.runs.to_confirm(name)
            if run.record.until != until:
                self.runs.journal(run).leave_unconfirmed(until)

    def take_back(self, options: RunOptions, name: str, *, reaches_cluster: bool) -> frozenset[str]:
        """Undo the run of that name, and return the files that stay because somebody else has written them since.

        What nodes share in the cluster stays; without a cluster to reach, all of its objects do, and no Lease is
        taken. An undo that was cut short goes on.
        """
        with self.locked(options.command, is_whole=False):
            self.runs.tidy()
            run = self.runs.to_undo(name)
            if run.header.undoes:
                self._continue(run, options)
                return frozenset()
            plan = run.record.plan(run.folder, self.runs.codec)
            edited = edited_since(plan, run.record, self.runs.machine)
            limits = UndoLimits(keeps_objects=not reaches_cluster, keeps_shared=True, spared=edited)
            self._undo(run, options, limits)
            return edited

    def undo(self, options: RunOptions, name: str = "") -> str:
        """Undo the open run, or the unconfirmed one, and return its name; an interrupted undo is continued."""
        with self.locked(options.command):
            return self._undo_next(options, name)

    def undo_overdue(self, options: RunOptions, now: datetime | None = None) -> str:
        """Undo the unconfirmed run whose time has passed, and return its name; do nothing and return "" without one.

        A timer calls this, which comes only once: it waits for the node lock as long as a single phase does.
        """
        with self.locked(options.command, is_whole=False):
            name = self.runs.overdue(now or datetime.now(UTC))
            return self._undo_next(options, name) if name else ""

    def _undo_next(self, options: RunOptions, name: str) -> str:
        self.runs.tidy()
        run = self.runs.to_undo(name)
        if run.header.undoes:
            self._continue(run, options)
        else:
            self._undo(run, options)
        return run.header.undoes or run.header.run

    def planned_undo(self, name: str = "") -> Plan:
        """Return the plan of an undo."""
        run = self.runs.to_undo(name)
        if run.header.undoes:
            return run.record.plan(run.folder, self.runs.codec)
        with self._wired(Plan(), _settings_of_undo(run.header).under(None), run.header) as wiring:
            return self._plan_undo(run, wiring)

    def _plan_undo(self, run: Run, wiring: Wiring, limits: UndoLimits = NO_LIMITS) -> Plan:
        done = run.record.plan(run.folder, self.runs.codec)
        observers = _observers(run.header, wiring.observers)
        return plan_undo(done, run.record, observers, run.folder.kept, limits)

    def _continue(self, run: Run, options: RunOptions) -> None:
        header, progress = run.header, run.record.progress
        plan = run.record.plan(run.folder, self.runs.codec)
        self._steady.report(f"[resume] run {header.run}: {len(progress.finished)} of {len(plan.steps)} steps are done")
        # The coordinator that held the Lease for the run when it began may have gone since.
        settings = RunSettings.of_texts(header.settings).under(options.lease)
        with without_hangup(), self._wired(plan, settings, header) as wiring:
            executor = Executor(wiring.interpreters, observers=wiring.observers, node=settings.node_name)
            executor.refuse(plan)
            if header.undoes:
                plan = self._sparing_newcomers(plan, run.record)
                wiring.require_majority(_leaving(plan, progress))
            else:
                executor.refuse_stale(plan, progress, hint=_put_back(run.record))
                self._refuse_newcomers(plan, run.record)
                wiring.refuse_other_voters(settings)
            observers = _observers(header, wiring.observers)
            journal = Journal(run.folder, self.runs.codec, observers, progress, header.keeps_before)
            way = replace(options, is_whole=header.is_whole)
            self._perform(plan, journal, wiring, way, progress, header=header)
        self.close_superseded(header.command, RunPolicy(supersedes=header.supersedes))

    def _sparing_newcomers(self, plan: Plan, record: RunRecord) -> Plan:
        """Return the plan of an undo that leaves what came since it was interrupted where it is, and say so."""
        found = newcomers(plan, record, self.runs.machine)
        for line in _told(plan, found):
            self._steady.report(f"[undo] {line}: that stays as it is")
        return sparing(plan, found)

    def _refuse_newcomers(self, plan: Plan, record: RunRecord) -> None:
        """Refuse to empty folders that hold what came since the run was interrupted."""
        if lines := _told(plan, newcomers(plan, record, self.runs.machine)):
            raise StalePlan(f"the plan is stale: {'; '.join(lines)}", hint=_put_back(record))

    def _undo(self, run: Run, options: RunOptions, limits: UndoLimits = NO_LIMITS) -> None:
        header = run.header
        settings = _settings_of_undo(header).under(options.lease)
        with without_hangup(), self._wired(Plan(), settings, header) as wiring:
            # Without a majority of etcd the API server cannot even say what is there.
            if not limits.keeps_objects:
                wiring.require_majority(added_members(run.record.plan(run.folder, self.runs.codec), run.record))
            plan = self._plan_undo(run, wiring, limits)
            own = replace(
                header,
                settings=settings.texts(),
                command="undo",
                started_at=datetime.now(UTC),
                undoes=header.run,
                supersedes=False,
                confirm_within_s=0.0,
                confirm_by=None,
            )
            for note in plan.warnings:
                self._steady.report(f"[undo] warning: {note.text}")
            Executor(wiring.interpreters).refuse(plan)
            for note in plan.notes:
                self._steady.report(f"[{note.phase}] {note.text}")
            journal = self._begin(own, plan, Observers(files=self.runs.machine))
            way = replace(options, undoes_on_failure=False, is_whole=header.is_whole)
            self._perform(plan, journal, wiring, way, header=own)

    def _perform(
        self,
        plan: Plan,
        journal: Journal,
        wiring: Wiring,
        options: RunOptions,
        progress: Progress = NO_PROGRESS,
        *,
        header: RunHeader,
    ) -> None:
        watch, interruption = Stopwatch(self._steady.report), Interruption()
        retry_s = _RETRY_WHILE_UNDOING_S if header.undoes else 0.0
        executor = Executor(
            wiring.interpreters,
            self._steady.report,
            journal,
            _around(watch, interruption, wiring.check_before),
            retry_s,
            wiring.observers,
            leaves_moved=bool(header.undoes),
        )
        try:
            with interruption.watching():
                executor.execute(plan, progress)
        except GarboardError as error:
            with suppress(GarboardError):
                journal.fail(error.message)
            # Before anything is undone: afterwards there is nothing left to look at.
            if options.diagnostics:
                keep_diagnostics(options.diagnostics, error, plan, wiring.view, self._steady)
            self._give_up(error, plan, journal, options, header)
            raise
        watch.finish()
        self._close(plan, journal, header)
        self._report_timings(watch, options.timings)

    def _close(self, plan: Plan, journal: Journal, header: RunHeader) -> None:
        """End a run that is done; or leave it unconfirmed, if somebody has to confirm it."""
        if header.undoes:
            self.runs.close_undone(header.undoes)
        elif header.is_to_confirm:
            journal.leave_unconfirmed(header.confirmed_until(datetime.now(UTC)))
            return
        else:
            self._keep_last_good(journal.store.name, header, plan)
        journal.close("committed")
        if not header.is_whole:
            assert isinstance(journal.store, RunFolder)
            journal.store.remove()

    def _keep_last_good(self, name: str, header: RunHeader, plan: Plan) -> None:
        """Keep what a whole run has rendered as the last good set of this node; before the run is closed."""
        if header.is_whole and not header.supersedes:
            self.runs.last_good.update(name, plan, self.runs.machine)

    def _give_up(
        self, error: GarboardError, plan: Plan, journal: Journal, options: RunOptions, header: RunHeader
    ) -> None:
        """Leave the run open, or undo it if that was requested; the error says which."""
        record = read_run(journal.store.lines(), self.runs.codec)
        assert record is not None
        can_undo = record.is_undoable
        if header.undoes:
            error.hint = _and(error.hint, "garboard undo goes on from there")
        elif (not options.is_whole or options.undoes_on_failure) and can_undo:
            self._undo_failed(error, journal, record, options)
        else:
            way_back = f", or garboard undo takes {_undone(record)} back" if can_undo else ""
            error.hint = _and(error.hint, f"garboard resume goes on from there{way_back}")

    def _undo_failed(self, error: GarboardError, journal: Journal, record: RunRecord, options: RunOptions) -> None:
        self._steady.report(f"[undo] {error.message}")
        assert isinstance(journal.store, RunFolder)
        self._undo(Run(journal.store, record), options, UndoLimits(keeps_objects=not options.is_whole))
        since = "" if record.last_loss is None else " since its point of no return"
        error.hint = _and(error.hint, f"what the run had done{since} was undone")

    def _begin(self, header: RunHeader, plan: Plan, observers: Observers) -> Journal:
        numbered = replace(header, number=self.runs.next_number())
        folder = self.runs.new_folder(numbered)
        return Journal.begin_run(folder, self.runs.codec, _observers(header, observers), numbered, plan)

    def _report_timings(self, watch: Stopwatch, form: TimingsFormat) -> None:
        if form == "json":
            self._steady.report(json.dumps(watch.as_json()))
        elif form == "text":
            self._steady.report(watch.as_text().rstrip("\n"))

    def _wired(
        self,
        plan: Plan,
        settings: RunSettings,
        header: RunHeader,
        cluster: "NodeCluster | None" = None,
        keys: "KeySource | None" = None,
    ) -> AbstractContextManager[Wiring]:
        return wired_for(plan, self.runs.machine, settings, header.started_at, self._steady, cluster, keys)


def _observers(header: RunHeader, observers: Observers) -> Observers:
    # Objects of a cluster that the run makes go with its files: nobody needs to know what was there before.
    return replace(observers, objects=None) if header.cluster == "made" else observers


def _leaving(plan: Plan, progress: Progress) -> Iterator[str]:
    """Yield the peer URLs of members that still have to be removed."""
    for index, step in enumerate(plan.steps):
        if isinstance(step.action, RemoveMember) and index not in progress.finished:
            yield step.action.peer_url


def _around(
    watch: Stopwatch, interruption: Interruption, check_before: Callable[[Step], None]
) -> Callable[[Step], AbstractContextManager[None]]:
    boundaries = Boundaries()

    @contextmanager
    def around(step: Step) -> Iterator[None]:
        may_stop = boundaries.is_before(step)
        if may_stop:
            check_before(step)
        with interruption.around(step, may_stop=may_stop), watch.around(step):
            yield

    return around


def _refuse_unconfirmed(plan: Plan, header: RunHeader) -> None:
    """Refuse to let somebody confirm a run that could not be taken back."""
    if header.is_to_confirm and (not header.is_undoable or point_of_no_return(plan.steps) is not None):
        raise UndoRefused(
            f"{header.command} cannot wait to be confirmed: it removes what nobody can bring back",
            hint="nothing was changed; --dry-run shows the point of no return",
        )


def _and(hint: str | None, more: str) -> str:
    return f"{hint}; then {more}" if hint else more


def _undone(record: RunRecord) -> str:
    return "everything" if record.last_loss is None else "what came after its point of no return"


def _told(plan: Plan, found: Newcomers) -> list[str]:
    """Say what has come into which folders."""
    named = {
        index: ", ".join(names[:_MOST_NAMED]) + ", …" * (len(names) > _MOST_NAMED) for index, names in found.items()
    }
    folders = {index: traits_of(plan.steps[index].action).changes(plan.steps[index].action) for index in found}
    return [f"{folders[index][0]} holds what came after the run was interrupted: {named[index]}" for index in found]


def _put_back(record: RunRecord) -> str:
    if record.header.supersedes:
        return f"nothing was changed; garboard {record.header.command} plans from what is there now, and asks"
    way_back = ", or take the run back with garboard undo" if record.is_undoable else ""
    return f"nothing was changed; put back what was there and resume again{way_back}"


def _settings_of_undo(header: RunHeader) -> RunSettings:
    """Return the settings of a run for its undo; if the cluster is elsewhere, this node's API server is not used."""
    settings = RunSettings.of_texts(header.settings)
    return replace(settings, local_server="") if header.cluster == "elsewhere" else settings
