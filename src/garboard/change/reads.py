"""What is read of a cluster through its API server: one table, from which both the requests and the rights follow."""

from collections.abc import Iterable, Iterator

from garboard.documents import Json
from garboard.manifests.objects import KUBE_PUBLIC, KUBE_SYSTEM, RBAC_API, RBAC_GROUP
from garboard.values import dataclass

READER = "garboard:change-reader"


@dataclass(frozen=True, slots=True)
class Read:
    """One object by its name, or all objects of a kind; `group` and `resource` are what a role calls the kind."""

    kind: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def verb(self) -> str:
        return "get" if self.name or "/" in self.resource else "list"

    def __str__(self) -> str:
        """Say which right the read needs, as `kubectl auth can-i` takes it."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f"{resource}/{self.name}" if self.name else resource
        place = f"-n {self.namespace}" if self.namespace else "--all-namespaces"
        return f"{self.verb} {named} {place}"


def _config_map(name: str, namespace: str = KUBE_SYSTEM) -> Read:
    return Read("ConfigMap", "configmaps", namespace=namespace, name=name)


CLUSTER_CONFIG = _config_map("kubeadm-config")
KUBELET_CONFIG = _config_map("kubelet-config")
PROXY_CONFIG = _config_map("kube-proxy")
PATCH_RECORD = _config_map("garboard-patches")
COREFILE = _config_map("coredns")
CLUSTER_INFO = _config_map("cluster-info", KUBE_PUBLIC)
NODES = Read("Node", "nodes")
PODS = Read("Pod", "pods")
SERVICES = Read("Service", "services")
SERVICE_RANGES = Read("ServiceCIDR", "servicecidrs", "networking.k8s.io")
PROXY = Read("DaemonSet", "daemonsets", "apps", KUBE_SYSTEM, "kube-proxy")
DNS = Read("Deployment", "deployments", "apps", KUBE_SYSTEM, "coredns")
# With it a user reads whatever kubelets show, such as logs, and may reach their exec: nobody has to have it.
KUBELETS = Read("Node", "nodes/proxy")
LEASES = Read("Lease", "leases", "coordination.k8s.io", KUBE_SYSTEM)

# Twelve requests, unless a list has more than a page.
PLAN_READS = (
    CLUSTER_CONFIG, KUBELET_CONFIG, PROXY_CONFIG, PATCH_RECORD, COREFILE, CLUSTER_INFO,
    NODES, PODS, SERVICES, SERVICE_RANGES, PROXY, DNS,
)  # fmt: skip
ADOPT_READS = (*PLAN_READS, LEASES)


def rights(reads: Iterable[Read], *, users: Iterable[str] = (), groups: Iterable[str] = ()) -> tuple[Json, ...]:
    """Return the roles with which the reads are allowed, and their bindings to users and groups, if any are named."""
    places: dict[str, list[Read]] = {}
    for each in reads:
        places.setdefault(each.namespace, []).append(each)
    subjects: list[Json] = [
        {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}
        for kind, names in (("User", users), ("Group", groups))
        for name in names
    ]
    roles = [_role(namespace, found) for namespace, found in sorted(places.items())]
    return (*roles, *(_binding(namespace, subjects) for namespace in sorted(places) if subjects))


def _role(namespace: str, reads: Iterable[Read]) -> Json:
    return {
        "apiVersion": RBAC_API,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": _metadata(namespace),
        "rules": list(_rules(reads)),
    }


def _rules(reads: Iterable[Read]) -> Iterator[Json]:
    """Yield a rule for each kind: of what is read by name, only that."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for each in reads:
        kinds.setdefault((each.group, each.resource, each.verb), []).append(each.name)
    for (group, resource, verb), names in kinds.items():
        rule: dict[str, Json] = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        yield {**rule, "resourceNames": [*names]} if all(names) else rule


def _binding(namespace: str, subjects: list[Json]) -> Json:
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": RBAC_API,
        "kind": f"{kind}Binding",
        "metadata": _metadata(namespace),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": READER},
        "subjects": subjects,
    }


def _metadata(namespace: str) -> Json:
    return {"name": READER, "namespace": namespace} if namespace else {"name": READER}
