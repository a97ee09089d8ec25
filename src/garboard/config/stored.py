"""The configurations that a cluster keeps in its ConfigMaps, read back."""

from dataclasses import replace

from garboard.config.cluster_document import cluster_from_document
from garboard.config.component_configs import KUBELET_KIND, ComponentConfig, ComponentConfigs, default_components
from garboard.config.host_facts import HostFacts
from garboard.config.load import ConfigFile, Loaded
from garboard.config.members import Members
from garboard.config.problems import Notes
from garboard.config.reading import ReadOptions, in_current_shape, verify
from garboard.config.sources import read_documents
from garboard.errors import BadDocument
from garboard.model.cluster import ClusterConfiguration
from garboard.model.node import ApiEndpoint

_STORED = ReadOptions(allows_deprecated=True, allows_experimental=True)


def load_stored_cluster(
    data: bytes | str, host: HostFacts, *, name: str = "ConfigMap kubeadm-config"
) -> Loaded[ClusterConfiguration]:
    """Load what is stored: any API version that the minor knows, and gates that it does not know, without a word."""
    file = ConfigFile.read(data, file=name, host=host, options=_STORED)
    notes = Notes()
    for document in file.documents:
        if document.gvk.kind != "ClusterConfiguration":
            continue
        try:
            tree = in_current_shape(document, verify(document, file.version.facts, _STORED, notes))
        except BadDocument as error:
            raise BadDocument(
                f"failed to decode cluster configuration data: {error.message}", hint=error.hint
            ) from error
        cluster = replace(cluster_from_document(Members(tree)), kubernetes_version=file.version.text)
        return Loaded(config=cluster, warnings=tuple(notes.warnings), sources={document.gvk.kind: document.source})
    raise BadDocument(f"{name} holds no ClusterConfiguration")


def load_stored_kubelet(
    data: bytes | str, cluster: ClusterConfiguration, *, name: str = "ConfigMap kubelet-config"
) -> ComponentConfig:
    """Load the configuration that all kubelets of a cluster share, with what it leaves open filled in again."""
    for document in read_documents(data, file=name):
        if document.gvk.kind == KUBELET_KIND:
            tree = verify(document, cluster.facts, _STORED, Notes()) or {}
            given = ComponentConfig(KUBELET_KIND, {key: tree[key] for key in tree if key not in ("apiVersion", "kind")})
            # Whether values are the recommended ones was told when they were stored.
            filled = default_components(ComponentConfigs(given), cluster, ApiEndpoint(), cluster.facts, Notes())
            return filled.kubelet
    raise BadDocument(f"{name} holds no {KUBELET_KIND}")
