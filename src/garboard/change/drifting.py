"""How far the nodes of a cluster have drifted from what it stores: declared, on disk and running, field by field."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from garboard.change.configuration import StoredConfiguration, read_configuration
from garboard.change.kubelet_drift import configuration_subject, declared_configuration, flags_subject, told_of_kubelets
from garboard.change.rendering import ClusterRendering
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import Json
from garboard.drift import (
    DeclaredDocument,
    Difference,
    DriftKind,
    DriftSubject,
    FoundDocument,
    compare_all,
    own_part,
    patched_from,
    rendered_from,
)
from garboard.manifests import ClusterObject
from garboard.manifests.coredns import DEFAULT_REPLICAS, deployment
from garboard.manifests.kube_proxy import daemon_set
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.model.paths import manifest_path
from garboard.patches import NodeFacts, Patch, PatchFile, PatchSubject, Target, read_patch_tree, targets_of
from garboard.schema import Schema, load_schema
from garboard.values import dataclass

Mirrors = Mapping[str, Mapping[str, Json]]
NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedNode:
    """What of a node differs from what is declared for it; `subjects` are what was compared."""

    node: str
    subjects: tuple[DriftSubject, ...]
    differences: tuple[Difference, ...]

    @property
    def edits(self) -> tuple[Difference, ...]:
        """The differences that nothing explains."""
        return tuple(each for each in self.differences if each.kind is DriftKind.HAND_EDIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDrift:
    """The drift of every node that was looked at, and of the objects that nodes share."""

    nodes: tuple[ComparedNode, ...] = ()
    objects: ComparedNode = ComparedNode(node="", subjects=(), differences=())

    @property
    def has_drift(self) -> bool:
        return any(each.is_drift for part in (*self.nodes, self.objects) for each in part.differences)


def cluster_drift(
    snapshot: ClusterSnapshot,
    mirrors: Mirrors,
    objects: Mapping[str, Json],
    kubelets: Mapping[str, Json] = NOTHING,
) -> ClusterDrift:
    """Compare a cluster with the configuration that it stores, and each node with the patches recorded for it.

    `mirrors` are the static pods as the API shows them, by node and component, `objects` the workloads of the addons,
    and `kubelets` what kubelets say that they run with, by node.
    """
    comparison = _Comparison.of(snapshot)
    nodes = []
    for node in snapshot.nodes:
        subjects = (
            *comparison.pods(node, mirrors.get(node.name, {})),
            *comparison.kubelet(node, kubelets.get(node.name)),
        )
        if subjects:
            differences = tuple(told_of_kubelets(compare_all(subjects)))
            nodes.append(ComparedNode(node=node.name, subjects=subjects, differences=differences))
    shared = tuple(comparison.objects(objects))
    return ClusterDrift(
        nodes=tuple(nodes), objects=ComparedNode(node="", subjects=shared, differences=compare_all(shared))
    )


def drift_of_files(snapshot: ClusterSnapshot) -> ClusterDrift:
    """Compare the files that a snapshot has seen, and nothing else."""
    return cluster_drift(snapshot, {}, {})


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What nodes are compared with: the stored configuration, rendered for each of them."""

    snapshot: ClusterSnapshot
    configuration: StoredConfiguration
    rendering: ClusterRendering

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "_Comparison":
        configuration = read_configuration(snapshot)
        sets = {
            digest: {path: text.encode() for path, text in files.items()}
            for digest, files in snapshot.patch_sets.items()
        }
        return cls(snapshot, configuration, ClusterRendering(configuration, snapshot, sets))

    @property
    def minor(self) -> str:
        return str(self.configuration.cluster.facts.minor)

    def pods(self, node: SnapshotNode, mirrors: Mapping[str, Json]) -> Iterator[DriftSubject]:
        for name, rendered in self.rendering.static_pods(node, "").items():
            target = self._target(name)
            declared = rendered_from(rendered.plain.document, rendered.plain.sources.of, self.minor)
            path = manifest_path(name)
            text = None if node.manifests is None else node.manifests.get(name)
            mirror = mirrors.get(name)
            running = _running(mirror, name) if isinstance(mirror, dict) else None
            if text is None and running is None and node.manifests is None:
                continue  # nobody has looked
            yield DriftSubject(
                component=name,
                where=path,
                shape=target.shape(load_schema(self.configuration.cluster.release)),
                rendered=declared,
                patched=self._patched(node, target, declared),
                on_disk=None if text is None else FoundDocument.of_file(path, text.encode()),
                running=running,
                is_missing=node.manifests is not None and text is None,
            )

    def kubelet(self, node: SnapshotNode, live: Json) -> Iterator[DriftSubject]:
        """Yield the kubelet's configuration and flags, as far as they were seen."""
        if node.kubelet_config is not None or live is not None:
            declared = declared_configuration(self.configuration, self.rendering.kubelet(node, ""))
            patched = self._patched(node, self._target(KUBELET_TARGET), declared)
            subject = configuration_subject(self.configuration, node, declared, patched, live)
            if subject is not None:
                yield subject
        flags = flags_subject(self.configuration, node)
        if flags is not None:
            yield flags

    def objects(self, live: Mapping[str, Json]) -> Iterator[DriftSubject]:
        cluster = self.configuration.cluster
        proxy, dns = live.get("kube-proxy"), live.get("coredns")
        if isinstance(proxy, dict) and proxy and not cluster.is_proxy_disabled:
            yield self._object("kubeproxydaemonset", "DaemonSet kube-system/kube-proxy", daemon_set(cluster, {}), proxy)
        if isinstance(dns, dict) and dns and not cluster.dns.disabled:
            spec = dns.get("spec")
            replicas = spec.get("replicas") if isinstance(spec, dict) else None
            rendered = deployment(cluster, replicas=replicas if isinstance(replicas, int) else DEFAULT_REPLICAS)
            yield self._object("corednsdeployment", "Deployment kube-system/coredns", rendered, dns)

    def _object(self, component: str, where: str, rendered: ClusterObject, live: dict[str, Json]) -> DriftSubject:
        schema = load_schema(self.configuration.cluster.release)
        declared = rendered_from(rendered.content, rendered.sources.of, self.minor)
        target = next((each for each in targets_of(schema.version) if each.name == component), None)
        first = next(iter(self.snapshot.control_planes), None)
        return DriftSubject(
            component=component,
            where=where,
            shape=schema.type_of("apps/v1", rendered.kind),
            rendered=declared,
            patched=self._patched(first, target, declared) if first and target else (),
            running=FoundDocument(own_part(live), where),
        )

    def _target(self, name: str) -> Target:
        return next(each for each in targets_of(self.configuration.cluster.release) if each.name == name)

    def _patched(self, node: SnapshotNode, target: Target, declared: DeclaredDocument) -> Sequence[DeclaredDocument]:
        files = self.rendering.patch_sets.get(node.patch_set, {})
        schema = load_schema(self.configuration.cluster.release)
        mine = patches_for(files, node, target, schema)
        return (patched_from(declared, mine, PatchSubject.of_target(target, schema)),) if mine else ()


def _running(mirror: Mapping[str, Json], component: str) -> FoundDocument:
    """Return a static pod as the API shows it, under the name that its manifest has: the kubelet adds the node's."""
    content = own_part(mirror)
    metadata = content["metadata"]
    assert isinstance(metadata, dict)
    return FoundDocument({**content, "metadata": {**metadata, "name": component}}, f"Pod {metadata.get('name')}")


def patches_for(files: Mapping[str, bytes], node: SnapshotNode, target: Target, schema: Schema) -> tuple[Patch, ...]:
    """Return the patches of a recorded set for a target of a node."""
    if not files:
        return ()
    role = "control-plane" if node.is_control_plane else "worker"
    listed = [PatchFile(path, f"recorded {path}", partial(bytes, data)) for path, data in sorted(files.items())]
    return read_patch_tree(listed, schema, NodeFacts(node.name, role)).for_target(target)
