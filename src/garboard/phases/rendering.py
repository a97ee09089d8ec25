"""The documents of one node that patches may change, rendered from its configuration and not yet patched.

Of each field it can be said where it comes from: a default, a line of the configuration, or a line of a patch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from garboard.config import Loaded
from garboard.config.sources import ConfigSource
from garboard.documents import DocumentPath, Json, locate, read_yaml
from garboard.errors import BadUsage
from garboard.manifests import ConfigField, ControlPlaneNode, NodeHost, ValueSource
from garboard.manifests.coredns import deployment
from garboard.manifests.kube_proxy import daemon_set
from garboard.manifests.kubelet import CONFIG_FILE, config_source, with_resolv_conf
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod
from garboard.model import KubernetesVersion
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.model.paths import manifest_path
from garboard.patches import (
    Origin,
    OriginKind,
    Origins,
    Patch,
    PatchChecks,
    PatchSet,
    PatchSubject,
    Target,
    apply_patches,
    copy_of,
    instance_patch,
    targets_of,
)
from garboard.schema import Schema

DecidedBy = Callable[[DocumentPath], ValueSource | None]


@dataclass(frozen=True)
class RenderedTarget:
    """A target as a node would have it without patches, and what decided each of its values."""

    target: Target
    document: Json
    decided_by: DecidedBy
    node_patches: tuple[Patch, ...] = ()  # what kubeadm applies after the user's patches

    def subject(self, schema: Schema) -> PatchSubject:
        return PatchSubject.of_target(self.target, schema, self.node_patches)

    @property
    def path(self) -> str | None:
        return path_of(self.target)


def path_of(target: Target) -> str | None:
    """Return where a node keeps a target, unless it is an object of the cluster."""
    if target.name == KUBELET:
        return CONFIG_FILE
    return manifest_path(target.name) if target.kind == "Pod" else None


@dataclass(frozen=True)
class NodeRendering:
    """Renders the targets of a node: all of them for a control plane, the kubelet's configuration for a worker."""

    loaded: Loaded[InitConfiguration]
    host: NodeHost
    schema: Schema
    role: str = "control-plane"

    def everything(self) -> tuple[RenderedTarget, ...]:
        """Render every target that a node of this role has."""
        has_etcd = isinstance(self.loaded.config.cluster.etcd, LocalEtcd)
        names = {target.name for target in targets_of(self.schema.version)} - (set() if has_etcd else {"etcd"})
        if self.role == "worker":
            names &= {KUBELET}
        return tuple(self.one(target) for target in targets_of(self.schema.version) if target.name in names)

    def one(self, target: Target) -> RenderedTarget:
        if self.role == "worker" and target.name != KUBELET:
            raise BadUsage(f"a worker has no {target.name}", hint="leave --role out, or write --role control-plane")
        document, decided_by = self._rendered(target, ControlPlaneNode.of_init(self.loaded.config, self.host))
        return RenderedTarget(target, copy_of(document), decided_by, self._node_patches(target))

    def _rendered(self, target: Target, node: ControlPlaneNode) -> tuple[Json, DecidedBy]:
        if target.name in CONTROL_PLANE:
            pod = control_plane_pod(target.name, node)
            return pod.document, pod.sources.of
        if target.name == "etcd":
            if not isinstance(node.cluster.etcd, LocalEtcd):
                raise BadUsage("the configuration names an external etcd, so none is rendered")
            pod = etcd_pod(node)
            return pod.document, pod.sources.of
        if target.name == KUBELET:
            return self._kubelet()
        rendered = (
            deployment(node.cluster) if target.kind == "Deployment" else daemon_set(node.cluster, self.host.environment)
        )
        return rendered.content, rendered.sources.of

    def _kubelet(self) -> tuple[Json, DecidedBy]:
        cluster = self.loaded.config.cluster
        written = self.loaded.sources.get("KubeletConfiguration")
        given = read_yaml(written.text, source=written.file) if written else {}
        members = given if isinstance(given, dict) else {}
        document: Json = with_resolv_conf(self.loaded.components.kubelet.printed(cluster.facts), self.host)
        return document, lambda path: config_source(path, members, "InitConfiguration")

    def _node_patches(self, target: Target) -> tuple[Patch, ...]:
        """Return what kubeadm applies after the user's patches: the container runtime endpoint of the node."""
        config = self.loaded.config
        is_patched = target.name == KUBELET and config.cluster.has_instance_config
        return (instance_patch(config.node_registration.cri_socket),) if is_patched else ()


@dataclass(frozen=True)
class RenderedBase:
    """A document that was rendered from a configuration; knows what decided each of its values."""

    value: Json
    decided_by: Callable[[DocumentPath], ValueSource | None]
    documents: Mapping[str, ConfigSource]
    release: KubernetesVersion

    def origin(self, at: DocumentPath) -> Origin:
        source = self.decided_by(at)
        if source is None:
            return Origin(OriginKind.DEFAULT, detail=f"the default of Kubernetes {self.release}")
        if not isinstance(source, ConfigField):
            return Origin(OriginKind.HOST, detail=str(source))
        document = self.documents.get(source.kind)
        if document is not None:
            positions = locate(document.text, line=document.line)
            position = positions.key(source.path) or positions.value(source.path)
            if position is not None:
                return Origin(OriginKind.CONFIG, document.file, position, f"{source.kind} {source}")
        return Origin(OriginKind.DEFAULT, detail=f"the default of {source.kind} {source} in Kubernetes {self.release}")


def explained(
    rendered: RenderedTarget, patches: PatchSet, loaded: Loaded[InitConfiguration], schema: Schema
) -> Origins:
    """Patch a rendered target with every write recorded, and return where each of its fields comes from."""
    base = RenderedBase(rendered.document, rendered.decided_by, loaded.sources, loaded.config.cluster.release)
    applied = apply_patches(
        copy_of(base.value),
        patches.for_target(rendered.target),
        rendered.subject(schema),
        is_traced=True,
        checks=PatchChecks(schema),
    )
    return Origins(applied, base)
