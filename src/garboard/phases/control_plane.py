"""What init and join do alike to a new control-plane node: wait until it answers, and mark it for what it is."""

from collections.abc import Iterator, Sequence

from garboard.documents import Json
from garboard.engine import AwaitGate, PatchObject, Step
from garboard.model.node import Taint, Timeouts
from garboard.phases.waiting import KubeletHealthy, NodeRegistered, control_plane_gates

_LABELS = ("node-role.kubernetes.io/control-plane", "node.kubernetes.io/exclude-from-external-load-balancers")
_TAINTS = ("spec", "taints")


def wait_for_kubelet(timeouts: Timeouts) -> Iterator[Step]:
    """Plan to wait until the kubelet is well."""
    gate = KubeletHealthy(timeout_s=timeouts.kubelet_health_check.seconds)
    yield Step(AwaitGate(gate=gate), "it starts the control plane")


def wait_for_control_plane(timeouts: Timeouts) -> Iterator[Step]:
    """Plan to wait until every component of this node's control plane is well."""
    for gate in control_plane_gates(timeouts):
        yield Step(AwaitGate(gate=gate), "what comes next talks to it")


def mark_control_plane(node_name: str, taints: Sequence[Taint], timeouts: Timeouts) -> Iterator[Step]:
    """Plan to label and taint the Node, once its kubelet has made it; taints that others have set stay."""
    gate = NodeRegistered(node_name=node_name, timeout_s=timeouts.kubernetes_api_call.seconds)
    yield Step(AwaitGate(gate=gate), "its labels and taints are set")
    labels: dict[str, Json] = dict.fromkeys(_LABELS, "")
    content: dict[str, Json] = {"metadata": {"labels": labels}}
    if taints:
        content["spec"] = {"taints": [_document(each) for each in taints]}
    patch = PatchObject(
        api_version="v1", kind="Node", name=node_name, content=content, united=(_TAINTS,) if taints else ()
    )
    yield Step(patch, "it is a control-plane node")


def _document(taint: Taint) -> dict[str, Json]:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {name: value for name, value in fields.items() if value}
