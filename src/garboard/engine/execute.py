"""The executor: carries out each action of a plan by its interpreter, and records the begin and end of each step."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from itertools import groupby
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from garboard.engine.action import Action, RemoveFile
from garboard.engine.journal import NO_PROGRESS, Progress
from garboard.engine.plan import Plan, Step
from garboard.engine.pre_image import Observers, PreImage, temporaries
from garboard.engine.precondition import CheckedFiles, check_files, what_moved_since
from garboard.engine.show import step_title
from garboard.engine.trait import ProbeInputs
from garboard.engine.traits import traits_of
from garboard.errors import ClusterUnreachable, GarboardError, StalePlan
from garboard.retry import CLOCK, Clock, Pauses, retry
from garboard.values import dataclass

_PAUSES = Pauses.every(1.0)
_PUT_BACK = "find out who changed them, and put back what was there"
ActionT = TypeVar("ActionT", contravariant=True)
Outcomes: TypeAlias = Mapping[str, str]
Report: TypeAlias = Callable[[str], None]


class PlanRefused(GarboardError):
    """A plan contains an action that cannot be carried out here; nothing has been changed."""

    default_class = "unsupported"


@dataclass(frozen=True, slots=True)
class StepContext:
    """What an interpreter is given besides the action."""

    outcomes: Outcomes  # of earlier steps, by name
    report: Report  # takes a line about a failure that does not stop the plan
    note: Callable[[Mapping[str, str]], None]  # records facts in the middle of a step, in case it does not end
    expected: Mapping[str, str] = field(default_factory=dict)  # the digests of files to write as the step found them


class Interpreter(Protocol[ActionT]):
    """Carries out one kind of action, and returns its outcomes if later steps need them."""

    def __call__(self, action: ActionT, run: StepContext, /) -> Outcomes | None: ...


class Interpreters:
    """The available interpreters by kind of action; a plan that needs another one is refused before it begins."""

    def __init__(self) -> None:
        self._by_kind: dict[type, Interpreter[Any]] = {}

    def add(self, kind: type[ActionT], interpreter: Interpreter[ActionT]) -> Self:
        self._by_kind[kind] = interpreter
        return self

    def carry_out(self, action: Action, run: StepContext) -> Outcomes:
        return self._by_kind[type(action)](action, run) or {}

    def missing(self, action: Action) -> str | None:
        """Say what cannot be done here if there is no interpreter for the action."""
        return None if type(action) in self._by_kind else traits_of(action).ability


class Recorder(Protocol):
    """Records the progress of a run: each step before it begins, and after it has ended."""

    def begin(self, index: int, step: Step) -> None: ...

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        """Record facts in the middle of a step, in case the step is interrupted."""
        ...

    def end(self, index: int, step: Step, outcomes: Outcomes) -> None: ...


class NoRecord:
    """The recorder of a run that nobody will resume."""

    def begin(self, index: int, step: Step) -> None:
        return

    def learned(self, index: int, facts: Mapping[str, str]) -> None:
        return

    def end(self, index: int, step: Step, outcomes: Outcomes) -> None:
        return


NO_RECORD = NoRecord()


def _silent(_line: str, /) -> None:
    return


@contextmanager
def _unguarded(_step: Step) -> Iterator[None]:
    yield


@dataclass(frozen=True, slots=True)
class Executor:
    """Carries out the steps of a plan. `report` gets a line for each, and for each failure that does not stop the plan.

    `around` wraps each step: it can stop the run between two steps, and measures how long steps take. `retry_s` is how
    long a repeatable action is retried while the cluster cannot be reached. `observers` read the files that steps have
    preconditions about, and the machine and the cluster when a run is resumed. `node` is the name of this one: steps of
    another node are refused. With `leaves_moved`, a file that is not as it was planned for stays as it is and its step
    counts as done; otherwise it ends the run.
    """

    interpreters: Interpreters
    report: Report = _silent
    recorder: Recorder = NO_RECORD
    around: Callable[[Step], AbstractContextManager[None]] = _unguarded
    retry_s: float = 0.0
    observers: Observers | None = None
    clock: Clock = CLOCK
    node: str = ""
    leaves_moved: bool = False

    def execute(self, plan: Plan, progress: Progress = NO_PROGRESS) -> None:
        """Carry out every step that is not finished; the first failure stops the run."""
        self.refuse(plan)
        outcomes: dict[str, str] = {}
        repeated: set[str] = set()  # outcomes that a finished step has brought once more
        order, late = _order(plan, progress)
        for index in late:
            outcomes.update(progress.finished[index])
        for index in order:
            step = plan.steps[index]
            is_finished = index in progress.finished and not has_lapsed(index, plan, progress)
            if is_finished and self._is_as_finished(step, outcomes, repeated):
                outcomes.update(progress.finished[index])
                continue
            with self.around(step):
                checked = self._checked(index, step, progress)
                if checked.moved and not self.leaves_moved:
                    raise StalePlan(f"the plan is stale: {'; '.join(checked.moved)}", hint=_PUT_BACK)
                stays = f"{'; '.join(checked.moved)}: it stays as it is" if checked.moved else ""
                self.report(f"[{step.phase}] {stays or step_title(step)}")
                self.recorder.begin(index, step)
                made = {} if stays else self._take_up(index, step, outcomes, progress, checked.found)
                self.recorder.end(index, step, made)
                outcomes.update(made)
                repeated |= set(made) if index in progress.begun else set()

    def _is_as_finished(self, step: Step, outcomes: Outcomes, repeated: set[str]) -> bool:
        """Say whether a finished step need not be repeated: what it used is the same, or its result is as it would be.

        The outcomes that it was done with are not compared: an earlier resume may have been killed after it had
        recorded other ones.
        """
        if repeated.isdisjoint(traits_of(step.action).needs(step.action)):
            return True
        return self._is_done(step.action, outcomes, {})

    def refuse(self, plan: Plan) -> None:
        """Refuse a plan with a step of another node, or with an action that cannot be carried out here."""
        others = sorted({step.node for step in plan.steps if self.node and step.node not in ("", self.node)})
        if others:
            raise PlanRefused(
                f"this is node {self.node}, and the plan has steps for {', '.join(others)}",
                hint="nothing was changed; carry out the plan of each node on that node",
                error_class="wrong-node",
            )
        missing = dict.fromkeys(
            (step.phase, found) for step in plan.steps if (found := self.interpreters.missing(step.action))
        )
        if missing:
            told = "; ".join(f"{phase}: {what}" for phase, what in missing)
            skips = ",".join(dict.fromkeys(phase for phase, _ in missing))
            raise PlanRefused(
                f"this cannot be carried out yet: {told}",
                hint=f"nothing was changed; run other phases alone, or leave these out with --skip-phases {skips}",
            )

    def refuse_stale(
        self,
        plan: Plan,
        progress: Progress = NO_PROGRESS,
        *,
        hint: str,
        look: Callable[[str], str] | None = None,
    ) -> None:
        """Refuse a plan if a file that it is still to write is not as it was when the plan was made.

        `look` is given for a plan that was saved and has not begun: nothing that planning has read may have moved then.
        """
        ahead = ((index, step) for index, step in enumerate(plan.steps) if index not in progress.finished)
        moved = [*what_moved_since(plan, look)] if look else []
        moved = moved or [line for index, step in ahead for line in self._checked(index, step, progress).moved]
        if moved:
            raise StalePlan(f"the plan is stale: {'; '.join(moved)}", hint=hint)

    def _checked(self, index: int, step: Step, progress: Progress) -> CheckedFiles:
        """Compare with what was there when the step was planned, except what the step has changed itself."""
        if not step.preconditions:
            return CheckedFiles({})
        facts = progress.attempts.get(index, ()) if index in progress.begun else None
        return check_files(step, self._observers.files, facts)

    def _take_up(
        self, index: int, step: Step, outcomes: Outcomes, progress: Progress, expected: Mapping[str, str]
    ) -> Outcomes:
        """Carry out a step, unless it had begun before and is done; return its outcomes."""
        run = StepContext(
            outcomes,
            lambda line: self.report(f"[{step.phase}] {line}"),
            lambda facts: self.recorder.learned(index, facts),
            expected,
        )
        if index in progress.begun:
            self._remove_leftovers(step.action, progress.begun[index], run)
            if self._is_done(step.action, outcomes, progress.facts.get(index, {})):
                return {}
        return self._do(step, run)

    def _do(self, step: Step, run: StepContext) -> Outcomes:
        is_repeatable = traits_of(step.action).is_repeatable
        return retry(
            lambda: self.interpreters.carry_out(step.action, run),
            timeout_s=self.retry_s,
            pauses=_PAUSES,
            is_passing=lambda error: is_repeatable and isinstance(error, ClusterUnreachable),
            on_failure=lambda error, _left_s: run.report(f"trying again: {error.message}"),
            clock=self.clock,
        )

    def _remove_leftovers(self, action: Action, before: PreImage, run: StepContext) -> None:
        """Remove what a killed write left beside its file."""
        for path in traits_of(action).writes(action):
            for each in temporaries(path, self._observers.files):
                if each not in before.temporaries:
                    self.interpreters.carry_out(RemoveFile(path=each), run)

    def _is_done(self, action: Action, outcomes: Outcomes, facts: Mapping[str, str]) -> bool:
        """Say whether an interrupted step is done; if that cannot be known, the step is safe to repeat."""
        return traits_of(action).is_done(action, ProbeInputs(self._observers, outcomes, facts))

    @property
    def _observers(self) -> Observers:
        assert self.observers is not None, "a plan with preconditions, or one that was begun, needs observers"
        return self.observers


def refuse_units(plan: Plan) -> None:
    """Refuse units of a new run that could not go back: with actions that make something anew, or in several parts."""
    foreign = [step_title(step) for step in plan.steps if step.unit and not traits_of(step.action).fits_units]
    runs = [unit for unit, _ in groupby(step.unit for step in plan.steps) if unit]
    parts = sorted({unit for unit in runs if runs.count(unit) > 1})
    if foreign or parts:
        told = "; ".join([*foreign, *(f"the unit {unit} is in several parts" for unit in parts)])
        raise PlanRefused(f"a unit of this plan could not go back: {told}", hint="nothing was changed")


def _order(plan: Plan, progress: Progress) -> tuple[list[int], list[int]]:
    """Return the steps in the order in which they are taken, and those that are taken later than they stand.

    A unit that was cut short is ended first: what has lapsed before it, such as a Lease, may need the very server that
    the unit has taken away. It is repeated when the unit has ended.
    """
    steps = plan.steps
    first = next((index for index in range(len(steps)) if index not in progress.finished), len(steps))
    unit = steps[first].unit if first < len(steps) else ""
    start = end = first
    while unit and start and steps[start - 1].unit == unit:
        start -= 1
    while unit and end < len(steps) and steps[end].unit == unit:
        end += 1
    is_cut_short = any(index in progress.begun for index in range(start, end))
    late = [index for index in range(start) if has_lapsed(index, plan, progress)] if is_cut_short else []
    before = [index for index in range(start) if index not in late]
    return [*before, *range(start, end), *late, *range(end, len(steps))], late


def has_lapsed(index: int, plan: Plan, progress: Progress) -> bool:
    """Say whether the effect of a finished step may have been lost since, as that of a Lease: then it is repeated.

    If no step is left, nothing needs the effect any more.
    """
    action = plan.steps[index].action
    is_over = traits_of(action).lapses_until
    if is_over is None or len(progress.finished) == len(plan.steps):
        return False
    later = (plan.steps[number].action for number in range(index + 1, len(plan.steps)) if number in progress.finished)
    return not any(is_over(action, each) for each in later)
