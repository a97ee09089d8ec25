"""From a plan to its outcome: printed, or carried out on this machine."""

import sys
from datetime import UTC, datetime

from garboard.cli.output import OutputFormat, write_data
from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.membership import NodeMembership
from garboard.cli.workflow.telling import FileSealer, Screen
from garboard.documents import write_yaml
from garboard.engine import (
    Executor,
    Hands,
    Issue,
    Plan,
    PutObject,
    Runtime,
    Watcher,
    paths_written,
    plan_as_json,
    plan_as_text,
)
from garboard.host.node_machine import NodeMachine
from garboard.phases.issuing import KeyRequest, PkiIssuer
from garboard.pki.keys import PooledKeys


def tell(line: str) -> None:
    """Say something about the run on stderr."""
    sys.stderr.write(f"{line}\n")


def show_plan(plan: Plan, output: OutputFormat) -> None:
    """Print the plan to stdout."""
    text = plan_as_text(plan) if output == "text" else ""
    write_data(plan_as_json(plan) if output != "text" else None, output, text=text)


def show_objects(plan: Plan) -> None:
    """Print every object that the plan puts into the cluster, as a YAML stream."""
    for step in plan.steps:
        if isinstance(step.action, PutObject):
            sys.stdout.write(f"---\n{write_yaml(step.action.content)}")


def carry_out(
    plan: Plan,
    machine: NodeMachine,
    cluster: NodeCluster | None = None,
    *,
    watcher: Watcher | None = None,
    runtime: Runtime | None = None,
    membership: NodeMembership | None = None,
) -> None:
    """Do the steps of the plan, and say on stderr what is being done."""
    for note in plan.notes:
        tell(f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}")
    requests = (step.action.request for step in plan.steps if isinstance(step.action, Issue))
    with PooledKeys(each.inputs.key_algorithm for each in requests if isinstance(each, KeyRequest)) as keys:
        issuer = PkiIssuer(machine.folder, keys, datetime.now(UTC))
        hands = Hands(
            files=machine,
            services=machine.manager,
            issuer=issuer,
            objects=cluster,
            runtime=runtime,
            watcher=watcher,
            members=membership,
            turns=membership,
            narrator=Screen(machine),
            sealer=FileSealer(),
        )
        executor = Executor(hands, tell)
        executor.refuse(plan)
        if cluster and _needs_kubeconfig(plan, cluster.kubeconfig):
            cluster.check()
        executor.execute(plan)


def _needs_kubeconfig(plan: Plan, path: str) -> bool:
    """Whether a kubeconfig must be there before the plan begins: objects are put, and no step makes it."""
    return path not in paths_written(plan.steps) and any(isinstance(step.action, PutObject) for step in plan.steps)
