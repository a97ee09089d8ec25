"""`init phase etcd` and `init phase control-plane`: the manifests of the static pods."""

from collections.abc import Callable, Iterator

from garboard.engine import MakeFolder, Note, Step, Unsupported
from garboard.manifests import ControlPlaneNode
from garboard.manifests.api_server import NAME as API_SERVER
from garboard.manifests.api_server import authorization_warnings
from garboard.manifests.pod import StaticPod
from garboard.manifests.static_pods import control_plane_pod, etcd_pod, static_pod_file
from garboard.model.component import LocalEtcd
from garboard.phases.context import InitContext

_ETCD_DATA_MODE = 0o700


def plan_etcd(context: InitContext) -> Iterator[Step | Note]:
    """Plan the data folder and the manifest of the node's own etcd; an external one is somebody else's."""
    local = context.config.cluster.etcd
    if not isinstance(local, LocalEtcd):
        yield Note("External etcd mode. Skipping the creation of a manifest for local etcd")
        return
    if not context.machine.has_folder(local.data_dir):
        yield Step(MakeFolder(path=local.data_dir, mode=_ETCD_DATA_MODE), "there is no such folder")
    yield from _plan_pod(context, etcd_pod(_node(context)))


def plan_component(name: str) -> Callable[[InitContext], Iterator[Step | Note]]:
    """Return how the manifest of kube-apiserver, kube-controller-manager or kube-scheduler is planned."""

    def plan(context: InitContext) -> Iterator[Step | Note]:
        node = _node(context)
        if name == API_SERVER:
            yield from (Note(text, is_warning=True) for text in authorization_warnings(node))
        yield from _plan_pod(context, control_plane_pod(name, node))

    return plan


def _node(context: InitContext) -> ControlPlaneNode:
    return ControlPlaneNode.of_init(context.config, context.host)


def _plan_pod(context: InitContext, pod: StaticPod) -> Iterator[Step | Note]:
    if context.config.cluster.is_rootless:
        yield Step(Unsupported(what="users for the feature gate RootlessControlPlane"), "the gate is on")
        return
    patches = context.patches.begin(context.config.cluster.release)
    file = static_pod_file(pod, patches)
    yield from patches.notes()
    yield from context.writes(iter((file,)))
