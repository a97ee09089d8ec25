"""`garboard join`: another node of a cluster, as a whole or phase by phase."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from garboard.cli.config.inputs import open_config, show_warnings
from garboard.cli.workflow.cluster import KUBELET_CONF
from garboard.cli.workflow.commands import Asked, Workflow, WorkflowGroup
from garboard.cli.workflow.doors import NodeDoors
from garboard.cli.workflow.exam import NodeExam
from garboard.cli.workflow.hands import RunSettings
from garboard.cli.workflow.node import node_host, node_patches, read_options, with_node_name
from garboard.cli.workflow.running import carry_out, refuse_open_run, run_options, show_plan
from garboard.cli.workflow.telling import tell
from garboard.config import (
    Loaded,
    ResolvedVersion,
    check_bind_address,
    check_mixed_flags,
    ignored_checks,
    join_from_flags,
)
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager
from garboard.manifests.node import NodeHost
from garboard.model import DEFAULT_VERSION
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import JoinConfiguration
from garboard.phases import Placed, plan_workflow, select
from garboard.phases.init.kubelet import KUBELET
from garboard.phases.join import JOIN, WITHOUT_CLUSTER
from garboard.phases.join.cluster import JoinedCluster
from garboard.phases.join.context import JoinContext, observe_join
from garboard.phases.join.discovery import Discovered
from garboard.phases.join.finding import find_cluster
from garboard.phases.join.flags import ADMIN_CONF, JOIN_FLAGS, ignored_flags, join_from_values
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.pki.keys import KeySource


def run_join(asked: Asked) -> None:
    """Find the cluster, plan what was asked for, and print the plan or carry it out."""
    check_mixed_flags(asked.flags.given)
    loaded = _load(asked)
    if ignored := ignored_flags(asked.flags):
        show_warnings([f"without --control-plane these are ignored: {', '.join(f'--{name}' for name in ignored)}"])
    show_warnings(loaded.warnings)
    if loaded.config.control_plane is not None:
        check_bind_address(loaded.config.control_plane.local_api_endpoint.advertise_address)
    skip = asked.flags.list("skip-phases") or loaded.config.skip_phases
    # What is selected is known before anything is looked at, so that a wrong name costs nothing.
    selected = select(JOIN, only=asked.only, skip=() if asked.only else skip)
    machine = NodeMachine(service_manager())
    is_only_shown = asked.flags.switch("dry-run") or loaded.config.dry_run
    if not is_only_shown:
        refuse_open_run(machine)
    exam = NodeExam(machine.manager)
    found = _find(loaded.config, machine, exam, selected)
    # Keys take as long as all the checks and the planning: they are made meanwhile.
    with nullcontext() if is_only_shown else _keys_ahead(found.cluster, loaded.config, selected, machine) as keys:
        context = _observe(loaded.config, machine, found, is_strict=asked.flags.switch("strict-patches"))
        node = replace(
            context.node,
            exam=exam,
            ignored_checks=ignored_checks(
                asked.flags.list("ignore-preflight-errors"), loaded.config.node_registration.ignore_preflight_errors
            ),
            is_only_shown=is_only_shown,
        )
        plan = plan_workflow(selected, replace(context, node=node, is_whole=asked.only is None))
        if is_only_shown:
            show_plan(plan, asked.output)
        else:
            carry_out(plan, machine, _settings(context), run_options("join", asked, "elsewhere"), keys=keys)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is before anything is planned: the machine, and the cluster if a phase needs it."""

    host: NodeHost
    discovered: Discovered | None = None
    cluster: JoinedCluster | None = None


def _find(
    config: JoinConfiguration, machine: NodeMachine, exam: NodeExam, selected: Sequence[Placed[JoinContext]]
) -> _Found:
    # Other programs are asked while the cluster is: both take their time, and neither needs the other.
    with ThreadPoolExecutor(max_workers=2) as beside:
        host = beside.submit(node_host, machine)
        if any(each.path == "preflight" for each in selected):
            # The checks and the planning will want to know these; what fails here will fail there, and be told.
            beside.submit(exam.kubelet_version)
            beside.submit(exam.has_service, KUBELET)
            beside.submit(exam.is_enabled, KUBELET)
            beside.submit(machine.is_active, KUBELET)
        if all(each.path in WITHOUT_CLUSTER for each in selected):
            return _Found(host.result())
        discovered, cluster = find_cluster(
            config, NodeDoors(machine, tell), MachineFacts(), downloads=_has(selected, "download-certs")
        )
        return _Found(host.result(), discovered, cluster)


def _has(selected: Sequence[Placed[JoinContext]], prepares: str) -> bool:
    return any(each.path == f"control-plane-prepare/{prepares}" for each in selected)


def _keys_ahead(
    cluster: JoinedCluster | None,
    config: JoinConfiguration,
    selected: Sequence[Placed[JoinContext]],
    machine: NodeMachine,
) -> AbstractContextManager["KeySource | None"]:
    """Begin to make the keys of a new control plane; a machine that has certificates may need none."""
    if config.control_plane is None or cluster is None or machine.has_folder(cluster.configuration.certificates_dir):
        return nullcontext()
    from garboard.phases.join.preparing import new_keys
    from garboard.pki.keys import PooledKeys

    phases = {name for name in ("certs", "kubeconfig") if _has(selected, name)}
    return PooledKeys(new_keys(cluster.configuration, phases))


def _observe(config: JoinConfiguration, machine: NodeMachine, found: _Found, *, is_strict: bool) -> JoinContext:
    return observe_join(
        config,
        host=found.host,
        machine=machine,
        patches=node_patches(
            config.patches_directory,
            name=config.node_registration.name,
            role="control-plane" if config.control_plane else "worker",
            is_strict=is_strict,
        ),
        now=datetime.now(UTC),
        cluster=found.cluster,
        discovered=found.discovered,
    )


def _settings(context: JoinContext) -> RunSettings:
    node, socket = context.node.config, context.config.node_registration.cri_socket
    if context.config.control_plane is None:
        # A worker has no administrator's kubeconfig: what it may know of the cluster, its kubelet may.
        return RunSettings(kubeconfig=KUBELET_CONF, cri_socket=socket)
    return RunSettings(
        kubeconfig=ADMIN_CONF,
        local_server=f"https://{node.local_api_endpoint.host_port}",
        cri_socket=socket,
        endpoint=node.cluster.control_plane_endpoint,
        certificates_dir=node.cluster.certificates_dir,
        etcd_data_dir=node.cluster.etcd.data_dir if isinstance(node.cluster.etcd, LocalEtcd) else "",
    )


def _load(asked: Asked) -> Loaded[JoinConfiguration]:
    options = read_options(asked.flags)
    if path := asked.flags.text("config"):
        loaded = open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).join()
    else:
        # A single phase on a machine that is half a control plane finds the cluster by its own administrator's file.
        has_admin = asked.only is not None and MachineFacts().has_file(ADMIN_CONF)
        join = join_from_values(asked.flags, asked.argument, has_admin=has_admin)
        loaded = join_from_flags(join, MachineFacts(), options)
    return replace(loaded, config=with_node_name(loaded.config, asked.flags))


join = WorkflowGroup[JoinContext](
    Workflow("join", JOIN, JOIN_FLAGS, run_join),
    flags=JOIN_FLAGS,
    takes="api-server-endpoint",
    summary="Add this machine to a cluster.",
    epilog="Example: garboard join 192.0.2.10:6443 --token abcdef.0123456789abcdef "
    "--discovery-token-unsafe-skip-ca-verification --dry-run",
)
