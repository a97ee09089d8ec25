"""The static pods of a control-plane node: their manifests, the users that they run as, and waiting for them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from garboard.engine import AwaitGate, ChangeOwner, MakeFolder, Note, OutcomePlaceholder, Step, WriteFile
from garboard.manifests import ControlPlaneNode, NodeHost, RenderedFile
from garboard.manifests.api_server import NAME as API_SERVER
from garboard.manifests.api_server import authorization_warnings
from garboard.manifests.etcd import CLIENT_PORT, PEER_PORT
from garboard.manifests.pod import StaticPod
from garboard.manifests.rootless import Ownership, ownerships, plan_users
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.model.addresses import join_host_port
from garboard.model.component import LocalEtcd
from garboard.phases.gates import control_plane_gates
from garboard.phases.node.context import NodeContext

EXTERNAL_ETCD = "External etcd mode. Skipping the creation of a manifest for local etcd"
_ETCD_DATA_MODE = 0o700
_PASSWD, _GROUP, _LOGIN_DEFS = "/etc/passwd", "/etc/group", "/etc/login.defs"


def plan_etcd(context: NodeContext) -> Iterator[Step | Note]:
    """Plan the data folder and the manifest of the node's own etcd; an external one is not ours to make."""
    local = context.cluster.etcd
    if not isinstance(local, LocalEtcd):
        yield Note(EXTERNAL_ETCD)
        return
    yield from plan_etcd_folder(context, local)
    yield from plan_etcd_pod(context)


def plan_etcd_folder(context: NodeContext, local: LocalEtcd) -> Iterator[Step]:
    if not context.machine.has_folder(local.data_dir):
        yield Step(MakeFolder(path=local.data_dir, mode=_ETCD_DATA_MODE), "there is no such folder")


def plan_etcd_pod(
    context: NodeContext, initial_cluster: str = "", outcomes: tuple[OutcomePlaceholder, ...] = ()
) -> Iterator[Step | Note]:
    """Plan the manifest of etcd.

    A member that joins others names them in `initial_cluster`: by a placeholder, which `outcomes` fill, until it has
    been added and knows them.
    """
    users, node = _with_users(context)
    yield from users
    yield from _plan_pod(context, node, etcd_pod(node, initial_cluster), outcomes)


def etcd_client_url(context: NodeContext) -> str:
    """Return where the member of this node serves its clients."""
    return f"https://{join_host_port(context.local_api_endpoint.advertise_address, CLIENT_PORT)}"


def etcd_peer_url(context: NodeContext) -> str:
    """Return where the other members reach the member of this node."""
    return f"https://{join_host_port(context.local_api_endpoint.advertise_address, PEER_PORT)}"


def plan_component(name: str) -> Callable[[NodeContext], Iterator[Step | Note]]:
    """Return how the manifest of kube-apiserver, kube-controller-manager or kube-scheduler is planned."""

    def plan(context: NodeContext) -> Iterator[Step | Note]:
        users, node = _with_users(context)
        yield from users
        if name == API_SERVER:
            yield from (Note(text, is_warning=True) for text in authorization_warnings(node))
        yield from _plan_pod(context, node, control_plane_pod(name, node))

    return plan


def plan_components(context: NodeContext) -> Iterator[Step | Note]:
    """Plan the manifests of all three components."""
    for name in CONTROL_PLANE:
        yield from plan_component(name)(context)


def wait_for_control_plane(context: NodeContext) -> Iterator[Step]:
    """Plan to wait until every component of this node's control plane is healthy."""
    for gate in control_plane_gates(context.timeouts):
        yield Step(AwaitGate(gate=gate), "what comes next talks to it")


def _with_users(context: NodeContext) -> tuple[tuple[Step | Note, ...], ControlPlaneNode]:
    """Return the steps that make the users of the pods, where they do not run as root, and the node."""
    if not context.cluster.is_rootless:
        return (), _node(context, context.host)
    texts = {path: context.machine.read(path) or b"" for path in (_PASSWD, _GROUP, _LOGIN_DEFS)}
    planned = plan_users(*(text.decode("utf-8", "surrogateescape") for text in texts.values()))
    files = (
        RenderedFile(path, text.encode("utf-8", "surrogateescape"), 0o644)
        for path, text in ((_PASSWD, planned.passwd), (_GROUP, planned.group))
        # What an earlier phase of the same plan writes, it writes for all of them.
        if text.encode("utf-8", "surrogateescape") != texts[path] and path not in context.planned
    )
    return tuple(context.writes(files)), _node(context, replace(context.host, rootless_ids=planned.ids))


def _node(context: NodeContext, host: NodeHost) -> ControlPlaneNode:
    return ControlPlaneNode(
        cluster=context.cluster,
        name=context.node_name,
        endpoint=context.local_api_endpoint,
        host=host,
        health_check_timeout=context.timeouts.control_plane_component_health_check,
        kind=context.config_kind,
    )


def _plan_pod(
    context: NodeContext, node: ControlPlaneNode, pod: StaticPod, outcomes: tuple[OutcomePlaceholder, ...] = ()
) -> Iterator[Step | Note]:
    if node.host.rootless_ids is not None:
        for each in ownerships(pod.name, node, node.host.rootless_ids):
            yield from _plan_owner(context, each)
    patches = context.patches.begin(context.cluster.release)
    file = static_pod_file(pod, patches)
    yield from patches.notes()
    for write in context.writes(iter((file,))):
        if outcomes and isinstance(write, Step) and isinstance(write.action, WriteFile):
            yield replace(write, action=replace(write.action, outcomes=outcomes))
        else:
            yield write


def _plan_owner(context: NodeContext, wanted: Ownership) -> Iterator[Step]:
    found = context.machine.owner(wanted.path)
    if found is not None and found[:2] == (wanted.uid, wanted.gid) and wanted.mode in (None, found[2]):
        return
    action = ChangeOwner(path=wanted.path, uid=wanted.uid, gid=wanted.gid, mode=wanted.mode)
    yield Step(action, "its pod does not run as root")
