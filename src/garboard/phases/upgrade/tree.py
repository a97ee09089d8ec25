"""The phases of `upgrade apply` and `upgrade node`, in kubeadm's order and with its names."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from garboard.engine import Note, PutObject, Step
from garboard.errors import BadUsage
from garboard.manifests.bootstrap_token import CLUSTER_INFO, bootstrap_rbac
from garboard.manifests.kubelet import INSTANCE_CONFIG_FILE, config_file, instance_config_file
from garboard.manifests.objects import KUBE_PUBLIC, readable_by, user
from garboard.manifests.uploaded import as_uploaded
from garboard.model.cluster import coredns_image, tag_of
from garboard.model.version import numbers_of
from garboard.patches.json_values import value_at
from garboard.phases.node.addons import observe_dns, plan_coredns, plan_kube_proxy
from garboard.phases.node.records import content_of, holds_set, noted_set, record_on_control_plane, record_on_worker
from garboard.phases.node.revisions import RECORD_PHASE, RecordedConfiguration, record_next_revision
from garboard.phases.node.uploads import plan_kubeadm_config, plan_kubelet_config
from garboard.phases.preflight import plan_checks
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.control_plane import plan_control_plane, plan_kubelet_server
from garboard.phases.upgrade.differences import plan_differences
from garboard.phases.upgrade.kubelet_package import plan_back_in_service, plan_out_of_service
from garboard.phases.upgrade.nodes import plan_next_nodes
from garboard.phases.upgrade.preflight import upgrade_checks
from garboard.phases.workflow import Blocked, Phase, Planned


def is_due(context: UpgradeContext) -> bool:
    return not context.is_upgraded


def is_due_control_plane(context: UpgradeContext) -> bool:
    return context.is_control_plane and not context.is_upgraded


def plan_preflight(context: UpgradeContext) -> Iterator[Planned]:
    """Plan nothing where something is not ready, or where the cluster has this version already."""
    if context.is_upgraded:
        yield _already(context)
        return
    yield from (Note(text, is_warning=True) for text in context.options.version_warnings)
    yield from plan_checks(upgrade_checks(context), context.inspector, context.ignored_checks)
    yield from plan_differences(context)


def _already(context: UpgradeContext) -> Note | Blocked:
    version = context.cluster.kubernetes_version
    edited = context.drift.unlike_declared
    if not edited:
        return Note(f"the cluster has {version} already: there is nothing to do")
    fields = "".join(f"\n  {each.where}: {each.field}" for each in edited)
    text = f"the cluster has {version} already, and this node is not as it is declared"
    error = BadUsage(
        f"{text}: an upgrade is not the way to change a cluster{fields}",
        hint="garboard change drift shows the differences, and garboard change plan what it takes to remove them",
        error_class="not-an-upgrade",
    )
    return Blocked((Note(f"{text}:{fields}", is_warning=True),), error)


def plan_kubelet_files(context: UpgradeContext) -> Iterator[Step | Note]:
    """Plan the kubelet's configuration; it takes effect when the kubelet is restarted, with its new version."""
    cluster, registration = context.cluster, context.node_registration
    if cluster.has_instance_config and context.machine.read(INSTANCE_CONFIG_FILE) is None:
        yield from context.writes(iter((instance_config_file(registration),)))
    patches = context.patches.begin(cluster.release)
    configuration = context.components.kubelet.printed(cluster.facts)
    file = config_file(configuration, cluster, registration, context.host, patches)
    yield from patches.notes()
    yield from context.writes(iter((file,)))


def plan_bootstrap_rbac(_context: UpgradeContext) -> Iterator[Step]:
    """Plan what nodes may do to join; tokens and the public description of the cluster stay as they are."""
    anonymous = (user("system:anonymous"),)
    public = readable_by("kubeadm:bootstrap-signer-clusterinfo", KUBE_PUBLIC, CLUSTER_INFO, anonymous)
    for each in (*bootstrap_rbac(), *public):
        yield Step(PutObject.of(each.content), "nodes join with bootstrap tokens")


