"""The static pods of a control-plane node, as documents and as files."""

from collections.abc import Callable, Mapping

from garboard.documents import marshal_yaml
from garboard.manifests import api_server, etcd, manager_and_scheduler
from garboard.manifests.files import RenderedFile
from garboard.manifests.node import ControlPlaneNode
from garboard.manifests.patching import Patcher, unpatched
from garboard.manifests.paths import manifest_path
from garboard.manifests.pod import Component, StaticPod, static_pod
from garboard.manifests.rootless import run_as_user
from garboard.manifests.sources import Source
from garboard.model.component import LocalEtcd

# In the order in which kubeadm writes them.
CONTROL_PLANE: Mapping[str, Callable[[ControlPlaneNode], Component]] = {
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
    assert isinstance(local, LocalEtcd), "an external etcd is somebody else's"
    return _finished(etcd.etcd(node, local, initial_cluster), node)


def static_pod_file(pod: StaticPod, patcher: Patcher = unpatched) -> RenderedFile:
    """Return the manifest as a file, patched; the pod's document is taken over."""
    path = manifest_path(pod.name)
    return RenderedFile(path, marshal_yaml(patcher(pod.name, pod.document), source=path).encode(), 0o600)


def flag_source(pod: StaticPod, flag: str) -> Source | None:
    """Return what decides a flag (`--profiling` or `profiling`): a field, a fact of the machine, or nothing.

    Nothing means a default, the minor's or the component's own. Of a flag that stands there several times the last
    counts, as it does for the component.
    """
    found = [each for each in pod.arguments if each.name == flag.removeprefix("--")]
    return found[-1].source if found else None


def _finished(component: Component, node: ControlPlaneNode) -> StaticPod:
    pod = static_pod(component, node)
    if node.cluster.is_rootless and node.host.rootless_ids is not None:
        run_as_user(pod.name, pod.document, node.host.rootless_ids)
    return pod
