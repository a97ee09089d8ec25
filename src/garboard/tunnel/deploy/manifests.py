"""The files of a deployment: for the control plane, for the nodes, and for the API."""

from collections.abc import Mapping
from typing import Final

from garboard.documents import Json, write_yaml
from garboard.manifests.tunnel_agent import (
    agent_container,
    agent_pod,
    agent_unit,
    health_probe,
    host_path,
    mount,
    tunnel_container,
    tunnel_pod,
    with_link,
)
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from garboard.tunnel.deploy.plan import AUDIENCE, EGRESS_FILE, SOCKET_FOLDER, Authentication, Deployment
from garboard.tunnel.server.tenants import Mode

SERVER_USER: Final = "system:konnectivity-server"
_RBAC: Final = "rbac.authorization.k8s.io"
_RBAC_VERSION: Final = f"{_RBAC}/v1"


def deployment_files(deployment: Deployment) -> dict[str, str]:
    """Every file by its path in the folder that `tunnel manifests` writes."""
    files: dict[str, str] = {
        "control-plane/manifests/konnectivity-server.yaml": write_yaml(server_pod(deployment)),
        "control-plane/egress-selector.yaml": write_yaml(egress_selector(deployment)),
        "control-plane/kubeadm.yaml": write_yaml(cluster_configuration(deployment)),
        "cluster/rbac.yaml": "---\n".join(write_yaml(each) for each in rbac_objects()),
    }
    if deployment.authentication is Authentication.TOKEN:
        files["cluster/konnectivity-agent.yaml"] = write_yaml(agent_daemon_set(deployment))
    else:
        files["node/manifests/konnectivity-agent.yaml"] = write_yaml(agent_pod(deployment.agent))
        files["node/konnectivity-agent.service"] = agent_unit(deployment.agent)
    return files


def server_pod(deployment: Deployment) -> dict[str, Json]:
    """The static pod of the server, beside the API server that uses its socket."""
    container = tunnel_container("konnectivity-server", deployment.image, "server", deployment.server_flags())
    container["livenessProbe"] = health_probe(deployment.health_port)
    container["volumeMounts"] = [
        mount("pki", deployment.pki_folder, read_only=True),
        mount("socket", SOCKET_FOLDER, read_only=False),
        *_server_kubeconfig_mounts(deployment),
    ]
    volumes: list[Json] = [
        host_path("pki", deployment.pki_folder, "Directory"),
        host_path("socket", SOCKET_FOLDER, "DirectoryOrCreate"),
        *_server_kubeconfig_volumes(deployment),
    ]
    pod = tunnel_pod("konnectivity-server", [container], volumes, priority="system-cluster-critical")
    # Pods of a control-plane node are led to the same address, where the API server itself answers them.
    return with_link(pod, deployment.agent)


def agent_daemon_set(deployment: Deployment) -> dict[str, Json]:
    """Agents with tokens: pods of the cluster, for the direction to the nodes only."""
    container = agent_container(deployment.agent)
    token: dict[str, Json] = {"path": "konnectivity-agent-token", "audience": AUDIENCE}
    container["volumeMounts"] = [
        mount("ca", deployment.pki_folder, read_only=True),
        mount("token", "/var/run/secrets/tokens", read_only=True),
    ]
    spec: dict[str, Json] = {
        "serviceAccountName": "konnectivity-agent",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [
            {"name": "ca", "configMap": {"name": "konnectivity-ca"}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}},
        ],
    }
    labels: dict[str, Json] = {"k8s-app": "konnectivity-agent"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "konnectivity-agent", "namespace": "kube-system", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def egress_selector(deployment: Deployment) -> dict[str, Json]:
    """What the API server sends through the tunnel: everything that is for the cluster."""
    protocol = "GRPC" if deployment.mode is Mode.GRPC else "HTTPConnect"
    transport: dict[str, Json] = {"uds": {"udsName": deployment.socket}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "cluster", "connection": {"proxyProtocol": protocol, "transport": transport}},
        ],
    }


def cluster_configuration(deployment: Deployment) -> dict[str, Json]:
    """What the ClusterConfiguration must say of the API server."""
    arguments: list[Json] = [{"name": "egress-selector-config-file", "value": EGRESS_FILE}]
    api_server: dict[str, Json] = {"extraArgs": arguments}
    if deployment.bind_address is not None:
        # Pods find the API server where the default Service leads, and that is what the API server says of itself.
        arguments += [
            {"name": "advertise-address", "value": str(deployment.bind_address)},
            {"name": "secure-port", "value": str(deployment.local_port)},
        ]
        api_server["certSANs"] = [str(deployment.bind_address)]
    folder: dict[str, Json] = {
        "name": "konnectivity-server", "hostPath": SOCKET_FOLDER, "mountPath": SOCKET_FOLDER,
        "pathType": "DirectoryOrCreate",
    }  # fmt: skip
    api_server["extraVolumes"] = [folder]
    return {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "apiServer": api_server}


def bootstrap_kubeconfig(deployment: Deployment, ca: bytes, token: str) -> bytes:
    """The kubelet's first kubeconfig: it knows the API server by the address that every node has."""
    return Kubeconfig(
        cluster_name="kubernetes",
        server=deployment.agent.api_url,
        user_name="tls-bootstrap-token-user",
        ca=ca,
        credential=BearerToken(token),
    ).to_bytes()


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


_SERVER_KUBECONFIG: Final[Mapping[str, str]] = {"kubeconfig": "/etc/kubernetes/konnectivity-server.conf"}


def _server_kubeconfig_mounts(deployment: Deployment) -> list[Json]:
    if deployment.authentication is Authentication.CERTIFICATE:
        return []
    return [mount(name, path, read_only=True) for name, path in _SERVER_KUBECONFIG.items()]


def _server_kubeconfig_volumes(deployment: Deployment) -> list[Json]:
    if deployment.authentication is Authentication.CERTIFICATE:
        return []
    return [host_path(name, path, "File") for name, path in _SERVER_KUBECONFIG.items()]


def _lease_role(name: str, verbs: list[Json]) -> dict[str, Json]:
    rule: dict[str, Json] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
    return {
        "apiVersion": _RBAC_VERSION,
        "kind": "Role",
        "metadata": {"name": name, "namespace": "kube-system"},
        "rules": [rule],
    }


def _binding(kind: str, name: str, role_kind: str, role: str, subject: dict[str, Json]) -> dict[str, Json]:
    metadata: dict[str, Json] = {"name": name}
    if kind == "RoleBinding":
        metadata["namespace"] = "kube-system"
    return {
        "apiVersion": _RBAC_VERSION,
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": role_kind, "name": role},
        "subjects": [subject],
    }
