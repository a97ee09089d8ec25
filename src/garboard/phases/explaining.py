"""Where each field of what init renders comes from: a default, a line of the configuration, or a line of a patch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from garboard.config import Loaded
from garboard.config.sources import ConfigSource
from garboard.documents import DocumentPath, Json, locate, read_yaml
from garboard.errors import BadUsage
from garboard.manifests import ConfigField, ControlPlaneNode, NodeHost, Source
from garboard.manifests.coredns import deployment
from garboard.manifests.kube_proxy import daemon_set
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET
from garboard.manifests.kubelet import config_source
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod
from garboard.model import KubernetesVersion
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.patches import Origin, OriginKind, Origins, Patch, PatchSet, PatchType, Target, patch_object, patch_target
from garboard.patches import Source as PatchSource
from garboard.patches.taking import copy_of
from garboard.schema import Schema


@dataclass(frozen=True)
class RenderedBase:
    """A document that was rendered from a configuration; knows what decided each of its values."""

    value: Json
    decided_by: Callable[[DocumentPath], Source | None]
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


@dataclass(frozen=True)
class Explanation:
    """One target of one node, rendered and patched with every write noted."""

    loaded: Loaded[InitConfiguration]
    host: NodeHost
    target: Target
    patches: PatchSet
    schema: Schema

    @cached_property
    def origins(self) -> Origins:
        base = self._base()
        mine = self.patches.for_target(self.target)
        document = copy_of(base.value)
        if self.target.name != KUBELET:
            applied = patch_target(document, mine, self.target, self.schema, is_watched=True)
        else:
            own = self._instance_patch()
            applied = patch_object(document, [*mine, *own], self.target.shape(self.schema), is_watched=True)
        return Origins(applied, base)

    def _base(self) -> RenderedBase:
        config, release = self.loaded.config, self.loaded.config.cluster.release
        value, decided_by = self._rendered(ControlPlaneNode.of_init(config, self.host))
        return RenderedBase(copy_of(value), decided_by, self.loaded.sources, release)

    def _rendered(self, node: ControlPlaneNode) -> tuple[Json, Callable[[DocumentPath], Source | None]]:
        if self.target.name in CONTROL_PLANE:
            pod = control_plane_pod(self.target.name, node)
            return pod.document, pod.sources.of
        if self.target.name == "etcd":
            if not isinstance(node.cluster.etcd, LocalEtcd):
                raise BadUsage("the configuration names an external etcd, so none is rendered")
            pod = etcd_pod(node)
            return pod.document, pod.sources.of
        if self.target.name == KUBELET:
            return self._kubelet()
        if self.target.kind == "Deployment":
            rendered = deployment(node.cluster)
        else:
            rendered = daemon_set(node.cluster, self.host.environment)
        return rendered.content, rendered.sources.of

    def _kubelet(self) -> tuple[Json, Callable[[DocumentPath], Source | None]]:
        cluster = self.loaded.config.cluster
        written = self.loaded.sources.get("KubeletConfiguration")
        given = read_yaml(written.text, source=written.file) if written else {}
        members = given if isinstance(given, dict) else {}
        document: Json = self.loaded.components.kubelet.printed(cluster.facts)
        return document, lambda path: config_source(path, members, "InitConfiguration")

    def _instance_patch(self) -> tuple[Patch, ...]:
        """Return what the node puts over the user's patches: its own container runtime."""
        config = self.loaded.config
        if not config.cluster.has_instance_config:
            return ()
        value: Json = {"containerRuntimeEndpoint": config.node_registration.cri_socket}
        text = f"containerRuntimeEndpoint: {config.node_registration.cri_socket}\n"
        return (Patch(PatchSource("instance-config.yaml", text), PatchType.STRATEGIC, value),)
