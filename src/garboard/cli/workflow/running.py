"""From a plan to its outcome: printed, or carried out on this machine."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from garboard.cli.output import OutputFormat, write_data
from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.commands import Asked
from garboard.cli.workflow.hands import RunSettings, crew_for
from garboard.cli.workflow.telling import tell
from garboard.cli.workflow.transactions import RunOptions, TimingsFormat, Transactions, can_journal
from garboard.documents import write_yaml
from garboard.engine import Executor, Plan, PutObject, plan_as_json, plan_as_text
from garboard.engine.runs import ClusterPlace
from garboard.host.node_machine import NodeMachine

if TYPE_CHECKING:
    from garboard.pki.keys import KeySource


def show_plan(plan: Plan, output: OutputFormat) -> None:
    """Print the plan to stdout."""
    text = plan_as_text(plan) if output == "text" else ""
    write_data(plan_as_json(plan) if output != "text" else None, output, text=text)


def show_objects(plan: Plan) -> None:
    """Print every object that the plan puts into the cluster, as a YAML stream."""
    for step in plan.steps:
        if isinstance(step.action, PutObject):
            sys.stdout.write(f"---\n{write_yaml(step.action.content)}")


def run_options(command: str, asked: Asked, cluster: ClusterPlace) -> RunOptions:
    """Return how a workflow, or a phase of it, is carried out."""
    timings: TimingsFormat = "json" if asked.flags.text("timings") == "json" else "text"
    return RunOptions(
        command=f"{command} phase {asked.only}" if asked.only else command,
        is_whole=asked.only is None,
        cluster=cluster,
        undoes_on_failure=asked.flags.switch("undo-on-failure"),
        diagnostics=asked.flags.text("diagnostics"),
        timings=timings if asked.flags.text("timings") else "",
    )


def refuse_open_run(machine: NodeMachine) -> None:
    """Refuse to plan on a node that an earlier run has left half way; what is found there would mislead."""
    if can_journal():
        Transactions(machine).refuse_open_or_busy()


def carry_out(
    plan: Plan,
    machine: NodeMachine,
    settings: RunSettings,
    options: RunOptions,
    cluster: NodeCluster | None = None,
    keys: "KeySource | None" = None,
) -> None:
    """Do the steps of the plan, and say on stderr what is being done."""
    for note in plan.notes:
        tell(f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}")
    if plan.steps and can_journal():
        Transactions(machine).carry_out(plan, settings, options, cluster, keys)
        return
    with crew_for(plan, machine, settings, datetime.now(UTC), cluster, keys) as crew:
        executor = Executor(crew.hands, tell)
        executor.refuse(plan)
        crew.check(plan)
        executor.execute(plan)
