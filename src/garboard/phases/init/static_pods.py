"""`init phase etcd` and `init phase control-plane`: the manifests of the static pods."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from garboard.engine import ChangeOwner, MakeFolder, Note, Outcome, Step, WriteFile
from garboard.manifests import ControlPlaneNode, RenderedFile
from garboard.manifests.api_server import NAME as API_SERVER
from garboard.manifests.api_server import authorization_warnings
from garboard.manifests.pod import StaticPod
from garboard.manifests.rootless import Ownership, ownerships
from garboard.manifests.rootless_users import plan_users
from garboard.manifests.static_pods import control_plane_pod, etcd_pod, static_pod_file
from garboard.model.component import LocalEtcd
from garboard.phases.init.context import InitContext

_ETCD_DATA_MODE = 0o700
_PASSWD, _GROUP, _LOGIN_DEFS = "/etc/passwd", "/etc/group", "/etc/login.defs"


def plan_etcd(context: InitContext) -> Iterator[Step | Note]:
    """Plan the data folder and the manifest of the node's own etcd; an external one is somebody else's."""
    local = context.config.cluster.etcd
    if not isinstance(local, LocalEtcd):
        yield Note("External etcd mode. Skipping the creation of a manifest for local etcd")
        return
    yield from plan_etcd_folder(context, local)
    yield from plan_etcd_pod(context)


def plan_etcd_folder(context: InitContext, local: LocalEtcd) -> Iterator[Step]:
    if not context.machine.has_folder(local.data_dir):
        yield Step(MakeFolder(path=local.data_dir, mode=_ETCD_DATA_MODE), "there is no such folder")


def plan_etcd_pod(
    context: InitContext, initial_cluster: str = "", outcomes: tuple[Outcome, ...] = ()
) -> Iterator[Step | Note]:
    """Plan the manifest of etcd; a member that joins others names them, or what stands for them until it knows them."""
    users, node = _with_users(context)
    yield from users
    yield from _plan_pod(context, node, etcd_pod(node, initial_cluster), outcomes)


def plan_component(name: str) -> Callable[[InitContext], Iterator[Step | Note]]:
    """Return how the manifest of kube-apiserver, kube-controller-manager or kube-scheduler is planned."""

    def plan(context: InitContext) -> Iterator[Step | Note]:
        users, node = _with_users(context)
        yield from users
        if name == API_SERVER:
            yield from (Note(text, is_warning=True) for text in authorization_warnings(node))
        yield from _plan_pod(context, node, control_plane_pod(name, node))

    return plan


def _with_users(context: InitContext) -> tuple[tuple[Step | Note, ...], ControlPlaneNode]:
    """Return the node, and the steps that make the users its pods run as, where they do not run as root."""
    if not context.config.cluster.is_rootless:
        return (), ControlPlaneNode.of_init(context.config, context.host)
    texts = {path: context.machine.read(path) or b"" for path in (_PASSWD, _GROUP, _LOGIN_DEFS)}
    planned = plan_users(*(text.decode("utf-8", "surrogateescape") for text in texts.values()))
    files = (
        RenderedFile(path, text.encode("utf-8", "surrogateescape"), 0o644)
        for path, text in ((_PASSWD, planned.passwd), (_GROUP, planned.group))
        # What an earlier phase of the same plan writes, it writes for all of them.
        if text.encode("utf-8", "surrogateescape") != texts[path] and path not in context.planned
    )
    host = replace(context.host, rootless_ids=planned.ids)
    return tuple(context.writes(files)), ControlPlaneNode.of_init(context.config, host)


def _plan_pod(
    context: InitContext, node: ControlPlaneNode, pod: StaticPod, outcomes: tuple[Outcome, ...] = ()
) -> Iterator[Step | Note]:
    if node.host.rootless_ids is not None:
        for each in ownerships(pod.name, node, node.host.rootless_ids):
            yield from _plan_owner(context, each)
    patches = context.patches.begin(context.config.cluster.release)
    file = static_pod_file(pod, patches)
    yield from patches.notes()
    for write in context.writes(iter((file,))):
        if outcomes and isinstance(write, Step) and isinstance(write.action, WriteFile):
            yield replace(write, action=replace(write.action, outcomes=outcomes))
        else:
            yield write


def _plan_owner(context: InitContext, wanted: Ownership) -> Iterator[Step]:
    found = context.machine.owner(wanted.path)
    if found is not None and found[:2] == (wanted.uid, wanted.gid) and wanted.mode in (None, found[2]):
        return
    action = ChangeOwner(path=wanted.path, uid=wanted.uid, gid=wanted.gid, mode=wanted.mode)
    yield Step(action, "its pod does not run as root")
