"""The static pods of a control-plane node, as documents and as files."""

from collections.abc import Callable, Mapping

from garboard.documents import marshal_yaml
from garboard.manifests import api_server, etcd, manager_and_scheduler
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.objects import Patcher, RenderedFile, unpatched
from garboard.manifests.pod import StaticPod, StaticPodComponent, static_pod
from garboard.manifests.rootless import run_as_user
from garboard.model.component import LocalEtcd
from garboard.model.paths import manifest_path

# In the order in which kubeadm writes them.
CONTROL_PLANE: Mapping[str, Callable[[ControlPlaneNode], StaticPodComponent]] = {
    api_server.NAME: api_server.api_server,
    manager_and_scheduler.CONTROLLER_MANAGER: manager_and_scheduler.controller_manager,
    manager_and_scheduler.SCHEDULER: manager_and_scheduler.scheduler,
}


def control_plane_pod(name: str, node: ControlPlaneNode) -> StaticPod:
    """Render kube-apiserver, kube-controller-manager or kube-scheduler, before patches."""
    return _finished(CONTROL_PLANE[name](node), node)


def etcd_pod(node: ControlPlaneNode, initial_cluster: str = "") -> StaticPod:
    """Render the node's own etcd, before patches; `initial_cluster` names the members of the cluster that it joins."""
    local = node.cluster.etcd
    assert isinstance(local, LocalEtcd), "an external etcd has no static pod"
    return _finished(etcd.etcd(node, local, initial_cluster), node)


def static_pod_file(pod: StaticPod, patcher: Patcher = unpatched) -> RenderedFile:
    """Return the manifest as a file, patched; the pod's document may be changed in place."""
    path = manifest_path(pod.name)
    return RenderedFile(path, marshal_yaml(patcher(pod.name, pod.document), source=path).encode(), 0o600)


def _finished(component: StaticPodComponent, node: ControlPlaneNode) -> StaticPod:
    pod = static_pod(component, node)
    if node.cluster.is_rootless and node.host.rootless_ids is not None:
        run_as_user(pod.name, pod.document, node.host.rootless_ids)
    return pod
