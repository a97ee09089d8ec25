"""The files of a deployment: for the control plane, for the nodes, and for the API."""

from collections.abc import Mapping
from typing import Final

from garboard.documents import Json, write_yaml
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from garboard.tunnel.deploy.plan import AUDIENCE, EGRESS_FILE, SOCKET_FOLDER, Authentication, Deployment
from garboard.tunnel.deploy.rbac import rbac_objects
from garboard.tunnel.server.tenants import Mode

_AGENT_HEALTH_PORT: Final = 8093
_LIMITS: Final[dict[str, Json]] = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}


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
        files["node/manifests/konnectivity-agent.yaml"] = write_yaml(agent_pod(deployment))
        files["node/konnectivity-agent.service"] = agent_unit(deployment)
    return files


def server_pod(deployment: Deployment) -> dict[str, Json]:
    """The static pod of the server, beside the API server that uses its socket."""
    container = _container(deployment, "konnectivity-server", "server", deployment.server_flags())
    container["livenessProbe"] = _probe(deployment.health_port)
    container["volumeMounts"] = [
        _mount("pki", deployment.pki_folder, read_only=True),
        _mount("socket", SOCKET_FOLDER, read_only=False),
        *_server_kubeconfig_mounts(deployment),
    ]
    volumes: list[Json] = [
        _host_path("pki", deployment.pki_folder, "Directory"),
        _host_path("socket", SOCKET_FOLDER, "DirectoryOrCreate"),
        *_server_kubeconfig_volumes(deployment),
    ]
    pod = _pod("konnectivity-server", [container], volumes, priority="system-cluster-critical")
    # Pods of a control-plane node are led to the same address, where the API server itself answers them.
    return _with_link(pod, deployment)


def agent_pod(deployment: Deployment) -> dict[str, Json]:
    """The static pod of the agent, which a kubelet runs before it has seen an API server."""
    pod = _pod(
        "konnectivity-agent",
        [_agent_container(deployment)],
        [_host_path("pki", deployment.pki_folder, "Directory")],
        priority="system-node-critical",
    )
    return _with_link(pod, deployment)


def _with_link(pod: dict[str, Json], deployment: Deployment) -> dict[str, Json]:
    """The pod, after an init container that gives the node its address."""
    if deployment.bind_address is None:
        return pod
    link = _container(deployment, "link", "link", deployment.link_flags())
    link["securityContext"] = {"capabilities": {"add": ["NET_ADMIN"]}}
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return {**pod, "spec": {**spec, "initContainers": [link]}}


def agent_daemon_set(deployment: Deployment) -> dict[str, Json]:
    """Agents with tokens: pods of the cluster, for the direction to the nodes only."""
    container = _agent_container(deployment)
    token: dict[str, Json] = {"path": "konnectivity-agent-token", "audience": AUDIENCE}
    container["volumeMounts"] = [
        _mount("ca", deployment.pki_folder, read_only=True),
        _mount("token", "/var/run/secrets/tokens", read_only=True),
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


def agent_unit(deployment: Deployment) -> str:
    """The agent as a unit of systemd, there before the kubelet needs an API server."""
    before = f"ExecStartPre=/usr/local/bin/garboard tunnel link {' '.join(deployment.link_flags())}\n"
    return (
        "[Unit]\n"
        "Description=Konnectivity agent\n"
        "Documentation=https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/\n"
        "Wants=network-online.target\n"
        "After=network-online.target\n"
        "Before=kubelet.service\n"
        "\n"
        "[Service]\n"
        f"{before if deployment.bind_address is not None else ''}"
        f"ExecStart=/usr/local/bin/garboard tunnel agent {' '.join(deployment.agent_flags())} --drain-timeout=10s\n"
        "Restart=always\n"
        "RestartSec=1\n"
        "TimeoutStopSec=20\n"
        "\n"
        "[Install]\n"
        "WantedBy=multi-user.target\n"
    )


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
    """What kubeadm, or garboard, has to be told of the API server."""
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
        server=deployment.api_url,
        user_name="tls-bootstrap-token-user",
        ca=ca,
        credential=BearerToken(token),
    ).to_bytes()


def _agent_container(deployment: Deployment) -> dict[str, Json]:
    container = _container(deployment, "konnectivity-agent", "agent", deployment.agent_flags())
    container["livenessProbe"] = _probe(_AGENT_HEALTH_PORT)
    container["volumeMounts"] = [_mount("pki", deployment.pki_folder, read_only=True)]
    return container


def _container(deployment: Deployment, name: str, command: str, flags: list[str]) -> dict[str, Json]:
    arguments: list[Json] = ["tunnel", command, *flags]
    return {
        "name": name, "image": deployment.image, "imagePullPolicy": "IfNotPresent", "args": arguments,
        "resources": _LIMITS,
    }  # fmt: skip


def _pod(name: str, containers: list[Json], volumes: list[Json], *, priority: str) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {"k8s-app": name}},
        "spec": {
            "hostNetwork": True,
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 20,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": containers,
            "volumes": volumes,
        },
    }


def _probe(port: int) -> dict[str, Json]:
    get: dict[str, Json] = {"host": "127.0.0.1", "path": "/healthz", "port": port, "scheme": "HTTP"}
    return {"httpGet": get, "initialDelaySeconds": 15, "timeoutSeconds": 15}


def _mount(name: str, path: str, *, read_only: bool) -> dict[str, Json]:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def _host_path(name: str, path: str, kind: str) -> dict[str, Json]:
    place: dict[str, Json] = {"path": path, "type": kind}
    return {"name": name, "hostPath": place}


_SERVER_KUBECONFIG: Final[Mapping[str, str]] = {"kubeconfig": "/etc/kubernetes/konnectivity-server.conf"}


def _server_kubeconfig_mounts(deployment: Deployment) -> list[Json]:
    if deployment.authentication is Authentication.CERTIFICATE:
        return []
    return [_mount(name, path, read_only=True) for name, path in _SERVER_KUBECONFIG.items()]


def _server_kubeconfig_volumes(deployment: Deployment) -> list[Json]:
    if deployment.authentication is Authentication.CERTIFICATE:
        return []
    return [_host_path(name, path, "File") for name, path in _SERVER_KUBECONFIG.items()]
