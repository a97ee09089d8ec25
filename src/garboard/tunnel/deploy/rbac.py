"""What the tunnel's programs may ask of the API server."""

from typing import Final

from garboard.documents import Json

SERVER_USER: Final = "system:konnectivity-server"
_RBAC: Final = "rbac.authorization.k8s.io"
_VERSION: Final = f"{_RBAC}/v1"


def rbac_objects() -> tuple[dict[str, Json], ...]:
    """The server reviews tokens and keeps leases, agents read the leases."""
    agent: dict[str, Json] = {"kind": "ServiceAccount", "name": "konnectivity-agent", "namespace": "kube-system"}
    server: dict[str, Json] = {"apiGroup": _RBAC, "kind": "User", "name": SERVER_USER}
    return (
        _binding("ClusterRoleBinding", SERVER_USER, "ClusterRole", "system:auth-delegator", server),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "konnectivity-agent", "namespace": "kube-system"},
        },
        _lease_role("system:konnectivity-server", ["get", "create", "update", "list", "delete"]),
        _binding("RoleBinding", "system:konnectivity-server", "Role", "system:konnectivity-server", server),
        _lease_role("system:konnectivity-agent", ["get", "list", "watch"]),
        _binding("RoleBinding", "system:konnectivity-agent", "Role", "system:konnectivity-agent", agent),
    )


def _lease_role(name: str, verbs: list[Json]) -> dict[str, Json]:
    rule: dict[str, Json] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
    return {
        "apiVersion": _VERSION,
        "kind": "Role",
        "metadata": {"name": name, "namespace": "kube-system"},
        "rules": [rule],
    }


def _binding(kind: str, name: str, role_kind: str, role: str, subject: dict[str, Json]) -> dict[str, Json]:
    metadata: dict[str, Json] = {"name": name}
    if kind == "RoleBinding":
        metadata["namespace"] = "kube-system"
    return {
        "apiVersion": _VERSION,
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": role_kind, "name": role},
        "subjects": [subject],
    }
