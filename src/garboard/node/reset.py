"""`reset` on this machine: what is left of a node is observed, and nothing is removed before the user has confirmed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from garboard.config import Loaded, ResolvedVersion, reset_from_flags, reset_from_values
from garboard.documents import read_yaml
from garboard.engine import Plan
from garboard.errors import GarboardError, NotReady
from garboard.host.facts import MachineFacts
from garboard.host.node_machine import NodeMachine
from garboard.manifests.kubelet import INSTANCE_CONFIG_FILE
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.manifests.uploaded import KUBEADM_CONFIG
from garboard.model import DEFAULT_VERSION
from garboard.model.lifecycle import ResetConfiguration
from garboard.model.paths import ADMIN_CONF, DEFAULT_CERTIFICATES_DIR
from garboard.node.configuration import open_config
from garboard.node.interpreters.members import EtcdReader
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.observe import observed_members, read_options
from garboard.node.transaction import RunPolicy
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, Observed, Prepared, Workflow, WorkflowRequest
from garboard.phases.reset import CLEANUP, PREFLIGHT, RESET, ResetContext, observe_reset, refuse_other_members
from garboard.phases.workflow import Placed

_ROOT_CHECK = "IsPrivilegedUser"


def _load(request: WorkflowRequest, machine: NodeMachine) -> Loaded[ResetConfiguration]:
    flags, options = request.flags, read_options(request.flags)
    if path := flags.text("config"):
        return open_config(Path(path), options, ResolvedVersion(str(DEFAULT_VERSION))).reset()
    given = reset_from_values(flags)
    socket = given.cri_socket or _socket_of_kubelet(machine)
    return reset_from_flags(replace(given, cri_socket=socket), MachineFacts(), options)


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


def _prepare(request: WorkflowRequest, node: LocalNode) -> Prepared[ResetConfiguration]:
    flags = request.flags
    loaded = _load(request, node.machine)
    node.warn(loaded.warnings)
    # These flags count beside a file.
    config = replace(
        loaded.config,
        dry_run=flags.switch("dry-run") or loaded.config.dry_run,
        skip_phases=flags.list("skip-phases") or loaded.config.skip_phases,
        ignore_preflight_errors=(*loaded.config.ignore_preflight_errors, *flags.list("ignore-preflight-errors")),
    )
    return Prepared(config=config, skips=config.skip_phases, is_shown=config.dry_run)


@contextmanager
def _observe(
    prepared: Prepared[ResetConfiguration],
    selected: Sequence[Placed[ResetContext]],
    request: WorkflowRequest,
    node: LocalNode,
) -> Iterator[Observed[ResetContext]]:
    config, names = prepared.config, [each.path for each in selected]
    if PREFLIGHT in names and not prepared.is_shown:
        _check_user(config.ignore_preflight_errors, node)
    cluster = NodeCluster(node.machine, request.flags.text("kubeconfig") or ADMIN_CONF, "", report=node.reporter.report)
    config = replace(config, certificates_dir=_certificates_dir(config, request, cluster))
    etcd = EtcdReader(node.machine, cluster, config.certificates_dir)
    context = observe_reset(
        config,
        machine=node.machine,
        etcd=etcd,
        node_name=MachineFacts().hostname(),
        now=datetime.now(UTC),
        selected=names,
        has_runtime=MachineFacts().has_listener,
        allowed_paths=request.flags.list("allow-path"),
        abandons_member=request.flags.switch("abandon-etcd-member"),
    )
    settings = RunSettings(
        kubeconfig=cluster.kubeconfig,
        cri_socket=config.cri_socket,
        certificates_dir=config.certificates_dir if context.local else "",
        etcd_endpoints=",".join(context.other_client_urls),
        lone_member=",".join(context.local.client_urls) if context.local and context.is_only_voter else "",
    )

    def recheck(_waited_s: float) -> None:
        if context.is_only_voter and context.local:
            refuse_other_members(context, etcd.members(context.local.client_urls))

    members = (observed_members(each.line for each in context.members),) if context.members else ()
    yield Observed(context=context, settings=settings, cluster=cluster, observations=members, recheck=recheck)


def _certificates_dir(config: ResetConfiguration, request: WorkflowRequest, cluster: NodeCluster) -> str:
    """Return the folder of certificates: that of the user, or else that of the cluster, if it can be asked."""
    if config.certificates_dir != DEFAULT_CERTIFICATES_DIR or "cert-dir" in request.flags.given:
        return config.certificates_dir
    try:
        stored = cluster.without_patience().find("ConfigMap", KUBE_SYSTEM, KUBEADM_CONFIG) or {}
        data = stored.get("data")
        text = data.get("ClusterConfiguration") if isinstance(data, dict) else None
        document = read_yaml(str(text or ""), source=KUBEADM_CONFIG)
    except GarboardError:
        return config.certificates_dir
    found = document.get("certificatesDir") if isinstance(document, dict) else None
    return found if isinstance(found, str) and found.startswith("/") else config.certificates_dir


def _check_user(ignored: tuple[str, ...], node: LocalNode) -> None:
    if os.geteuid() == 0:
        return
    if {_ROOT_CHECK.lower(), "all"} & {each.lower() for each in ignored}:
        node.warn([f"[{_ROOT_CHECK}]: user is not running as root"])
        return
    raise NotReady(
        f"some fatal errors occurred:\n\t[{_ROOT_CHECK}]: user is not running as root",
        hint=f"run it with sudo, or pass --ignore-preflight-errors {_ROOT_CHECK}",
    )


def _confirm(config: ResetConfiguration, plan: Plan, selected: Sequence[Placed[ResetContext]], node: LocalNode) -> None:
    """Ask, as kubeadm does: only y and yes go on."""
    if config.force or not any(each.path == PREFLIGHT for each in selected):
        return
    report = node.reporter.report
    report("[reset] warning: what garboard or kubeadm made on this machine will be removed for good")
    report(f"[reset] {len(plan.steps)} steps are planned; --dry-run shows them")
    answer = node.reporter.ask("[reset] Are you sure you want to proceed? [y/N]: ")
    if answer.strip().lower() not in ("y", "yes"):
        raise GarboardError("aborted reset operation", hint="nothing was changed; --force does not ask")


def _policy(config: ResetConfiguration, request: WorkflowRequest, _node: LocalNode) -> RunPolicy:
    # What open runs have done is only gone, and their pre-images of no more use, once the node is cleaned up.
    cleans_up = request.is_whole and CLEANUP not in config.skip_phases
    return RunPolicy(cluster="elsewhere", supersedes=cleans_up, is_undoable=False)


RESET_WORKFLOW = Workflow(
    name="reset", phases=RESET, prepare=_prepare, observe=_observe, policy=_policy, confirm=_confirm
)
