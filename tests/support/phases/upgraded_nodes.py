"""A node of a cluster that is upgraded, in memory: its files are as kubeadm of the former version leaves them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from garboard.config import Loaded
from garboard.documents import Json, marshal_yaml
from garboard.manifests import ControlPlaneNode, NodeHost
from garboard.manifests.coredns import deployment
from garboard.manifests.kube_proxy import daemon_set
from garboard.manifests.kubelet import CONFIG_FILE, config_file
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.model.cluster import etcd_image, kubernetes_image
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.model.paths import manifest_path
from garboard.patches import PatchFile
from garboard.phases.patching import NodePatches
from garboard.phases.upgrade.cluster import ClusterNode, UpgradedCluster
from garboard.phases.upgrade.context import UpgradeContext, UpgradeOptions
from tests.support.phases.machines import CONFIG, NOW, MemoryMachine, load

FORMER, TARGET = "v1.36.4", "v1.37.1"
HOST = NodeHost(hostname="node-1")


@dataclass
class MemoryObjects:
    """Objects of a cluster by kind and name."""

    objects: dict[tuple[str, str], dict[str, Json]] = field(default_factory=dict)

    def find(self, kind: str, _namespace: str, name: str) -> dict[str, Json] | None:
        return self.objects.get((kind, name))

    def labelled(self, kind: str, _namespace: str, _selector: str) -> Sequence[dict[str, Json]]:
        return [each for (of, _), each in self.objects.items() if of == kind]

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]:
        return self.labelled(kind, "", "")


def loaded(text: str = "", *, version: str = FORMER) -> Loaded[InitConfiguration]:
    """Return the configuration of a cluster; `text` is added to its ClusterConfiguration."""
    return load(CONFIG.replace("v1.37.1", version) + text)


def manifests_of(context: Loaded[InitConfiguration], patches: NodePatches | None = None) -> dict[str, bytes]:
    """Return the static pods that a node of the configuration has, with patches."""
    node = ControlPlaneNode.of_init(context.config, HOST)
    pods = [control_plane_pod(name, node) for name in CONTROL_PLANE]
    if isinstance(context.config.cluster.etcd, LocalEtcd):
        pods.append(etcd_pod(node))
    run = (patches or NodePatches()).begin(context.config.cluster.release)
    return {pod.name: static_pod_file(pod, run).content for pod in pods}


def upgraded_node(
    text: str = "",
    *,
    target: str = TARGET,
    patches: NodePatches | None = None,
    others: Sequence[str] = (),
    is_first: bool = True,
) -> UpgradeContext:
    """Return a control-plane node that was made with a configuration, and patches that were given then and now."""
    found = loaded(text)
    init = found.config
    cluster = replace(init.cluster, kubernetes_version=target)
    run = (patches or NodePatches()).begin(init.cluster.release)
    kubelet = found.components.kubelet.printed(init.cluster.facts)
    file = config_file(kubelet, init.cluster, init.node_registration, HOST, run)
    machine = MemoryMachine({CONFIG_FILE: file.content})
    manifests = manifests_of(found, patches)
    machine.files |= {manifest_path(name): data for name, data in manifests.items()}
    image = kubernetes_image(init.cluster, "kube-apiserver")
    theirs = etcd_image(init.cluster if is_first else cluster)  # `apply` has been there
    return UpgradeContext(
        node_registration=init.node_registration,
        machine=machine,
        host=HOST,
        now=NOW,
        config_kind="UpgradeConfiguration",
        cluster=cluster,
        local_api_endpoint=init.local_api_endpoint,
        components=found.components,
        patches=patches or NodePatches(node_name="node-1", role="control-plane"),
        objects=_addons(found),
        upgraded=UpgradedCluster(
            former=init.cluster,
            target=cluster,
            components=found.components,
            nodes=(ClusterNode("node-1", True, True, init.cluster.release),),
            api_servers=dict.fromkeys(("node-1", *others), image),
            etcds={"node-1": etcd_image(init.cluster), **dict.fromkeys(others, theirs)},
        ),
        options=UpgradeOptions(is_first=is_first),
        manifests=manifests,
    )


def _addons(found: Loaded[InitConfiguration]) -> MemoryObjects:
    contents = (deployment(found.config.cluster).content, daemon_set(found.config.cluster, {}).content)
    return MemoryObjects({(str(each["kind"]), str(_metadata(each)["name"])): each for each in contents})


def _metadata(content: dict[str, Json]) -> dict[str, Json]:
    found = content["metadata"]
    assert isinstance(found, dict)
    return found


def with_manifest(context: UpgradeContext, component: str, data: bytes) -> UpgradeContext:
    """Return the node with another manifest of a component."""
    assert isinstance(context.machine, MemoryMachine)
    context.machine.files[manifest_path(component)] = data
    return replace(context, manifests={**context.manifests, component: data})


def edited(context: UpgradeContext, component: str, old: str, new: str) -> UpgradeContext:
    """Return the node after somebody has edited a manifest."""
    text = context.manifests[component].decode()
    assert old in text
    return with_manifest(context, component, text.replace(old, new).encode())


def patch_files(**texts: str) -> NodePatches:
    """Return patches by file name, in which two underscores stand for a plus and the end is .yaml."""
    files = [
        PatchFile(f"{name.replace('__', '+').replace('_', '-')}.yaml", name, partial(bytes, text.encode()))
        for name, text in texts.items()
    ]
    return NodePatches(lambda: files, node_name="node-1", role="control-plane")


def yaml(document: Json) -> bytes:
    return marshal_yaml(document, source="").encode()


def kubelet_conf(server: str) -> bytes:
    """Return the kubeconfig of a kubelet that uses an API server."""
    context: dict[str, Json] = {"cluster": "kubernetes", "user": "system:node:node-1"}
    credential = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    user: dict[str, Json] = {"client-certificate": credential, "client-key": credential}
    document: dict[str, Json] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": {"certificate-authority-data": "Y2E=", "server": server}}],
        "contexts": [{"name": "default", "context": context}],
        "current-context": "default",
        "users": [{"name": "system:node:node-1", "user": user}],
    }
    return yaml(document)
