"""The kubelet is well, has a certificate of its own, and has made its Node."""

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged
from garboard.errors import GarboardError
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.paths import ADMIN_CONF, KUBELET_CONF
from garboard.phases.gates.evidence import (
    KUBELET_LOG,
    clock_lines,
    control_plane_lines,
    dns_lines,
    gather_evidence,
    health_problem,
    kubelet_url,
    probe_safely,
    request_lines,
)
from garboard.phases.gates.view import NodeView
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.values import dataclass

_HOSTNAME_LABEL = "kubernetes.io/hostname"
_REQUESTS_AND_NODES = f"kubectl --kubeconfig {ADMIN_CONF} get csr,nodes, on a control-plane node"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletHealthy(Gate):
    """The kubelet of this machine says that it is well, where its configuration file lets it say so."""

    timeout_s: float
    config: str = CONFIG_FILE

    @property
    def name(self) -> str:
        return "a healthy kubelet"

    def describe(self) -> dict[str, Json]:
        return {"path": "/healthz", "addressFrom": self.config}

    def probe(self, view: NodeView, /) -> Probe:
        url = kubelet_url(self.config, view)
        return (lambda: probe_safely(lambda: health_problem(view.get(url), url))) if url else lambda: None

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(view, KUBELET_LOG)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRegistered(Gate):
    """The kubelet has made its Node, with the label that it gives to it a moment later."""

    node_name: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"Node {self.node_name} in the cluster"

    def describe(self) -> dict[str, Json]:
        return {"kind": "Node", "name": self.node_name}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: probe_safely(lambda: _unregistered(view.find("Node", "", self.node_name)))

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(
            view,
            _REQUESTS_AND_NODES,
            lambda: control_plane_lines(view),
            lambda: request_lines(self.node_name, view),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReady(Gate):
    """The kubelet says in its Node that it can run pods."""

    node_name: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"Node {self.node_name} to be Ready"

    def describe(self) -> dict[str, Json]:
        return {"kind": "Node", "name": self.node_name, "condition": "Ready"}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: probe_safely(lambda: _unready(view.find("Node", "", self.node_name)))

    def evidence(self, view: NodeView, /) -> Evidence:
        return gather_evidence(view, _REQUESTS_AND_NODES, lambda: control_plane_lines(view))


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletBootstrapped(Gate):
    """The kubelet has a certificate of its own, and a kubeconfig that uses it."""

    node_name: str
    timeout_s: float
    kubeconfig: str = KUBELET_CONF
    server: str = ""  # where the kubelet asks for its certificate, for the evidence

    @property
    def name(self) -> str:
        return "the kubelet's own certificate"

    def describe(self) -> dict[str, Json]:
        return {"file": self.kubeconfig}

    def probe(self, view: NodeView, /) -> Probe:
        return lambda: _without_certificate(self, view)

    def evidence(self, view: NodeView, /) -> Evidence:
        of_server = (lambda: dns_lines(self.server, view), lambda: clock_lines(self.server, view))
        return gather_evidence(
            view,
            _REQUESTS_AND_NODES,
            lambda: control_plane_lines(view),
            lambda: request_lines(self.node_name, view),
            *(of_server if self.server else ()),
        )


def _unregistered(node: dict[str, Json] | None) -> str | None:
    if node is None:
        return "there is no such Node"
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    has_label = isinstance(labels, dict) and _HOSTNAME_LABEL in labels
    return None if has_label else f"the Node has no label {_HOSTNAME_LABEL} yet"


def _unready(node: dict[str, Json] | None) -> str | None:
    if node is None:
        return "there is no such Node"
    status = node.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and each.get("type") == "Ready":
            said = str(each.get("message") or each.get("reason") or "it does not say why")
            return None if each.get("status") == "True" else said
    return "it has no condition Ready"


def _without_certificate(gate: KubeletBootstrapped, view: NodeView) -> str | None:
    data = view.read(gate.kubeconfig)
    if data is None:
        return f"there is no {gate.kubeconfig}"
    try:
        current = read_kubeconfig(data, gate.kubeconfig)
        has_certificate = bool(current.content(current.user or {}, "client-certificate", view.read))
    except GarboardError as error:
        return error.message
    return None if has_certificate else f"{gate.kubeconfig} holds no certificate"


JOURNAL_TYPES = (
    Tagged("kubelet-healthy", KubeletHealthy, "KubeletHealthy"),
    Tagged("node-registered", NodeRegistered, "NodeRegistered"),
    Tagged("node-ready", NodeReady),
    Tagged("kubelet-bootstrapped", KubeletBootstrapped, "KubeletBootstrapped"),
)
