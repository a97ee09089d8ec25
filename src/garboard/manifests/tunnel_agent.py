"""The agent of the tunnel on a node, as a unit of systemd or as a static pod; and what pods of the tunnel share."""

import re
from collections.abc import Mapping, Sequence

from garboard.documents import Json
from garboard.errors import InvalidValue
from garboard.manifests.timers import UNIT_FOLDER
from garboard.model.addresses import IpAddress, join_host_port
from garboard.model.image import GARBOARD_IMAGE
from garboard.model.paths import manifest_path
from garboard.model.tunnel import (
    AGENT,
    AGENT_CERTIFICATE,
    AGENT_KEY,
    CA_FILE,
    DEFAULT_AGENT_PORT,
    DEFAULT_API_SERVER,
    DEFAULT_LINK,
    TUNNEL_PKI_DIR,
)
from garboard.values import dataclass

UNIT_FILE, MANIFEST = f"{UNIT_FOLDER}/{AGENT}.service", manifest_path(AGENT)
# By these, reset knows what join has written.
UNIT_HEAD = "Written by garboard join, and removed by garboard undo and garboard reset."
POD_ANNOTATIONS = {"garboard.dev/written-by": "join"}
INSTALLED_PROGRAM = "/usr/local/bin/garboard"
_HEALTH_PORT = 8093
_LIMITS: dict[str, Json] = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}
# Words of which neither systemd nor a shell makes something else; `&` is between the identifiers of an agent.
_UNIT_WORD = re.compile(r"[A-Za-z0-9_./=:,&\[\]-]+")
_UNIT = """\
{head}[Unit]
Description=Konnectivity agent
Documentation=https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/
Wants=network-online.target
After=network-online.target
Before=kubelet.service

[Service]
{before}ExecStart={command} --drain-timeout=10s
Restart=always
RestartSec=1
TimeoutStopSec=20
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelAgent:
    """The agent of a node. With a `bind_address` the node reaches the API server through it, too."""

    server_host: str
    server_port: int = DEFAULT_AGENT_PORT
    has_certificate: bool = True  # else it shows a token of its service account
    image: str = GARBOARD_IMAGE
    pki_folder: str = TUNNEL_PKI_DIR
    bind_address: IpAddress | None = None
    local_port: int = 6443
    api_server: str = DEFAULT_API_SERVER  # as the server reaches it
    link: str = DEFAULT_LINK
    agent_id: str = ""
    identifiers: str = ""  # what this agent leads to: host=NAME&ipv4=ADDRESS

    @property
    def api_url(self) -> str:
        """Where the node and its pods find the API server; only with a bind address."""
        assert self.bind_address is not None
        return f"https://{join_host_port(str(self.bind_address), self.local_port)}"

    def flags(self) -> list[str]:
        """Return the command line of the agent, behind `garboard tunnel agent`."""
        flags = [
            f"--proxy-server-host={self.server_host}",
            f"--proxy-server-port={self.server_port}",
            f"--ca-cert={self.pki_folder}/{CA_FILE}",
            "--keepalive-time=1m",
        ]
        if self.has_certificate:
            flags += [
                f"--agent-cert={self.pki_folder}/{AGENT_CERTIFICATE}",
                f"--agent-key={self.pki_folder}/{AGENT_KEY}",
            ]
        else:
            flags.append("--service-account-token-path=/var/run/secrets/tokens/konnectivity-agent-token")
        if self.bind_address:
            flags += [f"--bind-address={self.bind_address}", f"--target={self.local_port}:{self.api_server}"]
        named = {"agent-id": self.agent_id, "agent-identifiers": self.identifiers}
        return flags + [f"--{name}={value}" for name, value in named.items() if value]

    def link_flags(self) -> list[str]:
        """Return the command line that gives the node its address, behind `garboard tunnel link`."""
        return [f"--address={self.bind_address}", f"--name={self.link}"]


def agent_unit(agent: TunnelAgent, *, program: str = INSTALLED_PROGRAM, head: str = "") -> str:
    """Return the agent as a unit of systemd, there before the kubelet needs an API server; `head` is a comment."""
    link = _command(program, "tunnel", "link", *agent.link_flags())
    return _UNIT.format(
        head=f"# {head}\n" if head else "",
        before=f"ExecStartPre={link}\n" if agent.bind_address is not None else "",
        command=_command(program, "tunnel", "agent", *agent.flags()),
    )


def is_written_by_join(content: bytes) -> bool:
    """Say whether join has written this unit file or manifest of an agent."""
    return any(mark.encode() in content for mark in (f"# {UNIT_HEAD}", *POD_ANNOTATIONS))


def _command(*words: str) -> str:
    bad = next((each for each in words if not _UNIT_WORD.fullmatch(each)), None)
    if bad is not None:
        raise InvalidValue(
            f"{bad!r} cannot be in the command of a unit file",
            hint="use letters, digits and _ . / = : , & [ ] - alone",
        )
    return " ".join(words)


def agent_pod(agent: TunnelAgent, *, annotations: Mapping[str, str] | None = None) -> dict[str, Json]:
    """Return the static pod of the agent, which a kubelet runs before it has seen an API server."""
    volumes = [host_path("pki", agent.pki_folder, "Directory")]
    pod = tunnel_pod(AGENT, [agent_container(agent)], volumes, priority="system-node-critical")
    if annotations:
        metadata = pod["metadata"]
        assert isinstance(metadata, dict)
        pod["metadata"] = {**metadata, "annotations": {**annotations}}
    return with_link(pod, agent)


def agent_container(agent: TunnelAgent) -> dict[str, Json]:
    container = tunnel_container(AGENT, agent.image, "agent", agent.flags())
    container["livenessProbe"] = health_probe(_HEALTH_PORT)
    container["volumeMounts"] = [mount("pki", agent.pki_folder, read_only=True)]
    return container


def with_link(pod: dict[str, Json], agent: TunnelAgent) -> dict[str, Json]:
    """Return the pod, after an init container that gives the node its address."""
    if agent.bind_address is None:
        return pod
    link = tunnel_container("link", agent.image, "link", agent.link_flags())
    link["securityContext"] = {"capabilities": {"add": ["NET_ADMIN"]}}
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return {**pod, "spec": {**spec, "initContainers": [link]}}


def tunnel_container(name: str, image: str, command: str, flags: Sequence[str]) -> dict[str, Json]:
    arguments: list[Json] = ["tunnel", command, *flags]
    return {
        "name": name, "image": image, "imagePullPolicy": "IfNotPresent", "args": arguments,
        "resources": _LIMITS,
    }  # fmt: skip


def tunnel_pod(name: str, containers: Sequence[Json], volumes: Sequence[Json], *, priority: str) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {"k8s-app": name}},
        "spec": {
            "hostNetwork": True,
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 20,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [*containers],
            "volumes": [*volumes],
        },
    }


def health_probe(port: int) -> dict[str, Json]:
    get: dict[str, Json] = {"host": "127.0.0.1", "path": "/healthz", "port": port, "scheme": "HTTP"}
    return {"httpGet": get, "initialDelaySeconds": 15, "timeoutSeconds": 15}


def mount(name: str, path: str, *, read_only: bool) -> dict[str, Json]:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def host_path(name: str, path: str, kind: str) -> dict[str, Json]:
    place: dict[str, Json] = {"path": path, "type": kind}
    return {"name": name, "hostPath": place}