def plan_patch_record(context: UpgradeContext) -> Iterator[Step | Note]:
    if context.is_control_plane:
        yield from record_on_control_plane(context)
        return
    content = content_of(context.patches)
    if content is None or not content.is_for_workers or context.objects is None:
        return
    if noted_set(context.objects, context.node_name) == content.digest:
        return
    # A worker may note a set on its Node and not store one. To note what nobody has would stop its next upgrade.
    if holds_set(context.objects, content.digest):
        yield from record_on_worker(context)
    else:
        text = "no control plane has recorded these patches, and a worker may not: the next upgrade needs them again"
        yield Note(f"{text}, with --patches", is_warning=True)


def plan_upgraded_revision(context: UpgradeContext) -> Iterator[Step | Note]:
    """Plan to record what the cluster is configured as now, if that is not what is on record."""
    upgraded, options = context.upgraded, context.options
    former, version = (as_uploaded(each).kubernetes_version for each in (upgraded.former, context.cluster))
    before = RecordedConfiguration(
        kubernetes_version=former, documents=upgraded.documents, patch_sets=upgraded.patch_sets
    )
    after = before.after(version, context.stored_maps)
    is_newer = after.kubernetes_version != former
    yield from record_next_revision(
        context.record,
        before,
        after,
        context.node_name,
        author=options.author,
        message=f"upgraded from {former} to {version}" if is_newer else f"upgraded to {version}",
        request=f"upgrade apply {version}" if options.is_first else "upgrade node",
    )


def _waits_for_others(context: UpgradeContext) -> Note | None:
    """Say which control planes are still to be upgraded: addons follow the last of them."""
    others = context.control_planes_left
    if not others:
        return None
    return Note(f"addons are upgraded with the last control plane; still to come: {', '.join(others)}")


def plan_dns(context: UpgradeContext) -> Iterator[Step | Note]:
    if note := _waits_for_others(context):
        yield note
    elif context.cluster.dns.disabled:
        yield Note("CoreDNS is disabled in the configuration")
    elif note := _newer_dns(context, tag_of(coredns_image(context.cluster))):
        yield note
    else:
        steps = [*plan_coredns(context)]
        note = next(filter(None, (_newer_dns(context, tag) for tag in _chosen_tags(steps))), None)
        yield from (note,) if note else steps


def _newer_dns(context: UpgradeContext, wanted: str) -> Note | None:
    running = observe_dns(context.objects).tag
    if not numbers_of(wanted) or numbers_of(running) <= numbers_of(wanted):
        return None
    return Note(f"CoreDNS {running} is newer than {wanted}, and stays as it is", is_warning=True)


def _chosen_tags(steps: Iterable[Step | Note]) -> Iterator[str]:
    """Yield the tag that a patch may have chosen for CoreDNS."""
    for each in steps:
        if isinstance(each, Step) and isinstance(each.action, PutObject) and each.action.kind == "Deployment":
            image = value_at(each.action.content, ("spec", "template", "spec", "containers", 0, "image"))
            yield tag_of(str(image))


def plan_proxy(context: UpgradeContext) -> Iterator[Step | Note]:
    if note := _waits_for_others(context):
        yield note
    elif context.cluster.is_proxy_disabled:
        yield Note("kube-proxy is disabled in the configuration")
    else:
        yield from plan_kube_proxy(context)


_BASIC = ("config", "dry-run")
_NODE_FLAGS = (*_BASIC, "certificate-renewal", "etcd-upgrade", "kubeconfig", "patches")

