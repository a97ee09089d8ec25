"""From a plan to its outcome: printed, or carried out on this machine."""

import sys
from datetime import UTC, datetime

from garboard.cli.output import OutputFormat, write_data
from garboard.documents import write_yaml
from garboard.engine import Executor, Hands, Issue, Plan, PutObject, plan_as_json, plan_as_text
from garboard.host.node_machine import NodeMachine
from garboard.phases.issuing import PkiIssuer, PkiRequest
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


def carry_out(plan: Plan, machine: NodeMachine) -> None:
    """Do the steps of the plan, and say on stderr what is being done."""
    for note in plan.notes:
        tell(f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}")
    requests = (step.action.request for step in plan.steps if isinstance(step.action, Issue))
    with PooledKeys(each.inputs.key_algorithm for each in requests if isinstance(each, PkiRequest)) as keys:
        issuer = PkiIssuer(machine.folder, keys, datetime.now(UTC))
        Executor(Hands(files=machine, services=machine.manager, issuer=issuer), tell).execute(plan)
