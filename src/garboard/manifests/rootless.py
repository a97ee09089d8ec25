"""RootlessControlPlane: pods that run as users of their own, and who must own which file for that."""

from collections.abc import Iterator
from dataclasses import dataclass

from garboard.documents import Json
from garboard.manifests.node import ControlPlaneNode, RootlessIds
from garboard.manifests.paths import CONTROLLER_MANAGER_CONF, SCHEDULER_CONF
from garboard.model.component import LocalEtcd
from garboard.model.go_paths import join_path

KEY_READERS = "kubeadm-sa-key-readers"
USERS = {
    "etcd": "kubeadm-etcd",
    "kube-apiserver": "kubeadm-kas",
    "kube-controller-manager": "kubeadm-kcm",
    "kube-scheduler": "kubeadm-ks",
}
_READS_ACCOUNT_KEY = ("kube-apiserver", "kube-controller-manager")
_OWN_KEYS = {
    "etcd": ("etcd/server.key", "etcd/peer.key"),
    "kube-apiserver": ("sa.pub", "apiserver.key", "apiserver-kubelet-client.key", "front-proxy-client.key"),
}
_OWN_KUBECONFIG = {"kube-controller-manager": CONTROLLER_MANAGER_CONF, "kube-scheduler": SCHEDULER_CONF}


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who a path must belong to; without a mode, everything below it too and no mode is changed."""

    path: str
    uid: int
    gid: int
    mode: int | None


def run_as_user(component: str, document: dict[str, Json], ids: RootlessIds) -> None:
    """Change a static pod so that it runs without root."""
    spec = document["spec"]
    assert isinstance(spec, dict)
    assert isinstance(spec["containers"], list)
    container, context = spec["containers"][0], spec["securityContext"]
    assert isinstance(container, dict)
    assert isinstance(context, dict)
    context["runAsUser"] = ids.users[USERS[component]]
    context["runAsGroup"] = ids.groups[USERS[component]]
    if component in _READS_ACCOUNT_KEY:
        context["supplementalGroups"] = [ids.groups[KEY_READERS]]
    container["securityContext"] = _container_context(component)


def _container_context(component: str) -> Json:
    if component == "kube-apiserver":
        # The file capability of its binary makes the kernel refuse to start it without this one.
        return {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def ownerships(component: str, node: ControlPlaneNode, ids: RootlessIds) -> Iterator[Ownership]:
    """Yield what must change hands before the component can run as its user."""
    folder, etcd = node.cluster.certificates_dir, node.cluster.etcd
    uid, gid = ids.users[USERS[component]], ids.groups[USERS[component]]
    if component == "etcd" and isinstance(etcd, LocalEtcd):
        yield Ownership(etcd.data_dir, uid, gid, None)
    for name in _OWN_KEYS.get(component, ()):
        yield Ownership(join_path(folder, name), uid, gid, 0o600)
    if component in _READS_ACCOUNT_KEY:
        yield Ownership(join_path(folder, "sa.key"), 0, ids.groups[KEY_READERS], 0o640)
    if component == "kube-apiserver" and isinstance(etcd, LocalEtcd):
        yield Ownership(join_path(folder, "apiserver-etcd-client.key"), uid, gid, 0o600)
    if component == "kube-controller-manager" and not node.host.is_external_ca:
        yield Ownership(join_path(folder, "ca.key"), uid, gid, 0o600)
    if component in _OWN_KUBECONFIG:
        yield Ownership(_OWN_KUBECONFIG[component], uid, gid, 0o600)
