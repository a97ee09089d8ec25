"""One row of the attribute table, and the words that rows are written with."""

from garboard.values import dataclass

CLUSTER, KUBELET, KUBE_PROXY = "ClusterConfiguration", "KubeletConfiguration", "KubeProxyConfiguration"
STORED_KINDS = (CLUSTER, KUBELET, KUBE_PROXY)
INIT, JOIN = "InitConfiguration", "JoinConfiguration"

ALL_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRow:
    """One field, or all below it.

    `components` are what is rendered from it: static pods by name, `kubelet`, `kube-proxy` (its configuration),
    `kube-proxy-workload`, `coredns`, `dns-service`, `cluster-info`, `certs/NAME` and `kubeconfigs`. `code` is the
    verdict if nothing else is known, empty if the change is allowed; `judge` names what looks closer.
    """

    path: tuple[str, ...]
    components: tuple[str, ...] = ()
    code: str = ""
    scope: str = ""  # node, control-plane, all, objects
    why: str = ""
    route: str = ""
    follow_ups: tuple[str, ...] = ()
    judge: str = ""


def path_of(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))
