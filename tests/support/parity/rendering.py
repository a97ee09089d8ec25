"""The same configuration through our functions: what each phase would write, or why it would not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from garboard.config.dynamic_defaults import FixedFacts
from garboard.config.load import ConfigFile, Loaded
from garboard.config.reading import ReadOptions
from garboard.errors import GarboardError
from garboard.host import list_tree
from garboard.manifests import ControlPlaneNode, NodeHost, Patcher, RenderedFile, RootlessIds, unpatched
from garboard.manifests.kubelet import kubelet_files
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.patches import PatchFile
from garboard.phases.patching import NodePatches
from tests.support.parity.node_run import Configuration
from tools.harness.machine import ADDRESS, ADDRESS_V6, HOSTNAME, TOKEN, FileState, Machine

FACTS = FixedFacts(host=HOSTNAME, address=ADDRESS, address_v6=ADDRESS_V6)


@dataclass
class Rendered:
    """What our side makes of a configuration: files, and the phases that fail."""

    failures: dict[str, GarboardError] = field(default_factory=dict)
    files: dict[str, FileState] = field(default_factory=dict)

    def take(self, phase: str, files: Iterable[RenderedFile]) -> None:
        """Take what a phase writes until it fails."""
        try:
            for each in files:
                self.files[each.path] = FileState(each.mode, each.content)
        except GarboardError as error:
            self.failures[phase] = error


def load(configuration: Configuration, version: str, token: str = TOKEN) -> Loaded[InitConfiguration]:
    """Load a configuration as on the machine that kubeadm ran on; `token` is what a draw would give."""
    text, host = configuration.text(version), replace(FACTS, token=token)
    return ConfigFile.read(text, file=configuration.path.name, host=host, options=ReadOptions(detects_cri=False)).init()


def host_of(
    configuration: Configuration,
    machine: Machine,
    *,
    rootless_ids: RootlessIds | None = None,
    is_external_ca: bool = False,
) -> NodeHost:
    return NodeHost(
        hostname=HOSTNAME,
        ca_directories=frozenset(path for path in EXTRA_CA_DIRECTORIES if machine.has(path)),
        environment=configuration.environment,
        is_systemd_resolved_active="systemd-resolved" in configuration.headers,
        is_external_ca=is_external_ca,
        rootless_ids=rootless_ids,
    )


def patcher_of(folder: Path | None, init: InitConfiguration) -> Patcher:
    if folder is None or not init.patches_directory:
        return unpatched
    files = [PatchFile(path, path, (folder / path).read_bytes) for path in list_tree(folder)]
    return NodePatches(lambda: files).begin(init.cluster.release)


def render_node(loaded: Loaded[InitConfiguration], host: NodeHost, patches: Path | None) -> Rendered:
    """Render what the phases of NODE_PHASES write."""
    rendered = Rendered()
    patcher = patcher_of(patches, loaded.config)
    node = ControlPlaneNode.of_init(loaded.config, host)
    if isinstance(node.cluster.etcd, LocalEtcd):
        rendered.take("etcd local", (static_pod_file(pod, patcher) for pod in (etcd_pod(node),)))
    rendered.take("control-plane all", _control_plane(node, patcher))
    rendered.take("kubelet-start", _kubelet(loaded, host, patcher))
    return rendered


def _control_plane(node: ControlPlaneNode, patcher: Patcher) -> Iterator[RenderedFile]:
    for name in CONTROL_PLANE:
        yield static_pod_file(control_plane_pod(name, node), patcher)


def _kubelet(loaded: Loaded[InitConfiguration], host: NodeHost, patcher: Patcher) -> Iterator[RenderedFile]:
    cluster = loaded.config.cluster
    yield from kubelet_files(
        loaded.components.kubelet.printed(cluster.facts),
        cluster,
        loaded.config.node_registration,
        host,
        kind="InitConfiguration",
        registers_taints=False,
        patcher=patcher,
    )
