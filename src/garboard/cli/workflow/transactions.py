"""Runs as transactions: journaled from the first step on, resumed where they stopped, or undone."""

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.diagnosing import keep_diagnostics
from garboard.cli.workflow.hands import Crew, RunSettings, crew_for
from garboard.cli.workflow.interrupting import Interruption
from garboard.cli.workflow.telling import tell
from garboard.engine import (
    Executor,
    Eyes,
    Journal,
    Plan,
    PlanCodec,
    Progress,
    RemoveMember,
    RunHeader,
    RunRecord,
    Step,
    added_members,
    is_undoable,
    plan_undo,
    read_run,
)
from garboard.engine.runs import NO_PROGRESS, ClusterPlace
from garboard.engine.timings import Stopwatch
from garboard.errors import GarboardError, NotReady
from garboard.host.node_machine import NodeMachine
from garboard.host.runs import RunFolder, RunFolders
from garboard.phases.storing import plan_codec
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.pki.keys import KeySource

TimingsFormat: TypeAlias = Literal["", "text", "json"]
# The command whose runs end all others: it removes what they have made.
RESET = "reset"
# Closed runs whose story is still told; what they kept has gone.
_REMEMBERED = 20
# A single phase is short: whoever runs two at once need not hear of it.
_WAIT_FOR_PHASE_S = 30.0
_WAIT_BEFORE_PLANNING_S = 3.0
# While a control plane is taken away, whoever stands before all of them may lead to it for a moment.
_PATIENCE_OF_UNDO_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a plan is carried out; `command` is what was typed, such as `init phase certs`."""

    command: str
    is_whole: bool = True
    cluster: ClusterPlace = "local"
    undoes_on_failure: bool = False
    diagnostics: str = ""  # the folder for what tells why a step failed; empty if nobody wants that
    timings: TimingsFormat = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run on disk and what its journal says."""

    folder: RunFolder
    record: RunRecord


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A run on disk whose journal cannot be read."""

    folder: RunFolder
    error: GarboardError


@dataclass(frozen=True, slots=True)
class Transactions:
    """The runs of this node."""

    machine: NodeMachine
    folders: RunFolders = field(default_factory=RunFolders)
    codec: PlanCodec = field(default_factory=plan_codec)

    def all(self) -> tuple[Run, ...]:
        """Return the runs whose journals can be read."""
        return tuple(each for each in self._found() if isinstance(each, Run))

    def damaged(self) -> tuple[DamagedRun, ...]:
        """Return the runs of which nobody knows what they did."""
        return tuple(each for each in self._found() if isinstance(each, DamagedRun))

    def _found(self) -> Iterator[Run | DamagedRun]:
        for folder in self.folders.all():
            try:
                record = read_run(folder.lines(), self.codec)
            except GarboardError as error:
                yield DamagedRun(folder, error)
            else:
                if record is not None:
                    yield Run(folder, record)

    def open_runs(self) -> tuple[Run, ...]:
        return tuple(each for each in self.all() if each.record.is_open)

    def refuse_open_or_busy(self) -> None:
        """Refuse to plan anything while an earlier run is open, or at work: then it is named."""
        if self.open_runs() or self.damaged():
            with self.folders.lock("garboard", wait_s=_WAIT_BEFORE_PLANNING_S):
                self.refuse_open()

    def refuse_open(self) -> None:
        """Refuse to begin anything while an earlier run is neither finished nor undone."""
        self._refuse_damaged()
        for each in self.open_runs():
            header, done = each.record.header, len(each.record.progress.finished)
            raise NotReady(
                f"run {header.run} ({header.command}) is open: {done} of {each.record.steps} steps are done",
                hint="garboard resume carries it to its end"
                + (", garboard undo takes it back" if each.record.is_undoable else ""),
                error_class="run-open",
            )

    def _refuse_damaged(self) -> None:
        for each in self.damaged():
            raise NotReady(
                f"the journal of run {each.folder.name} is damaged: {each.error.message}",
                hint=each.error.hint,
                error_class=each.error.error_class,
            )

    def carry_out(
        self,
        plan: Plan,
        settings: RunSettings,
        options: RunOptions,
        cluster: NodeCluster | None,
        keys: "KeySource | None" = None,
    ) -> None:
        """Do the steps of a plan as one run."""
        header = RunHeader(
            run="",
            command=options.command,
            started_at=datetime.now(UTC),
            cluster=options.cluster,
            is_whole=options.is_whole,
            settings=settings.texts(),
        )
        with self._locked(options), crew_for(plan, self.machine, settings, header.started_at, cluster, keys) as crew:
            if options.command != RESET:
                self.refuse_open()
            Executor(crew.hands).refuse(plan)
            crew.check(plan)
            self._tidy()
            journal = self._begin(header, plan, crew.eyes)
            self._perform(plan, journal, crew, options)
            if options.command == RESET:
                self.end_open_runs()

    def end_open_runs(self) -> None:
        """Close runs that there is nothing left of to resume or undo."""
        for each in self.open_runs():
            Journal(each.folder, self.codec, Eyes(files=self.machine)).close("reset")
        for damaged in self.damaged():
            tell(f"[reset] the damaged journal of run {damaged.folder.name} is removed")
            damaged.folder.remove()

    def resume(self, options: RunOptions) -> str:
        """Carry the open run to its end, and return its name."""
        with self._locked(options):
            self._tidy()
            run = self._the_open_one()
            self._continue(run, options)
            return run.record.header.run

    def undo(self, options: RunOptions) -> str:
        """Take back what the open run did, and return its name; an undo that was cut short goes on."""
        with self._locked(options):
            self._tidy()
            run = self._the_open_one()
            if run.record.header.undoes:
                self._continue(run, options)
            else:
                self._undo(run, options)
            return run.record.header.undoes or run.record.header.run

    def planned_undo(self) -> Plan:
        """Return what undo would do."""
        run = self._the_open_one()
        if run.record.header.undoes:
            return run.record.plan(run.folder, self.codec)
        settings = _settings_of_undo(run.record.header)
        with crew_for(Plan(), self.machine, settings, run.record.header.started_at) as crew:
            return self._plan_undo(run, crew)

    def _plan_undo(self, run: Run, crew: Crew, *, keeps_objects: bool = False) -> Plan:
        done = run.record.plan(run.folder, self.codec)
        eyes = self._eyes(run.record.header, crew.eyes)
        return plan_undo(done, run.record, eyes, run.folder.kept, keeps_objects=keeps_objects)

    def _the_open_one(self) -> Run:
        found = self.open_runs()
        # A reset may begin on top of anything; else, while a run is being undone, it is the undo that goes on.
        if found and found[-1].record.header.command == RESET:
            return found[-1]
        self._refuse_damaged()
        if not found:
            raise NotReady("no run is open on this node", hint="garboard init or join begins one", error_class="no-run")
        return next((each for each in found if each.record.header.undoes), found[-1])

    def _continue(self, run: Run, options: RunOptions) -> None:
        header, progress = run.record.header, run.record.progress
        plan = run.record.plan(run.folder, self.codec)
        tell(f"[resume] run {header.run}: {len(progress.finished)} of {len(plan.steps)} steps are done")
        settings = RunSettings.of_texts(header.settings)
        with crew_for(plan, self.machine, settings, header.started_at) as crew:
            Executor(crew.hands).refuse(plan)
            if header.undoes:
                crew.require_majority(_leaving(plan, progress))
            eyes = self._eyes(header, crew.eyes)
            journal = Journal(run.folder, self.codec, eyes, progress, keeps_before=run.record.is_undoable)
            self._perform(plan, journal, crew, replace(options, is_whole=header.is_whole), progress, header)
        if header.command == RESET:
            self.end_open_runs()

    def _undo(self, run: Run, options: RunOptions, *, keeps_objects: bool = False) -> None:
        header = run.record.header
        settings = _settings_of_undo(header)
        with crew_for(Plan(), self.machine, settings, header.started_at) as crew:
            # Without a majority of etcd the API server cannot even say what is there.
            if not keeps_objects:
                crew.require_majority(added_members(run.record.plan(run.folder, self.codec), run.record))
            plan = self._plan_undo(run, crew, keeps_objects=keeps_objects)
            own = replace(
                header, settings=settings.texts(), command="undo", started_at=datetime.now(UTC), undoes=header.run
            )
            Executor(crew.hands).refuse(plan)
            journal = self._begin(own, plan, Eyes(files=self.machine))
            way = replace(options, undoes_on_failure=False, is_whole=header.is_whole)
            self._perform(plan, journal, crew, way, header=own)

    def _perform(
        self,
        plan: Plan,
        journal: Journal,
        crew: Crew,
        options: RunOptions,
        progress: Progress = NO_PROGRESS,
        header: RunHeader | None = None,
    ) -> None:
        watch, interruption = Stopwatch(tell), Interruption()
        patience_s = _PATIENCE_OF_UNDO_S if header and header.undoes else 0.0
        executor = Executor(crew.hands, tell, journal, _around(watch, interruption), patience_s)
        try:
            with interruption.watching():
                executor.execute(plan, progress)
        except GarboardError as error:
            with suppress(GarboardError):
                journal.fail(error.message)
            # Before anything is undone: afterwards there is nothing left to look at.
            if options.diagnostics:
                keep_diagnostics(options.diagnostics, error, plan, crew.world)
            self._give_up(error, plan, journal, options, header)
            raise
        watch.finish()
        if header and header.undoes:
            self._close_undone(header.undoes)
        self._close(journal, is_whole=options.is_whole)
        _show_timings(watch, options.timings)

    def _give_up(
        self, error: GarboardError, plan: Plan, journal: Journal, options: RunOptions, header: RunHeader | None
    ) -> None:
        """Leave the run open, or undo it where that was asked for; the error tells which."""
        if header and header.undoes:
            error.hint = _and(error.hint, "garboard undo goes on from there")
        elif (not options.is_whole or options.undoes_on_failure) and is_undoable(plan):
            self._undo_failed(error, journal, options)
        else:
            way_back = ", or garboard undo takes everything back" if is_undoable(plan) else ""
            error.hint = _and(error.hint, f"garboard resume goes on from there{way_back}")

    def _undo_failed(self, error: GarboardError, journal: Journal, options: RunOptions) -> None:
        tell(f"[undo] {error.message}")
        record = read_run(journal.store.lines(), self.codec)
        assert record is not None
        assert isinstance(journal.store, RunFolder)
        self._undo(Run(journal.store, record), options, keeps_objects=not options.is_whole)
        error.hint = _and(error.hint, "what the run had done was undone")

    def _begin(self, header: RunHeader, plan: Plan, eyes: Eyes) -> Journal:
        started = header.started_at.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        word = header.command.split()[0]
        folder = self.folders.new(f"{started}-{secrets.token_hex(2)}-{word}")
        return Journal.begin_run(folder, self.codec, self._eyes(header, eyes), header, plan)

    def _eyes(self, header: RunHeader, eyes: Eyes) -> Eyes:
        # Objects of a cluster that the run makes go with its files: nobody needs to know what was there before.
        return replace(eyes, objects=None) if header.cluster == "made" else eyes

    def _close_undone(self, name: str) -> None:
        for each in self.all():
            if each.record.header.run == name:
                Journal(each.folder, self.codec, Eyes(files=self.machine)).close("undone")
                if not each.record.header.is_whole:
                    each.folder.remove()

    def _close(self, journal: Journal, *, is_whole: bool) -> None:
        journal.close("committed")
        if not is_whole:
            assert isinstance(journal.store, RunFolder)
            journal.store.remove()

    def _tidy(self) -> None:
        """Remove what closed runs kept if they were killed while they closed, the oldest, and those without a plan."""
        told = {each.folder.name for each in self._found()}
        for folder in self.folders.all():
            if folder.name not in told:
                folder.remove()
        closed = [each for each in self.all() if not each.record.is_open]
        for each in closed:
            each.folder.drop_kept()
        for each in closed[:-_REMEMBERED]:
            each.folder.remove()

    @contextmanager
    def _locked(self, options: RunOptions) -> Iterator[None]:
        wait_s = 0.0 if options.is_whole else _WAIT_FOR_PHASE_S
        with self.folders.lock(f"garboard {options.command}", wait_s=wait_s):
            yield


def _leaving(plan: Plan, progress: Progress) -> Iterator[str]:
    """Yield the peer URLs of members that still have to be removed."""
    for index, step in enumerate(plan.steps):
        if isinstance(step.action, RemoveMember) and index not in progress.finished:
            yield step.action.peer_url


def can_journal() -> bool:
    """Say whether this process may write where journals are: only root may."""
    return os.geteuid() == 0


def _around(watch: Stopwatch, interruption: Interruption) -> Callable[[Step], AbstractContextManager[None]]:
    @contextmanager
    def around(step: Step) -> Iterator[None]:
        with interruption.around(step), watch.around(step):
            yield

    return around


def _show_timings(watch: Stopwatch, form: TimingsFormat) -> None:
    if form == "json":
        sys.stderr.write(json.dumps(watch.as_json()) + "\n")
    elif form == "text":
        sys.stderr.write(watch.as_text())


def _and(hint: str | None, more: str) -> str:
    return f"{hint}; then {more}" if hint else more


def _settings_of_undo(header: RunHeader) -> RunSettings:
    """Return the settings of a run for the way back; the server of this node is no help if the cluster is elsewhere."""
    settings = RunSettings.of_texts(header.settings)
    return replace(settings, local_server="") if header.cluster == "elsewhere" else settings
