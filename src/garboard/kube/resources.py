"""The API paths of kinds: from a table of kinds, or from the API server's discovery."""

from urllib.parse import quote

from garboard.documents import Json
from garboard.errors import InvalidValue
from garboard.kube.errors import ObjectMissing
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A reference to an object; `namespace` is empty for a cluster-scoped one, `name` for one that is only answered.

    `api_version` may be left out for the kinds of the table below.
    """

    kind: str
    namespace: str
    name: str
    api_version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of an API group and version, and its plural name in paths."""

    kind: str
    api_version: str
    plural: str
    is_namespaced: bool = True

    def collection(self, namespace: str = "") -> str:
        """Return the path of all objects of the kind, in one namespace if that is given and they live in namespaces."""
        place = f"/namespaces/{quote(namespace, safe='')}" if self.is_namespaced and namespace else ""
        return f"{group_path(self.api_version)}{place}/{self.plural}"

    def object(self, namespace: str, name: str, subresource: str = "") -> str:
        """Return the path of one object, or of a subresource of it, such as its `status`."""
        path = f"{self.collection(namespace)}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


def group_path(api_version: str) -> str:
    """Return the path of an API group and version; that of the core group has no group in it."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


_RBAC = "rbac.authorization.k8s.io/v1"
_BUILT_IN = (
    Resource("ConfigMap", "v1", "configmaps"),
    Resource("Secret", "v1", "secrets"),
    Resource("ServiceAccount", "v1", "serviceaccounts"),
    Resource("Service", "v1", "services"),
    Resource("Namespace", "v1", "namespaces", is_namespaced=False),
    Resource("Event", "v1", "events"),
    Resource("Node", "v1", "nodes", is_namespaced=False),
    Resource("Pod", "v1", "pods"),
    Resource("Lease", "coordination.k8s.io/v1", "leases"),
    Resource("TokenReview", "authentication.k8s.io/v1", "tokenreviews", is_namespaced=False),
    Resource("SubjectAccessReview", "authorization.k8s.io/v1", "subjectaccessreviews", is_namespaced=False),
    Resource("CertificateSigningRequest", "certificates.k8s.io/v1", "certificatesigningrequests", is_namespaced=False),
    Resource("Deployment", "apps/v1", "deployments"),
    Resource("DaemonSet", "apps/v1", "daemonsets"),
    Resource(
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        is_namespaced=False,
    ),
    Resource(
        "ValidatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        is_namespaced=False,
    ),
    Resource("Job", "batch/v1", "jobs"),
    Resource("ServiceCIDR", "networking.k8s.io/v1", "servicecidrs", is_namespaced=False),
    Resource("Role", _RBAC, "roles"),
    Resource("RoleBinding", _RBAC, "rolebindings"),
    Resource("ClusterRole", _RBAC, "clusterroles", is_namespaced=False),
    Resource("ClusterRoleBinding", _RBAC, "clusterrolebindings", is_namespaced=False),
    Resource("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions", is_namespaced=False),
)
_BY_KIND = {each.kind: each for each in _BUILT_IN}


class KnownResources:
    """The resources that a client knows: those of the table, and those that it has learnt from discovery."""

    def __init__(self) -> None:
        self._learnt: dict[tuple[str, str], Resource] = {}

    def find(self, kind: str, api_version: str = "") -> Resource | None:
        built_in = _BY_KIND.get(kind)
        if built_in is not None and api_version in ("", built_in.api_version):
            return built_in
        return self._learnt.get((api_version, kind))

    def learn(self, api_version: str, answer: dict[str, Json]) -> None:
        """Add what discovery lists for an API group and version."""
        self._learnt |= {(api_version, each.kind): each for each in read_resources(api_version, answer)}

    def require(self, kind: str, api_version: str = "") -> Resource:
        """Return the resource of a kind; raise if it is neither in the table nor learnt."""
        found = self.find(kind, api_version)
        if found is not None:
            return found
        if not api_version:
            raise InvalidValue(f"objects of kind {kind} are not known here", error_class="unsupported-kind")
        raise ObjectMissing(
            f"the API server has no kind {kind} in {api_version}", hint="install its CustomResourceDefinition first"
        )


def read_resources(api_version: str, answer: dict[str, Json]) -> tuple[Resource, ...]:
    """Return the resources of an APIResourceList, without the subresources that it lists beside them."""
    listed = answer.get("resources")
    entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return tuple(
        Resource(str(each.get("kind")), api_version, str(each.get("name")), each.get("namespaced") is True)
        for each in entries
        if "/" not in str(each.get("name"))
    )
