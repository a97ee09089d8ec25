"""Where each kind of object lives below the root of the API."""

from urllib.parse import quote

from garboard.errors import GarboardError
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """The path of an API group and version, and the word for the kind in it."""

    root: str
    plural: str
    is_namespaced: bool = True

    def collection(self, namespace: str) -> str:
        """Return the path of all objects of the kind, in one namespace if they live in namespaces."""
        place = f"/namespaces/{quote(namespace, safe='')}" if self.is_namespaced else ""
        return f"{self.root}{place}/{self.plural}"

    @property
    def everywhere(self) -> str:
        """The path of all objects of the kind, of every namespace."""
        return f"{self.root}/{self.plural}"

    def object(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{quote(name, safe='')}"


_CORE, _APPS, _RBAC = "/api/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1"
_CERTIFICATES, _COORDINATION = "/apis/certificates.k8s.io/v1", "/apis/coordination.k8s.io/v1"
_RESOURCES = {
    "ConfigMap": Resource(_CORE, "configmaps"),
    "Secret": Resource(_CORE, "secrets"),
    "ServiceAccount": Resource(_CORE, "serviceaccounts"),
    "Service": Resource(_CORE, "services"),
    "Node": Resource(_CORE, "nodes", is_namespaced=False),
    "Pod": Resource(_CORE, "pods"),
    "Lease": Resource(_COORDINATION, "leases"),
    "CertificateSigningRequest": Resource(_CERTIFICATES, "certificatesigningrequests", is_namespaced=False),
    "Deployment": Resource(_APPS, "deployments"),
    "DaemonSet": Resource(_APPS, "daemonsets"),
    "Role": Resource(_RBAC, "roles"),
    "RoleBinding": Resource(_RBAC, "rolebindings"),
    "ClusterRole": Resource(_RBAC, "clusterroles", is_namespaced=False),
    "ClusterRoleBinding": Resource(_RBAC, "clusterrolebindings", is_namespaced=False),
}


def resource(kind: str) -> Resource:
    """Return where a kind lives; others than those above are never put."""
    found = _RESOURCES.get(kind)
    if found is None:
        raise GarboardError(f"objects of kind {kind} are not known here", error_class="unsupported-kind")
    return found
