"""Workflows as data: a tree of phases, which of them are selected, and the plan that they make together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from garboard.engine import Note, Plan, Step
from garboard.errors import BadUsage, GarboardError
from garboard.schema import suggest
from garboard.values import dataclass


class PlanningContext(Protocol):
    """What phases plan from: the same for all of them, but for what the phases before will have done."""

    @property
    def node_name(self) -> str: ...

    def after(self, steps: tuple[Step, ...]) -> Self:
        """Return the context as it will be once `steps` have been done."""
        ...


ContextT = TypeVar("ContextT", bound=PlanningContext)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a plan can be shown and must not be carried out: as notes for a reader, and as the error that refuses it."""

    notes: tuple[Note, ...]
    error: GarboardError


Planned: TypeAlias = Step | Note | Blocked


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Generic[ContextT]):
    """A part of a workflow. `flags` are those of its sub-command; a phase that runs its siblings is kubeadm's `all`."""

    name: str
    summary: str
    details: str = ""  # what its help says, where that is more
    plan: Callable[[ContextT], Iterable[Planned]] | None = None
    run_if: Callable[[ContextT], bool] | None = None
    aliases: tuple[str, ...] = ()
    children: tuple["Phase[ContextT]", ...] = ()
    flags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # phases that must be selected, too, and come before
    takes: str = ""  # the argument of its sub-command
    is_hidden: bool = False
    runs_siblings: bool = False


@dataclass(frozen=True, slots=True)
class Placed(Generic[ContextT]):
    """A phase at its place in the tree; `path` is its full name, such as `certs/ca`."""

    path: str
    phase: Phase[ContextT]

    @property
    def depth(self) -> int:
        return self.path.count("/")


def flatten(phases: Iterable[Phase[ContextT]], parent: str = "") -> Iterator[Placed[ContextT]]:
    """Yield every phase of a tree in the order of the workflow: parents first, then their children."""
    for phase in phases:
        path = f"{parent}{phase.name}".lower()
        yield Placed(path, phase)
        yield from flatten(phase.children, f"{path}/")


def select(
    phases: Sequence[Phase[ContextT]], *, only: str | None = None, skip: Iterable[str] = ()
) -> tuple[Placed[ContextT], ...]:
    """Return the phases to run: all of them or one (an `all` means its parent and siblings), without those skipped.

    Names are full names, hidden phases included; aliases are only for sub-commands, as in kubeadm.
    """
    placed = tuple(flatten(phases))
    by_path = {each.path: each for each in placed}
    if only is not None:
        start = only.rpartition("/")[0] if _named(by_path, only).phase.runs_siblings else only
        # A leaf alone: what its parent would do is left out.
        placed = tuple(each for each in placed if each.path == only or _is_within(each.path, start))
    skipped = [_named(by_path, name).path for name in skip]
    selected = tuple(each for each in placed if not any(_is_within(each.path, name) for name in skipped))
    _check_needs(selected)
    return tuple(each for each in selected if not each.phase.runs_siblings)


def _is_within(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}/")


def _named(by_path: dict[str, Placed[ContextT]], name: str) -> Placed[ContextT]:
    if name not in by_path:
        known = [path for path, each in by_path.items() if not each.phase.runs_siblings]
        near = suggest(name, known)
        hint = f"did you mean {near!r}?" if near else f"the phases are {', '.join(known)}"
        raise BadUsage(f"invalid phase name: {name}", hint=hint, error_class="unknown-phase")
    return by_path[name]


def _check_needs(selected: Sequence[Placed[ContextT]]) -> None:
    lines = []
    for index, each in enumerate(selected):
        before = {other.phase.name for other in selected[:index]}
        missing = [name for name in each.phase.needs if name not in before]
        if missing:
            lines.append(f'missing [{" ".join(missing)}] phase(s) needed by "{each.phase.name}" phase')
    if lines:
        raise BadUsage(
            "unresolved dependencies:\n\t" + "\n\t".join(lines), hint="skip the phases that need them as well"
        )


def plan_workflow(selected: Iterable[Placed[ContextT]], context: ContextT, *, refuses_blocked: bool = True) -> Plan:
    """Let every phase plan its steps, each knowing what those before it will have done.

    A plan that is to be carried out ends at the first phase that is blocked: what blocks it is raised. One that is only
    shown has it among its notes.
    """
    steps: list[Step] = []
    notes: list[Note] = []
    for each in selected:
        items = _plan_phase(each, context, refuses_blocked=refuses_blocked)
        planned = tuple(
            replace(item, phase=each.path, node=context.node_name) for item in items if isinstance(item, Step)
        )
        context = context.after(planned)
        steps += planned
        notes += (replace(item, phase=each.path) for item in items if isinstance(item, Note))
    return Plan(tuple(steps), tuple(notes))


def _plan_phase(placed: Placed[ContextT], context: ContextT, *, refuses_blocked: bool) -> tuple[Step | Note, ...]:
    phase = placed.phase
    if phase.plan is None or (phase.run_if is not None and not phase.run_if(context)):
        return ()
    try:
        return tuple(_expanded(phase.plan(context), refuses_blocked=refuses_blocked))
    except GarboardError as error:
        error.args = (f"{error.message} (phase {placed.path})",)
        raise


def _expanded(items: Iterable[Planned], *, refuses_blocked: bool) -> Iterator[Step | Note]:
    """Yield what a phase plans, and what blocks it as notes; or raise what blocks it, before it plans anything else."""
    for item in items:
        if not isinstance(item, Blocked):
            yield item
        elif refuses_blocked:
            raise item.error
        else:
            yield from item.notes


def tree_text(phases: Iterable[Phase[ContextT]]) -> str:
    """Return the tree as `--help` shows it: hidden phases and `all` left out."""
    shown = [each for each in flatten(phases) if not each.phase.is_hidden and not each.phase.runs_siblings]
    names = [f"{'  ' * each.depth}{'/' if each.depth else ''}{each.phase.name}" for each in shown]
    width = max(map(len, names), default=0)
    rows = zip(names, shown, strict=True)
    return "".join(f"{name:<{width}}  {each.phase.summary}\n" for name, each in rows)
