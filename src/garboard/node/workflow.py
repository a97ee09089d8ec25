"""Running a workflow on this node: load the configuration, observe, plan, then print the plan or carry it out.

These stages are the same for every workflow. What differs is a `Workflow` value: where its configuration comes from,
what is observed before planning, and the policy of its runs.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from garboard.config import GivenFlags, check_mixed_flags
from garboard.documents import write_yaml
from garboard.engine import Executor, Plan, PutObject, plan_as_json, plan_as_text, with_preconditions
from garboard.host.locks import user_lock
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.node.change_guard import refuse_armed
from garboard.node.observe import ObservedMachine
from garboard.node.reporter import OutputFormat, Reporter
from garboard.node.runs import Runs, can_journal
from garboard.node.transaction import PLAN_AGAIN, RunOptions, RunPolicy, TimingsFormat, Transactions
from garboard.node.wiring import RunSettings, wired_for
from garboard.phases import Phase, Placed, plan_workflow, select
from garboard.phases.workflow import ContextT
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.node.interpreters.objects import NodeCluster
    from garboard.pki.keys import KeySource

ConfigT = TypeVar("ConfigT")


@dataclass(frozen=True, slots=True)
class WorkflowRequest:
    """What a command requests of a workflow: flags, argument, the one phase to run, and how the plan is printed."""

    flags: GivenFlags
    argument: str | None = None
    output: OutputFormat = "text"
    only: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.only is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[ConfigT]):
    """The configuration of a workflow, and what is known before this machine is observed."""

    config: ConfigT
    skips: Sequence[str] = ()  # the phases that are left out of a whole workflow
    is_shown: bool = False  # the plan is printed instead of carried out


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Generic[ContextT]):
    """What the phases plan from, and what their plan is carried out with."""

    context: ContextT
    settings: RunSettings
    cluster: "NodeCluster | None" = None
    keys: "KeySource | None" = None  # keys that are being made already
    recheck: Callable[[], None] = lambda: None  # raises if what was observed has changed until the user has confirmed


@dataclass(frozen=True, slots=True)
class LocalNode:
    """This machine, and the reporter of what is done to it."""

    machine: NodeMachine
    reporter: Reporter

    @property
    def runs(self) -> Runs:
        return Runs(self.machine)

    @contextmanager
    def reserved(self, command: str, *, is_whole: bool) -> Iterator[None]:
        """Hold the node lock while something is planned and carried out; only that of the user without root."""
        lock = None if can_journal() else user_lock
        with Transactions(self.runs, self.reporter).locked(command, is_whole=is_whole, lock=lock):
            yield

    def refuse_open_run(self) -> None:
        """Refuse to plan on a node with an open run: its state is neither that before nor that after the run."""
        if can_journal():
            refuse_armed(self.machine)
            self.runs.refuse_open()

    def observed(self) -> "tuple[LocalNode, ObservedMachine]":
        """Return this node as it is from now on for a plan, and the machine that knows what the plan has read."""
        machine = ObservedMachine(self.machine.manager)
        return LocalNode(machine, self.reporter), machine

    def warn(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.reporter.report(f"warning: {text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow(Generic[ConfigT, ContextT]):
    """One workflow: its tree of phases, and the stages that differ from other workflows.

    A command may have several, such as `upgrade apply` and `upgrade node`.
    """

    name: str
    phases: Sequence[Phase[ContextT]]
    prepare: Callable[[WorkflowRequest, LocalNode], Prepared[ConfigT]]
    observe: Callable[
        [Prepared[ConfigT], Sequence[Placed[ContextT]], WorkflowRequest, LocalNode],
        AbstractContextManager[Observed[ContextT]],
    ]
    policy: Callable[[ConfigT, WorkflowRequest, LocalNode], RunPolicy]
    confirm: Callable[[ConfigT, Plan, Sequence[Placed[ContextT]], LocalNode], None] | None = None


def this_node(reporter: Reporter) -> LocalNode:
    return LocalNode(NodeMachine(service_manager()), reporter)


def run_workflow(workflow: Workflow[ConfigT, ContextT], request: WorkflowRequest, reporter: Reporter) -> None:
    """Plan what was requested, and print the plan or carry it out."""
    check_mixed_flags(request.flags.given)
    node = this_node(reporter)
    prepared = workflow.prepare(request, node)
    # What is selected is known before anything is looked at, so that a wrong name costs nothing.
    selected = select(workflow.phases, only=request.only, skip=prepared.skips if request.is_whole else ())
    if prepared.is_shown:
        with _planned(workflow, prepared, selected, request, node) as (plan, _):
            is_printed = request.flags.switch("print-manifest")
            reporter.show(objects_text(plan) if is_printed else plan_text(plan, request.output))
        return
    # What is planned without the lock may no longer be so once it is held.
    with node.reserved(command_of(workflow.name, request), is_whole=request.is_whole):
        options = run_options(workflow.name, request, workflow.policy(prepared.config, request, node))
        if not options.policy.supersedes:
            node.refuse_open_run()
        with _planned(workflow, prepared, selected, request, node) as (plan, observed):
            if workflow.confirm:
                workflow.confirm(prepared.config, plan, selected, node)
                observed.recheck()
            settings = replace(observed.settings, node_name=observed.context.node_name)
            carry_out(plan, node, settings, options, observed.cluster, observed.keys)


@contextmanager
def _planned(
    workflow: Workflow[ConfigT, ContextT],
    prepared: Prepared[ConfigT],
    selected: Sequence[Placed[ContextT]],
    request: WorkflowRequest,
    node: LocalNode,
) -> Iterator[tuple[Plan, Observed[ContextT]]]:
    """Observe and plan; what was observed is there as long as the plan is needed."""
    watched, machine = node.observed()
    with workflow.observe(prepared, selected, request, watched) as observed:
        plan = plan_workflow(selected, observed.context, refuses_blocked=not prepared.is_shown)
        expecting = with_preconditions(plan, machine.digest)
        objects = observed.cluster.observed() if observed.cluster else ()
        yield replace(expecting, observed=(*machine.observed(), *objects)), observed


def command_of(name: str, request: WorkflowRequest) -> str:
    """Return what was typed, such as `init phase certs`."""
    return name if request.is_whole else f"{name} phase {request.only}"


def run_options(name: str, request: WorkflowRequest, policy: RunPolicy) -> RunOptions:
    """Return how a workflow, or a phase of it, is carried out."""
    timings: TimingsFormat = "json" if request.flags.text("timings") == "json" else "text"
    return RunOptions(
        command=command_of(name, request),
        is_whole=request.is_whole,
        policy=policy,
        undoes_on_failure=policy.undoes_on_failure or request.flags.switch("undo-on-failure"),
        diagnostics=request.flags.text("diagnostics"),
        timings=timings if request.flags.text("timings") else "",
    )


def carry_out(
    plan: Plan,
    node: LocalNode,
    settings: RunSettings,
    options: RunOptions,
    cluster: "NodeCluster | None" = None,
    keys: "KeySource | None" = None,
) -> None:
    """Carry out the plan, as a run with a journal if this process may write one, and then holds the node lock."""
    for note in plan.notes:
        node.reporter.report(f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}")
    if can_journal():
        transactions = Transactions(node.runs, node.reporter)
        if plan.steps:
            transactions.carry_out(plan, settings, options, cluster, keys)
        else:
            transactions.close_superseded(options.command, options.policy)
        return
    with wired_for(plan, node.machine, settings, datetime.now(UTC), node.reporter, cluster, keys) as wiring:
        executor = Executor(
            wiring.interpreters, node.reporter.report, observers=wiring.observers, node=settings.node_name
        )
        executor.refuse(plan)
        executor.refuse_stale(plan, hint=PLAN_AGAIN)
        wiring.check(plan)
        executor.execute(plan)


def plan_text(plan: Plan, output: OutputFormat) -> str:
    """Return the plan as it is printed."""
    if output == "json":
        return json.dumps(plan_as_json(plan), indent=2, ensure_ascii=False) + "\n"
    return write_yaml(plan_as_json(plan)) if output == "yaml" else plan_as_text(plan)


def objects_text(plan: Plan) -> str:
    """Return every object that the plan puts into the cluster, as a YAML stream."""
    contents = (step.action.content for step in plan.steps if isinstance(step.action, PutObject))
    return "".join(f"---\n{write_yaml(content)}" for content in contents)
