"""The store of this node's runs: which are open or damaged, and the node lock that one of them at a time holds."""

import os
import pkgutil
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TypeAlias

from garboard.engine import Journal, Observers, PlanCodec, RunHeader, RunRecord, Salvage, read_run, salvage
from garboard.engine.journal import damaged_journal
from garboard.errors import GarboardError, NotReady
from garboard.host.locks import NodeLocked
from garboard.host.node_machine import NodeMachine
from garboard.host.runs import RunFolder, RunFolders
from garboard.node.last_good import LastGood
from garboard.phases import gates, issuing
from garboard.values import dataclass

# Closed runs whose journal is still kept; their pre-images have been removed.
_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class Run:
    """A run on disk and what its journal says."""

    folder: RunFolder
    record: RunRecord

    @property
    def header(self) -> RunHeader:
        return self.record.header


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A run on disk whose journal cannot be read."""

    folder: RunFolder
    error: GarboardError

    @property
    def ways_out(self) -> str:
        return f"garboard runs forget {self.folder.name} leaves the node as it is, garboard reset cleans it up"


FoundRun: TypeAlias = Run | DamagedRun


@cache
def plan_codec() -> PlanCodec:
    """Return the codec for the plans of every workflow, with the requests and gates of the phases registered."""
    modules = pkgutil.iter_modules(gates.__path__, f"{gates.__name__}.")
    kept = (getattr(import_module(each.name), "JOURNAL_TYPES", ()) for each in modules)
    return PlanCodec((*issuing.JOURNAL_TYPES, *chain.from_iterable(kept)))


def can_journal() -> bool:
    """Say whether this process may write journals: only root may."""
    return os.geteuid() == 0


@dataclass(frozen=True, slots=True)
class Runs:
    """The store of runs below /var/lib/garboard, or where `folders` are."""

    machine: NodeMachine = field(default_factory=lambda: NodeMachine(None))
    folders: RunFolders = field(default_factory=RunFolders)
    codec: PlanCodec = field(default_factory=plan_codec)

    @property
    def last_good(self) -> LastGood:
        return LastGood(self.folders.root / "last-good")

    def all(self) -> tuple[Run, ...]:
        """Return the runs whose journals can be read, the oldest first."""
        found = (each for each in self._found() if isinstance(each, Run))
        return tuple(sorted(found, key=lambda each: (each.header.number, each.folder.name)))

    def open(self) -> tuple[Run, ...]:
        return tuple(each for each in self.all() if each.record.is_open)

    def unconfirmed(self) -> tuple[Run, ...]:
        """Return the runs that are done, and that somebody has to confirm."""
        return tuple(each for each in self.all() if each.record.is_unconfirmed)

    def damaged(self) -> tuple[DamagedRun, ...]:
        """Return the runs whose journals cannot be read."""
        return tuple(each for each in self._found() if isinstance(each, DamagedRun))

    def _found(self) -> Iterator[FoundRun]:
        for folder in self.folders.all():
            try:
                record = read_run(folder.lines(), self.codec)
            except GarboardError as error:
                yield DamagedRun(folder, error)
            else:
                if record is not None:
                    yield Run(folder, _with_name(record, folder.name))
                elif len(folder.kept_digests()) > 1:  # the plan, and what its steps were about to replace
                    yield DamagedRun(folder, damaged_journal("its lines have gone, and steps of it had begun"))

    def lock(
        self, command: str, *, wait_s: float = 0.0, on_wait: Callable[[NodeLocked], None] = lambda _error: None
    ) -> AbstractContextManager[None]:
        """Hold the lock of this node for a command; `on_wait` is told whom it waits for."""
        return self.folders.lock(f"garboard {command}".strip(), wait_s=wait_s, on_wait=on_wait)

    def lock_holder(self) -> str:
        """Return the command that plans or changes something on this node now; empty if none does."""
        return self.folders.lock_holder()

    def next_number(self) -> int:
        """Return the number of the run that begins next."""
        return max((each.header.number for each in self.all()), default=0) + 1

    def new_folder(self, header: RunHeader) -> RunFolder:
        """Make the folder of a run that is about to begin."""
        started = header.started_at.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        return self.folders.new(f"{started}-{secrets.token_hex(2)}-{header.command.split()[0]}")

    def refuse_open(self) -> None:
        """Refuse to begin anything while an earlier run is neither finished nor undone."""
        self.refuse_damaged()
        for each in self.open():
            header, done = each.header, len(each.record.progress.finished)
            raise NotReady(
                f"run {header.run} ({header.command}) is open: {done} of {each.record.steps} steps are done",
                hint="garboard resume carries it to its end"
                + (", garboard undo takes it back" if each.record.is_undoable else ""),
                error_class="run-open",
            )
        for each in self.unconfirmed():
            raise NotReady(
                f"run {each.header.run} ({each.header.command}) is done, and unconfirmed {until_text(each)}",
                hint=f"garboard runs confirm {each.header.run} keeps what it did, "
                f"garboard undo {each.header.run} takes it back",
                error_class="run-unconfirmed",
            )

    def refuse_damaged(self) -> None:
        for each in self.damaged():
            raise NotReady(
                f"the journal of run {each.folder.name} is damaged: {each.error.message}",
                hint=f"{each.error.hint}; {each.ways_out}",
                error_class=each.error.error_class,
            )

    def to_resume(self, name: str = "") -> Run:
        """Return the run to resume; refuse if there is none, if a run is damaged, or if it is not the one of `name`."""
        found = self.open()
        # A run that supersedes others may begin on top of anything; else an undo that was begun goes on.
        if found and found[-1].header.supersedes:
            return self._named(name, found[-1])
        self.refuse_damaged()
        if found:
            return self._named(name, next((each for each in found if each.header.undoes), found[-1]))
        for each in self.unconfirmed():
            raise NotReady(
                f"run {each.header.run} is done, and unconfirmed {until_text(each)}",
                hint=f"garboard runs confirm {each.header.run} keeps what it did",
                error_class="run-unconfirmed",
            )
        self._find(name)
        raise NotReady("no run is open on this node", hint="garboard init or join begins one", error_class="no-run")

    def to_undo(self, name: str = "") -> Run:
        """Return the run to undo, or the undo to go on with: that of the open run, or of one that nobody confirmed."""
        unconfirmed = self.unconfirmed()
        if self.open() or not unconfirmed:
            return self.to_resume(name)
        self.refuse_damaged()
        return self._named(name, unconfirmed[-1])

    def overdue(self, now: datetime) -> str:
        """Return the name of the unconfirmed run whose time had passed by `now`; empty if there is none."""
        self.refuse_damaged()  # that one may be it
        overdue = (each for each in self.unconfirmed() if each.record.until is not None and each.record.until <= now)
        return next((each.header.run for each in overdue), "")

    def to_confirm(self, name: str = "") -> Run:
        """Return the run to confirm; refuse if there is none, or if it is being taken back."""
        self.refuse_damaged()
        if self.open():
            self.refuse_open()
        found = self.unconfirmed()
        if not found:
            self._find(name)
            raise NotReady("no run waits to be confirmed", hint="garboard status shows the runs", error_class="no-run")
        return self._named(name, found[-1])

    def _named(self, name: str, run: Run) -> Run:
        """Return the run whose turn it is; refuse if another one was named."""
        if not name or name in (run.header.run, run.header.undoes):
            return run
        self._find(name)
        raise NotReady(
            f"run {run.header.run} ({run.header.command}) has to be ended before {name}",
            hint="garboard status shows how far it is",
            error_class="run-open",
        )

    def _find(self, name: str) -> None:
        """Refuse the name of a run that does not exist or is closed."""
        if not name:
            return
        run = next((each for each in self.all() if each.header.run == name), None)
        if run is None:
            raise _no_such_run(name)
        if run.record.is_closed:
            raise NotReady(
                f"run {name} ({run.header.command}) is closed: it was {run.record.state}",
                hint="garboard status --all shows the runs",
                error_class="no-run",
            )

    def close_superseded(self) -> Iterator[str]:
        """Close the runs that a finished one supersedes; yield the names of those that had to be removed."""
        for each in (*self.open(), *self.unconfirmed()):
            self.journal(each).close("reset")
        for damaged in self.damaged():
            damaged.folder.remove()
            yield damaged.folder.name

    def close_undone(self, name: str) -> None:
        for each in self.all():
            if each.header.run == name:
                self.journal(each).close("reverted" if each.record.is_unconfirmed else "undone")
                if not each.header.is_whole:
                    each.folder.remove()

    def journal(self, run: Run) -> Journal:
        return Journal(run.folder, self.codec, Observers(files=self.machine))

    def forget(self, name: str) -> Salvage:
        """Set aside an open run that can be neither resumed nor undone; return what is known of it, and what is not."""
        found = next((each for each in self._found() if each.folder.name == name), None)
        if found is None:
            raise _no_such_run(name)
        if isinstance(found, Run):
            self._refuse_whole(found)
        try:
            known = salvage(found.folder.lines())
        except GarboardError:  # there is no file to read, such as a folder or a pipe in its place
            known = Salvage()
        return replace(known, place=str(found.folder.set_aside()))

    def _refuse_whole(self, run: Run) -> None:
        """Refuse to forget a run that is closed, or that can be resumed or undone."""
        if run.record.is_closed:
            raise NotReady(f"run {run.header.run} is closed: it stands in nobody's way", error_class="no-run")
        try:
            run.record.plan(run.folder, self.codec)
            for digest in run.record.kept_contents:
                run.folder.kept(digest)
        except GarboardError:
            return
        raise NotReady(
            f"run {run.header.run} ({run.header.command}) is whole: what it did is known",
            hint="garboard resume carries it to its end" + ", garboard undo takes it back" * run.record.is_undoable,
            error_class="run-open",
        )

    def tidy(self) -> None:
        """Remove kept contents of runs that were killed while closing, the oldest runs, and those without a plan."""
        found = {each.folder.name for each in self._found()}  # a damaged run is kept until somebody forgets it
        for folder in self.folders.all():
            if folder.name not in found:
                folder.remove()
        closed = [each for each in self.all() if each.record.is_closed]
        for each in closed:
            each.folder.drop_kept()
        for each in closed[:-_REMEMBERED]:
            each.folder.remove()


def until_text(run: Run) -> str:
    """Say until when an unconfirmed run can be confirmed, in UTC."""
    assert run.record.until is not None, "an unconfirmed run says until when"
    return f"until {run.record.until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _no_such_run(name: str) -> NotReady:
    return NotReady(f"there is no run {name} on this node", hint="garboard status shows the runs", error_class="no-run")


def _with_name(record: RunRecord, name: str) -> RunRecord:
    """Return the record of a run that goes by the name of its folder if its journal cannot say it any more."""
    return record if record.header.run else replace(record, header=replace(record.header, run=name))