PREFLIGHT_OF_APPLY: Phase[UpgradeContext] = Phase(
    name="preflight",
    summary="Check the cluster, the version and this node",
    plan=plan_preflight,
    flags=(
        *_BASIC, "allow-experimental-upgrades", "allow-release-candidate-upgrades", "force",
        "ignore-preflight-errors", "kubeconfig", "yes",
    ),
    takes="version",
)  # fmt: skip
CONTROL_PLANE: Phase[UpgradeContext] = Phase(
    name="control-plane",
    summary="Replace the static pods of this node",
    plan=plan_control_plane,
    run_if=is_due_control_plane,
    flags=_NODE_FLAGS,
)
UPLOAD_CONFIG: Phase[UpgradeContext] = Phase(
    name="upload-config",
    summary="Store the configuration in the cluster",
    children=(
        Phase(
            name="all",
            summary="Store all configuration",
            flags=(*_BASIC, "kubeconfig"),
            runs_siblings=True,
        ),
        Phase(
            name="kubeadm",
            summary="Store the ClusterConfiguration",
            plan=plan_kubeadm_config,
            run_if=is_due,
            flags=(*_BASIC, "kubeconfig"),
        ),
        Phase(
            name="kubelet",
            summary="Store the configuration of kubelets",
            plan=plan_kubelet_config,
            run_if=is_due,
            flags=(*_BASIC, "kubeconfig"),
        ),
    ),
)
KUBECONFIG: Phase[UpgradeContext] = Phase(
    name="kubeconfig",
    summary="Let the kubelet use the API server of its node",
    plan=plan_kubelet_server,
    run_if=is_due_control_plane,
    is_hidden=True,
)
KUBELET_CONFIG: Phase[UpgradeContext] = Phase(
    name="kubelet-config",
    summary="Write the kubelet's configuration",
    plan=plan_kubelet_files,
    run_if=is_due,
    flags=(*_BASIC, "kubeconfig", "patches"),
)
BOOTSTRAP_TOKEN: Phase[UpgradeContext] = Phase(
    name="bootstrap-token",
    summary="Store what nodes may do to join",
    plan=plan_bootstrap_rbac,
    run_if=is_due,
    flags=(*_BASIC, "kubeconfig"),
)
ADDON: Phase[UpgradeContext] = Phase(
    name="addon",
    summary="Upgrade the addons, with the last control plane",
    children=(
        Phase(name="all", summary="Upgrade all addons", flags=(*_BASIC, "kubeconfig", "patches"), runs_siblings=True),
        Phase(
            name="coredns",
            summary="Upgrade CoreDNS",
            plan=plan_dns,
            run_if=is_due_control_plane,
            flags=(*_BASIC, "kubeconfig", "patches"),
        ),
        Phase(
            name="kube-proxy",
            summary="Upgrade kube-proxy",
            plan=plan_proxy,
            run_if=is_due_control_plane,
            flags=(*_BASIC, "kubeconfig", "patches"),
        ),
    ),
)
POST_UPGRADE: Phase[UpgradeContext] = Phase(
    name="post-upgrade",
    summary="Keep the patches of this node in the cluster",
    plan=plan_patch_record,
    run_if=is_due,
    flags=(*_BASIC, "kubeconfig"),
)
# Hidden, as kubeadm has no such phases.
RECORD: Phase[UpgradeContext] = Phase(
    name=RECORD_PHASE,
    summary="Record what the cluster is configured as",
    plan=plan_upgraded_revision,
    run_if=is_due_control_plane,
    is_hidden=True,
)
DRAIN: Phase[UpgradeContext] = Phase(
    name="drain",
    summary="Take the node out of service, with --drain",
    plan=plan_out_of_service,
    run_if=is_due,
    is_hidden=True,
)
UNCORDON: Phase[UpgradeContext] = Phase(
    name="uncordon",
    summary="Put the node back in service, and say how the kubelet's package is upgraded",
    plan=plan_back_in_service,
    run_if=is_due,
    is_hidden=True,
)

NEXT_NODES: Phase[UpgradeContext] = Phase(
    name="next-nodes",
    summary="Say how the other nodes follow",
    plan=plan_next_nodes,
    run_if=is_due,
    is_hidden=True,
)

APPLY: tuple[Phase[UpgradeContext], ...] = (
    PREFLIGHT_OF_APPLY,
    DRAIN,
    CONTROL_PLANE,
    UPLOAD_CONFIG,
    KUBECONFIG,
    KUBELET_CONFIG,
    BOOTSTRAP_TOKEN,
    ADDON,
    POST_UPGRADE,
    RECORD,
    UNCORDON,
    NEXT_NODES,
)
NODE: tuple[Phase[UpgradeContext], ...] = (
    replace(PREFLIGHT_OF_APPLY, flags=("config", "ignore-preflight-errors"), takes="", summary="Check this node"),
    DRAIN,
    CONTROL_PLANE,
    KUBECONFIG,
    KUBELET_CONFIG,
    ADDON,
    POST_UPGRADE,
    RECORD,
    UNCORDON,
)
