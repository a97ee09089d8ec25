"""`garboard reset`: this machine is no node any more, as a whole or phase by phase."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from garboard.cli.config.inputs import open_config, show_warnings
from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.commands import Asked, Workflow, WorkflowGroup
from garboard.cli.workflow.etcd_view import NodeEtcd
from garboard.cli.workflow.hands import RunSettings
from garboard.cli.workflow.node import read_options
from garboard.cli.workflow.running import carry_out, run_options, show_plan
from garboard.cli.workflow.telling import tell
from garboard.config import Loaded, ResolvedVersion, check_mixed_flags, reset_from_flags
from garboard.documents import read_yaml
from garboard.engine import Plan
from garboard.errors import GarboardError, NotReady
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.manifests.kubelet import INSTANCE_CONFIG_FILE
from garboard.model import DEFAULT_VERSION
from garboard.model.lifecycle import ResetConfiguration
from garboard.phases import plan_workflow, select
from garboard.phases.init.context import ADMIN_CONF
from garboard.phases.reset import RESET
from garboard.phases.reset.context import ResetContext, observe_reset
from garboard.phases.reset.flags import RESET_FLAGS, reset_from_values
from garboard.phases.reset.tree import PREFLIGHT

_ROOT_CHECK = "IsPrivilegedUser"


def run_reset(asked: Asked) -> None:
    """Plan what was asked for, and print the plan or carry it out."""
    check_mixed_flags(asked.flags.given)
    machine = NodeMachine(service_manager())
    loaded = _load(asked, machine)
    show_warnings(loaded.warnings)
    config = _with_flags(loaded.config, asked)
    selected = select(RESET, only=asked.only, skip=() if asked.only else config.skip_phases)
    names = [each.path for each in selected]
    if PREFLIGHT in names and not config.dry_run:
        _check_user(config.ignore_preflight_errors)
    cluster = NodeCluster(machine, asked.flags.text("kubeconfig") or ADMIN_CONF, "")
    context = observe_reset(
        config,
        machine=machine,
        etcd=NodeEtcd(machine, cluster, config.certificates_dir),
        node_name=MachineFacts().hostname(),
        selected=names,
        has_runtime=MachineFacts().has_listener,
    )
    plan = plan_workflow(selected, context)
    if config.dry_run:
        show_plan(plan, asked.output)
        return
    if PREFLIGHT in names and not config.force:
        _confirm(plan)
    options = run_options("reset", asked, "elsewhere")
    carry_out(plan, machine, _settings(context, cluster.kubeconfig), options, cluster)


def _load(asked: Asked, machine: NodeMachine) -> Loaded[ResetConfiguration]:
    flags, options = asked.flags, read_options(asked.flags)
    if path := flags.text("config"):
        return open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).reset()
    given = reset_from_values(flags)
    socket = given.cri_socket or _socket_of_kubelet(machine)
    return reset_from_flags(replace(given, cri_socket=socket), MachineFacts(), options)


def _with_flags(config: ResetConfiguration, asked: Asked) -> ResetConfiguration:
    """Return the configuration with those flags that count beside a file."""
    flags = asked.flags
    return replace(
        config,
        dry_run=flags.switch("dry-run") or config.dry_run,
        skip_phases=flags.list("skip-phases") or config.skip_phases,
        ignore_preflight_errors=(*config.ignore_preflight_errors, *flags.list("ignore-preflight-errors")),
    )


def _socket_of_kubelet(machine: NodeMachine) -> str:
    """Return the runtime that the kubelet of this node was told to use, where there are several."""
    data = machine.read(INSTANCE_CONFIG_FILE)
    if data is None:
        return ""
    try:
        document = read_yaml(data.decode("utf-8", "replace"), source=INSTANCE_CONFIG_FILE)
    except GarboardError:
        return ""
    found = document.get("containerRuntimeEndpoint") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def _check_user(ignored: tuple[str, ...]) -> None:
    if os.geteuid() == 0:
        return
    if {_ROOT_CHECK.lower(), "all"} & {each.lower() for each in ignored}:
        show_warnings([f"[{_ROOT_CHECK}]: user is not running as root"])
        return
    raise NotReady(
        f"some fatal errors occurred:\n\t[{_ROOT_CHECK}]: user is not running as root",
        hint=f"run it with sudo, or pass --ignore-preflight-errors {_ROOT_CHECK}",
    )


def _confirm(plan: Plan) -> None:
    """Ask, as kubeadm does: only y and yes go on."""
    tell("[reset] warning: what garboard or kubeadm made on this machine will be removed for good")
    tell(f"[reset] {len(plan.steps)} steps are planned; --dry-run shows them")
    sys.stderr.write("[reset] Are you sure you want to proceed? [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise GarboardError("aborted reset operation", hint="nothing was changed; --force does not ask")


def _settings(context: ResetContext, kubeconfig: str) -> RunSettings:
    return RunSettings(
        kubeconfig=kubeconfig,
        cri_socket=context.config.cri_socket,
        certificates_dir=context.config.certificates_dir if context.local else "",
        etcd_endpoints=",".join(context.other_client_urls),
    )


reset = WorkflowGroup[ResetContext](
    Workflow("reset", RESET, RESET_FLAGS, run_reset, own_flags=("strict-config", "timings"), is_undoable=False),
    flags=RESET_FLAGS,
    summary="Remove what init or join made on this machine, its etcd member first.",
    epilog="Example: garboard reset --dry-run",
)
