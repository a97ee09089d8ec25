"""On a control plane: objects that a provisioner wants applied, and which nodes are Ready."""

from garboard.documents import Json
from garboard.errors import BadDocument, ClusterUnreachable, GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient, ObjectMissing, ObjectRef, PatchFormat
from garboard.model.paths import ADMIN_CONF
from garboard.node.interpreters.objects import NodeCluster
from garboard.retry import Pauses, retry

_MANAGER = "garboard-fleet"
# A kind is known a moment after its CustomResourceDefinition has been applied.
_KIND_WITHIN_S = 60.0
_PAUSES = Pauses(0.5, 5.0, growth=2.0)


def apply_addons(machine: NodeMachine, addons: Json) -> int:
    """Apply objects in their order, by server-side apply; return how many they are."""
    if not isinstance(addons, list):
        raise BadDocument("addons are a list of objects", error_class="bad-answer")
    client = NodeCluster(machine, ADMIN_CONF, "").writer
    for each in addons:
        retry(
            lambda content=each: _apply(client, content),  # type: ignore[misc]  # bound at once
            timeout_s=_KIND_WITHIN_S,
            pauses=_PAUSES,
            is_passing=_is_passing,
        )
    return len(addons)


def ready_nodes(machine: NodeMachine) -> dict[str, Json]:
    """Return the nodes of the cluster, and whether each is Ready."""
    found = NodeCluster(machine, ADMIN_CONF, "").list_all("Node")
    return {str(_member(each, "metadata").get("name")): _is_ready(each) for each in found}


def _apply(client: KubeClient, content: Json) -> None:
    document = content if isinstance(content, dict) else {}
    metadata = _member(document, "metadata")
    kind, version, name = str(document.get("kind")), str(document.get("apiVersion")), str(metadata.get("name"))
    resource = client.resource(kind, version)
    namespace = str(metadata.get("namespace") or "default") if resource.is_namespaced else ""
    ref = ObjectRef(kind, namespace, name, version)
    client.patch(ref, content, PatchFormat.APPLY, manager=_MANAGER, forces=True)


def _is_passing(error: GarboardError) -> bool:
    return isinstance(error, ObjectMissing | ClusterUnreachable)


def _member(document: Json, name: str) -> dict[str, Json]:
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _is_ready(node: Json) -> bool:
    conditions = _member(node, "status").get("conditions")
    return any(
        isinstance(each, dict) and each.get("type") == "Ready" and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else [])
    )
