"""What is compared before an upgrade: this node's static pods and its kubelet's configuration, and the addons."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from garboard.documents import DocumentPath, Json, read_yaml
from garboard.drift import DeclaredDocument, DriftSubject, FoundDocument, own_part, patched_from, rendered_from
from garboard.errors import BadDocument, InvalidValue, PatchFailed
from garboard.manifests import ValueSource
from garboard.manifests.coredns import deployment
from garboard.manifests.kube_proxy import daemon_set
from garboard.manifests.kubelet import CONFIG_FILE, config_source, with_resolv_conf
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod
from garboard.model.cluster import ClusterConfiguration, tag_of
from garboard.model.component import LocalEtcd
from garboard.model.minors import MINORS
from garboard.model.paths import manifest_path
from garboard.model.version import KubernetesVersion
from garboard.patches import NodeFacts, Patch, PatchSubject, Target, instance_patch, read_patch_tree
from garboard.patches.json_values import value_at
from garboard.patches.targets import TARGETS
from garboard.phases.gates import API_SERVER
from garboard.phases.gates.control_plane import container_of
from garboard.phases.node.addons import observe_dns
from garboard.phases.patching import NodePatches
from garboard.phases.static_pods import ETCD
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.control_plane import rendered_node
from garboard.schema import load_schema
from garboard.values import dataclass

DNS, PROXY = "corednsdeployment", "kubeproxydaemonset"
RECORDED, CURRENT = "a patch that is recorded for this node", "a patch of this node"
ADDONS = {DNS: ("Deployment", "coredns"), PROXY: ("DaemonSet", "kube-proxy")}


@dataclass(frozen=True, slots=True)
class UpgradeTarget:
    """A target as it is rendered for a version, and what decided its values."""

    document: Json
    decided_by: Callable[[DocumentPath], ValueSource | None]
    node_patches: tuple[Patch, ...] = ()


def drift_subjects(
    context: UpgradeContext, recorded: NodePatches | None, written: Mapping[str, bytes]
) -> Iterator[DriftSubject]:
    """Yield what is compared on this node: its static pods and its kubelet's configuration, then the addons.

    `recorded` is the patch set that the cluster has for the node, `written` what garboard wrote last, by path. What is
    not there is not compared: an upgrade drops nothing of it.
    """
    own = replace(context, cluster=own_cluster(context))
    for target in TARGETS:
        if target.name in ADDONS and not context.is_control_plane:
            continue  # the credentials of a kubelet may not even read them
        found = _found(context, target)
        if found is None:
            continue
        at = _as_found(own, found) if target.name == PROXY else own
        rendered = render_target(at, target)
        if rendered is not None:
            yield _subject(at, target, rendered, found, _patch_sets(context, recorded), written.get(found.source))


def _as_found(context: UpgradeContext, proxy: FoundDocument) -> UpgradeContext:
    """Return the context with the version that kube-proxy has: it follows the last of the control planes."""
    image = value_at(proxy.document, ("spec", "template", "spec", "containers", 0, "image"))
    version = _known_version(tag_of(str(image)))
    return replace(context, cluster=replace(context.cluster, kubernetes_version=version)) if version else context


def own_cluster(context: UpgradeContext) -> ClusterConfiguration:
    """Return the configuration of the cluster with the version that this node was rendered for."""
    version = own_version(context)
    return replace(context.cluster, kubernetes_version=version) if version else context.upgraded.former


def own_version(context: UpgradeContext) -> str:
    """Return the version that this node has: of its API server, or of its kubelet; empty if that cannot be told."""
    manifest = context.manifests.get(API_SERVER)
    if manifest is not None:
        document = read_yaml(manifest, source=manifest_path(API_SERVER))
        image = container_of(document, API_SERVER).get("image") if isinstance(document, dict) else None
        return _known_version(tag_of(str(image or "")))
    node = context.objects.find("Node", "", context.node_name) if context.objects else None
    return _known_version(str(value_at(node, ("status", "nodeInfo", "kubeletVersion"))))


def _known_version(text: str) -> str:
    with suppress(InvalidValue):
        version = KubernetesVersion.parse(text)
        if version.as_minor in MINORS:
            return str(version)
    return ""


def upgrades_addons(context: UpgradeContext) -> bool:
    """Say whether this node is the last control plane, which upgrades the addons."""
    return context.is_control_plane and not context.control_planes_left


def render_target(context: UpgradeContext, target: Target) -> UpgradeTarget | None:
    """Render a target for this node; None if the node has no such thing, or an upgrade leaves it alone."""
    cluster = context.cluster
    if target.name == KUBELET:
        return _kubelet(context)
    if not context.is_control_plane:
        return None
    if target.name in CONTROL_PLANE:
        pod = control_plane_pod(target.name, rendered_node(context))
        return UpgradeTarget(pod.document, pod.sources.of)
    if target.name == ETCD:
        if not isinstance(cluster.etcd, LocalEtcd) or not context.options.upgrades_etcd:
            return None
        pod = etcd_pod(rendered_node(context))
        return UpgradeTarget(pod.document, pod.sources.of)
    if target.name == DNS:
        if cluster.dns.disabled:
            return None
        content = deployment(cluster, replicas=observe_dns(context.objects).replicas)
    else:
        if cluster.is_proxy_disabled:
            return None
        content = daemon_set(cluster, context.host.environment)
    return UpgradeTarget(content.content, content.sources.of)


def _kubelet(context: UpgradeContext) -> UpgradeTarget:
    cluster, kubelet = context.cluster, context.components.kubelet
    document: Json = with_resolv_conf(kubelet.printed(cluster.facts), context.host)
    socket = context.node_registration.cri_socket
    own = (instance_patch(socket),) if cluster.has_instance_config else ()
    return UpgradeTarget(document, lambda path: config_source(path, kubelet.tree, context.config_kind), own)


def _found(context: UpgradeContext, target: Target) -> FoundDocument | None:
    """Return a target as this node or its cluster has it."""
    if target.name in ADDONS:
        kind, name = ADDONS[target.name]
        live = context.objects.find(kind, KUBE_SYSTEM, name) if context.objects else None
        return None if live is None else FoundDocument(_typed(own_part(live), target), f"{kind} {KUBE_SYSTEM}/{name}")
    if target.name == KUBELET:
        data, path = context.machine.read(CONFIG_FILE), CONFIG_FILE
    else:
        data, path = context.manifests.get(target.name), manifest_path(target.name)
    return None if data is None else FoundDocument.of_file(path, data)


def _typed(content: Mapping[str, Json], target: Target) -> Json:
    """Return an object with its kind, which lists leave out."""
    return {**content, "apiVersion": target.api_version, "kind": target.kind}


def _patch_sets(context: UpgradeContext, recorded: NodePatches | None) -> list[tuple[str, NodePatches]]:
    """Return the patches that may explain what this node has: those recorded for it, and those that count now."""
    sets = [(RECORDED, recorded)] if recorded is not None and recorded.list_files is not None else []
    return [*sets, (CURRENT, context.patches)]


def _subject(
    own: UpgradeContext,
    target: Target,
    rendered: UpgradeTarget,
    found: FoundDocument,
    sets: Sequence[tuple[str, NodePatches]],
    written: bytes | None,
) -> DriftSubject:
    schema = load_schema(own.cluster.release)
    declared = rendered_from(rendered.document, rendered.decided_by, str(own.cluster.release.as_minor))
    subject = PatchSubject.of_target(target, schema, rendered.node_patches)
    if rendered.node_patches:
        declared = patched_from(declared, (), subject)
    is_addon = target.name in ADDONS
    return DriftSubject(
        component=target.name,
        where=found.source,
        shape=target.shape(schema),
        rendered=declared,
        patched=tuple(_patched(declared, sets, subject)),
        on_disk=None if is_addon else found,
        running=found if is_addon else None,
        written=None if written is None else read_yaml(written, source=found.source),
    )


def _patched(
    declared: DeclaredDocument, sets: Sequence[tuple[str, NodePatches]], subject: PatchSubject
) -> Iterator[DeclaredDocument]:
    """Yield the document with each set of patches; one that fits only the target of the upgrade explains nothing."""
    assert subject.schema is not None
    assert subject.target is not None
    for label, patches in sets:
        files = patches.list_files() if patches.list_files else ()
        with suppress(PatchFailed, BadDocument):
            node = NodeFacts(patches.node_name, patches.role)
            mine = read_patch_tree(files, subject.schema, node).for_target(subject.target)
            yield patched_from(declared, mine, subject, label)
