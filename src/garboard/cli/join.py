"""`garboard join`: another node of a cluster, as a whole or phase by phase."""

from dataclasses import replace
from pathlib import Path

from garboard.cli.config.inputs import open_config, show_warnings
from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.commands import Asked, Workflow, WorkflowGroup
from garboard.cli.workflow.node import read_options, with_node_name
from garboard.cli.workflow.running import carry_out, refuse_open_run, run_options, show_plan
from garboard.config import Loaded, ResolvedVersion, check_mixed_flags, join_from_flags
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.model import DEFAULT_VERSION
from garboard.model.lifecycle import JoinConfiguration
from garboard.phases import plan_workflow, select
from garboard.phases.join import JOIN
from garboard.phases.join.context import JoinContext
from garboard.phases.join.flags import ADMIN_CONF, JOIN_FLAGS, ignored_flags, join_from_values


def run_join(asked: Asked) -> None:
    """Plan what was asked for, and print the plan or carry it out."""
    check_mixed_flags(asked.flags.given)
    loaded = _load(asked)
    if ignored := ignored_flags(asked.flags):
        show_warnings([f"without --control-plane these are ignored: {', '.join(f'--{name}' for name in ignored)}"])
    show_warnings(loaded.warnings)
    skip = asked.flags.list("skip-phases") or loaded.config.skip_phases
    selected = select(JOIN, only=asked.only, skip=() if asked.only else skip)
    machine = NodeMachine(service_manager())
    is_only_shown = asked.flags.switch("dry-run") or loaded.config.dry_run
    if not is_only_shown:
        refuse_open_run(machine)
    plan = plan_workflow(selected, JoinContext(config=loaded.config))
    if is_only_shown:
        show_plan(plan, asked.output)
    else:
        carry_out(plan, machine, NodeCluster(machine, ADMIN_CONF, ""), run_options("join", asked, "elsewhere"))


def _load(asked: Asked) -> Loaded[JoinConfiguration]:
    options = read_options(asked.flags)
    if path := asked.flags.text("config"):
        loaded = open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).join()
    else:
        loaded = join_from_flags(join_from_values(asked.flags, asked.argument), MachineFacts(), options)
    return replace(loaded, config=with_node_name(loaded.config, asked.flags))


join = WorkflowGroup[JoinContext](
    Workflow("join", JOIN, JOIN_FLAGS, run_join),
    flags=JOIN_FLAGS,
    takes="api-server-endpoint",
    summary="Add this machine to a cluster.",
    epilog="Example: garboard join 192.0.2.10:6443 --token abcdef.0123456789abcdef "
    "--discovery-token-unsafe-skip-ca-verification --dry-run",
)
