"""`upgrade apply` and `upgrade node` on this machine: the cluster and the node are observed, then it is planned."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from garboard.change.record import refuse_unfinished
from garboard.config import GivenFlags, ResolvedVersion, cluster_text, ignored_checks, resolve_version
from garboard.engine import Plan, what_moved_since
from garboard.errors import BadDocument, BadUsage, GarboardError, as_usage
from garboard.host.facts import MachineFacts
from garboard.lazy import lazy_module
from garboard.model import DEFAULT_VERSION
from garboard.model.component import LocalEtcd
from garboard.model.go import join_path
from garboard.model.lifecycle import UpgradeApply, UpgradeConfiguration, UpgradeNode
from garboard.model.node import NodeRegistration, Timeouts
from garboard.model.paths import ADMIN_CONF, KUBELET_CONF
from garboard.node.configuration import node_host, open_config
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.observations import OBJECT
from garboard.node.observe import NodeInspector, Role, directory_patches, looking_again, read_options
from garboard.node.reporter import who
from garboard.node.transaction import RunPolicy
from garboard.node.upgrade_drift import with_drift
from garboard.node.wiring import RunSettings
from garboard.node.workflow import ChangedMeanwhile, LocalNode, Observed, Prepared, Workflow, WorkflowRequest
from garboard.phases.change_record import ChangeRecord
from garboard.phases.gates import API_SERVER
from garboard.phases.node.records import recorded_set
from garboard.phases.patching import NodePatches
from garboard.phases.upgrade.cluster import UpgradedCluster, images_of, read_upgraded
from garboard.phases.upgrade.context import (
    SnapshotRoom,
    ThisNode,
    UpgradeContext,
    UpgradeOptions,
    observe_this_node,
    observe_upgrade,
)
from garboard.phases.upgrade.control_plane import SNAPSHOTS
from garboard.phases.upgrade.differences import refuse_stopping, written_by
from garboard.phases.upgrade.tree import APPLY, NODE
from garboard.phases.upgrade.version_policy import UpgradeRequest, refuse_version
from garboard.phases.workflow import Placed
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard import patches
    from garboard.node import change_record
else:
    patches = lazy_module("garboard.patches")
    change_record = lazy_module("garboard.node.change_record")

PREFLIGHT = "preflight"
# A Lease that took longer was another node's, which may have been the last one but this.
_AT_ONCE_S, _FOLLOWS_WITHIN_S = 2.0, 15.0
DATABASE = "member/snap/db"  # of etcd, below the folder of its data


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeInput:
    """What was asked for, by flags or by an UpgradeConfiguration; `version` is None for `upgrade node`."""

    settings: UpgradeNode
    timeouts: Timeouts
    version: ResolvedVersion | None
    ignored_checks: frozenset[str]
    is_forced: bool = False
    drains: bool = False
    is_asked: bool = True  # the user has to confirm
    allows_experimental: bool = False
    allows_candidates: bool = False
    prints_config: bool = False
    lease: LeaseToken | None = None  # of the coordinator that told this node to upgrade itself


def _loaded(flags: GivenFlags, node: LocalNode) -> UpgradeConfiguration:
    if not (path := flags.text("config")):
        return UpgradeConfiguration()
    loaded = open_config(Path(path), read_options(flags), ResolvedVersion(str(DEFAULT_VERSION))).upgrade()
    node.warn(loaded.warnings)
    return loaded.config


def _with_flags(settings: UpgradeNode, flags: GivenFlags) -> UpgradeNode:
    """Return the settings of a file, or of flags where these were given; a phase may lack some of them."""
    given = flags.given
    return replace(
        settings,
        certificate_renewal=(
            flags.switch("certificate-renewal") if "certificate-renewal" in given else settings.certificate_renewal
        ),
        etcd_upgrade=flags.switch("etcd-upgrade") if "etcd-upgrade" in given else settings.etcd_upgrade,
        dry_run=flags.switch("dry-run") or settings.dry_run,
        patches_directory=flags.text("patches") or settings.patches_directory,
        skip_phases=flags.list("skip-phases") or settings.skip_phases,
    )


def _lease(flags: GivenFlags) -> LeaseToken | None:
    text = flags.text("lease")
    return LeaseToken.parse(text) if text else None


def _prepare_apply(request: WorkflowRequest, node: LocalNode) -> Prepared[UpgradeInput]:
    flags = request.flags
    config = _loaded(flags, node)
    settings = _with_flags(config.apply, flags)
    assert isinstance(settings, UpgradeApply)
    text = request.argument or settings.kubernetes_version
    if not text and request.is_whole:
        raise BadUsage(
            "the version to upgrade to is missing", hint=f"name it, such as garboard upgrade apply {DEFAULT_VERSION}"
        )
    with as_usage():
        version = resolve_version(text) if text else None
    is_forced = flags.switch("force") or bool(settings.force_upgrade)
    given = UpgradeInput(
        settings=settings,
        timeouts=config.timeouts,
        version=version,
        ignored_checks=ignored_checks(flags.list("ignore-preflight-errors"), settings.ignore_preflight_errors),
        is_forced=is_forced,
        drains=flags.switch("drain"),
        is_asked=not (flags.switch("yes") or is_forced),
        allows_experimental=flags.switch("allow-experimental-upgrades") or bool(settings.allow_experimental_upgrades),
        allows_candidates=flags.switch("allow-release-candidate-upgrades") or bool(settings.allow_rc_upgrades),
        prints_config=flags.switch("print-config") or bool(settings.print_config),
        lease=_lease(flags),
    )
    return Prepared(config=given, skips=settings.skip_phases, is_shown=bool(settings.dry_run))


def _prepare_node(request: WorkflowRequest, node: LocalNode) -> Prepared[UpgradeInput]:
    flags = request.flags
    config = _loaded(flags, node)
    settings = _with_flags(config.node, flags)
    given = UpgradeInput(
        settings=settings,
        timeouts=config.timeouts,
        version=None,
        ignored_checks=ignored_checks(flags.list("ignore-preflight-errors"), settings.ignore_preflight_errors),
        is_asked=False,
        drains=flags.switch("drain"),
        lease=_lease(flags),
    )
    return Prepared(config=given, skips=settings.skip_phases, is_shown=bool(settings.dry_run))


@contextmanager
def _observe(
    prepared: Prepared[UpgradeInput],
    selected: Sequence[Placed[UpgradeContext]],
    request: WorkflowRequest,
    node: LocalNode,
    *,
    is_first: bool,
) -> Iterator[Observed[UpgradeContext]]:
    given, machine, flags = prepared.config, node.machine, request.flags
    this = observe_this_node(machine, MachineFacts().cri_sockets())
    is_worker = not this.manifests
    if is_worker and is_first:
        raise BadUsage("upgrade apply runs on a control-plane node", hint="on a worker: garboard upgrade node")
    kubeconfig = flags.text("kubeconfig") or (KUBELET_CONF if is_worker else ADMIN_CONF)
    server = "" if is_worker else f"https://{this.endpoint.host_port}"
    cluster = NodeCluster(machine, kubeconfig, server, report=node.reporter.report)
    upgraded = read_upgraded(cluster, MachineFacts(), given.version, this.endpoint, is_worker=is_worker)
    # Read like all that is planned from, so that a change that begins after this makes the plan stale.
    record = ChangeRecord() if is_worker else change_record.read_record(cluster)
    if not prepared.is_shown:
        refuse_unfinished(record)
    node.warn(upgraded.warnings)
    if given.prints_config:
        node.reporter.show(cluster_text(upgraded.former, upgraded.former.facts))
    patches_given, recorded = _patches(given, flags, this, cluster, is_worker=is_worker)
    context = observe_upgrade(
        this,
        upgraded,
        replace(_options(given, upgraded, is_first=is_first), is_whole=request.is_whole),
        host=node_host(machine),
        machine=machine,
        patches=patches_given,
        now=datetime.now(UTC),
        objects=cluster,
        timeouts=given.timeouts,
        registration=_registration(given.settings, this),
        inspector=NodeInspector(machine.manager),
        ignored_checks=given.ignored_checks,
    )
    context = replace(context, record=record, room=None if is_worker else _room(node, upgraded))
    context = with_drift(context, recorded, request.flags, node, is_shown=prepared.is_shown)
    if not any(each.path == PREFLIGHT for each in selected) and not prepared.is_shown:
        refuse_stopping(context, written_by(each.path for each in selected))
    yield Observed(
        context=context,
        settings=_settings(context, kubeconfig, server, given.lease),
        cluster=cluster,
        recheck=partial(recheck, context, cluster, node),
    )


def recheck(
    context: UpgradeContext, cluster: NodeCluster, node: LocalNode, waited_s: float, clock: Clock = CLOCK
) -> None:
    """Refuse a plan after whose making a ConfigMap has changed, or another node has become the last one to go up."""
    look = looking_again(node.machine, cluster)
    maps = Plan(observed=tuple(each for each in cluster.observed() if each.name.startswith(f"{OBJECT} ConfigMap ")))
    moved = [*what_moved_since(maps, look)]
    if context.is_control_plane:
        # The Pods of a node that has just released the Lease follow what runs there by a few seconds.
        timeout_s = _FOLLOWS_WITHIN_S if waited_s > _AT_ONCE_S and context.control_planes_left else 0.0
        same = partial(_as_planned, context, cluster)
        if not moved and wait_until(same, timeout_s=timeout_s, pauses=Pauses.every(1.0), clock=clock) is None:
            moved.append("another control plane has changed its version since the plan was made")
    if moved:
        raise ChangedMeanwhile(f"the plan is stale: {'; '.join(moved)}", hint="run the command again")


def _as_planned(context: UpgradeContext, cluster: NodeCluster) -> str | None:
    """Say that others are still to come, or that none is, as when it was planned; None if that has changed."""
    now = replace(context.upgraded, api_servers=images_of(cluster, API_SERVER))
    is_same = bool(replace(context, upgraded=now).control_planes_left) == bool(context.control_planes_left)
    return "it is as it was planned" if is_same else None


def _room(node: LocalNode, upgraded: UpgradedCluster) -> SnapshotRoom | None:
    etcd = upgraded.target.etcd
    if not isinstance(etcd, LocalEtcd):
        return None
    database = join_path(etcd.data_dir, DATABASE)
    return SnapshotRoom(node.machine.size(database), node.machine.free_bytes(SNAPSHOTS))


def _options(given: UpgradeInput, upgraded: UpgradedCluster, *, is_first: bool) -> UpgradeOptions:
    warnings: tuple[str, ...] = ()
    if is_first and given.version is not None:
        warnings = refuse_version(
            UpgradeRequest(
                cluster=upgraded.former.release,
                target=given.version,
                kubelets=upgraded.kubelets,
                allows_experimental=given.allows_experimental,
                allows_candidates=given.allows_candidates,
            ),
            is_forced=given.is_forced,
        )
    return UpgradeOptions(
        renews_certificates=given.settings.certificate_renewal,
        upgrades_etcd=given.settings.etcd_upgrade,
        is_forced=given.is_forced,
        drains=given.drains,
        is_first=is_first,
        is_coordinated=given.lease is not None,
        patches_directory=given.settings.patches_directory or "",
        version_warnings=warnings,
        author=who(),
    )


def _registration(settings: UpgradeNode, this: ThisNode) -> NodeRegistration:
    return NodeRegistration(
        name=this.name,
        cri_socket=this.cri_socket,
        image_pull_policy=settings.image_pull_policy,
        image_pull_serial=settings.image_pull_serial,
    )


def _patches(
    given: UpgradeInput, flags: GivenFlags, this: ThisNode, cluster: NodeCluster, *, is_worker: bool
) -> tuple[NodePatches, NodePatches]:
    """Return the patches that count, and those that the cluster has recorded for this node: they count by default."""
    role: Role = "worker" if is_worker else "control-plane"
    found = directory_patches(given.settings.patches_directory or "", this.name, flags, role=role)
    kept = None
    with suppress(BadDocument) if found.list_files is not None else nullcontext():
        kept = recorded_set(cluster, this.name, is_worker=is_worker)
    if kept is None:
        return found, NodePatches()
    files = [
        patches.PatchFile(path, f"ConfigMap garboard-patches: {path}", partial(bytes, data))
        for path, data in sorted(kept.files.items())
    ]
    recorded = replace(found, list_files=lambda: files, node_name=this.name, role=role)
    return (recorded if found.list_files is None else found), recorded


def _settings(context: UpgradeContext, kubeconfig: str, server: str, lease: LeaseToken | None) -> RunSettings:
    cluster = context.cluster
    has_member = context.is_control_plane and isinstance(cluster.etcd, LocalEtcd)
    settings = RunSettings(
        kubeconfig=kubeconfig,
        local_server=server,
        cri_socket=context.node_registration.cri_socket,
        endpoint=cluster.control_plane_endpoint,
        certificates_dir=cluster.certificates_dir if has_member else "",
        etcd_data_dir=cluster.etcd.data_dir if has_member and isinstance(cluster.etcd, LocalEtcd) else "",
    )
    # A worker changes nothing that others share, and may not read the Lease.
    return settings.under(lease if context.is_control_plane else None)


def _policy(_config: UpgradeInput, _request: WorkflowRequest, _node: LocalNode) -> RunPolicy:
    # Objects go back last, once the way back of the static pods has brought this node's API server back.
    return RunPolicy(undoes_on_failure=True, looks_again=True)


def _confirm(config: UpgradeInput, plan: Plan, selected: Sequence[Placed[UpgradeContext]], node: LocalNode) -> None:
    """Ask, as kubeadm does: only y and yes go on."""
    if not config.is_asked or not plan.steps or not any(each.path == PREFLIGHT for each in selected):
        return
    node.reporter.report(f"[upgrade] {len(plan.steps)} steps are planned; --dry-run shows them")
    answer = node.reporter.ask("[upgrade] Are you sure you want to proceed? [y/N]: ")
    if answer.strip().lower() not in ("y", "yes"):
        raise GarboardError("the upgrade was not confirmed", hint="nothing was changed; --yes does not ask")


def _observing(*, is_first: bool) -> Callable[..., AbstractContextManager[Observed[UpgradeContext]]]:
    return partial(_observe, is_first=is_first)


APPLY_WORKFLOW = Workflow(
    name="upgrade apply",
    phases=APPLY,
    prepare=_prepare_apply,
    observe=_observing(is_first=True),
    policy=_policy,
    confirm=_confirm,
)
NODE_WORKFLOW = Workflow(
    name="upgrade node", phases=NODE, prepare=_prepare_node, observe=_observing(is_first=False), policy=_policy
)
