"""What the cluster keeps of a node: labels and taints of a control plane, and what the node was patched with.

Patches are recorded where an upgrade finds them: kubeadm forgets them, and drops them without a word. A control-plane
node stores its patch set by content in one ConfigMap of ours, under its digest, and notes which set is its own. A
worker may not write there: it puts the digest on its own Node.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from posixpath import basename
from typing import Protocol

from garboard.documents import Json
from garboard.engine import AwaitGate, PatchObject, PutObject, SharedKey, Step
from garboard.errors import BadDocument, GarboardError
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.manifests.objects import KUBE_SYSTEM, NODES_GROUP, config_map, group, readable_by
from garboard.model.node import Taint
from garboard.phases.gates import NodeRegistered
from garboard.phases.node.context import NodeContext
from garboard.phases.patching import NodePatches
from garboard.values import dataclass

RECORD, ROLE = "garboard-patches", "garboard:patches"
ANNOTATION = "garboard.dev/patch-set"
MAX_BYTES = 192 * 1024  # packed; an object of etcd has room for 1.5 MiB, and several sets have to fit
_LABELS = ("node-role.kubernetes.io/control-plane", "node.kubernetes.io/exclude-from-external-load-balancers")
_TAINTS = ("spec", "taints")
_SET, _NODE = "set.", "node."
_CAUSE = "an upgrade or a change must not drop the patches"


@dataclass(frozen=True, slots=True)
class PatchSetContent:
    """The files of a patch directory by their path; equal content has an equal digest, wherever it came from."""

    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self._plain()).hexdigest()

    @property
    def is_for_workers(self) -> bool:
        """Whether anything of it is for a kubelet, which is all of a worker that can be patched."""
        return any(basename(path).startswith(KUBELET_TARGET) for path in self.files)

    def packed(self) -> str:
        """Return the files as text for a ConfigMap; too many of them are refused."""
        data = base64.b64encode(zlib.compress(self._plain(), 9))
        if len(data) > MAX_BYTES:
            raise BadDocument(
                f"the patches take {len(data) // 1024} KiB packed, and a cluster keeps {MAX_BYTES // 1024} KiB at most",
                hint="move what is not a patch out of the directory",
                error_class="too-large",
            )
        return data.decode()

    def _plain(self) -> bytes:
        files = {path: base64.b64encode(data).decode() for path, data in sorted(self.files.items())}
        return json.dumps(files, separators=(",", ":"), sort_keys=True).encode()


def unpack(text: str) -> PatchSetContent:
    """Return the patch set that a record holds; text that is none is refused."""
    try:
        plain = zlib.decompress(base64.b64decode(text, validate=True))
        files = {str(path): base64.b64decode(data, validate=True) for path, data in json.loads(plain).items()}
    except (ValueError, zlib.error, AttributeError, TypeError) as error:
        raise BadDocument(f"ConfigMap {RECORD} holds something that is no patch set: {error}") from error
    return PatchSetContent(files)


class RecordView(Protocol):
    def find(self, kind: str, namespace: str, name: str) -> Mapping[str, Json] | None: ...


def recorded_set(objects: RecordView, node_name: str, *, is_worker: bool) -> PatchSetContent | None:
    """Return the patch set that the cluster has recorded for a node; None if it has none.

    A set that is recorded and not there is refused: to go on without it would drop the node's patches. A worker may
    read the record only where there is one, which it knows from its Node.
    """
    noted = noted_set(objects, node_name) if is_worker else ""
    if is_worker and not noted:
        return None
    record = objects.find("ConfigMap", KUBE_SYSTEM, RECORD)
    data = record.get("data") if record else None
    texts = data if isinstance(data, dict) else {}
    digest = noted or str(texts.get(f"{_NODE}{node_name}") or "")
    if not digest:
        return None
    text = texts.get(f"{_SET}{digest}")
    found = unpack(text) if isinstance(text, str) else None
    if found is None or found.digest != digest:
        raise BadDocument(
            f"ConfigMap {RECORD} does not hold the patch set {digest[:12]} that is noted for node {node_name}",
            hint="pass the directory of its patches with --patches",
            error_class="lost-patches",
        )
    return found


def node_sets(data: Mapping[str, Json]) -> dict[str, str]:
    """Return the digests of the sets that a record names for nodes, by the names of these; empty for none."""
    found = {key.removeprefix(_NODE): value for key, value in data.items() if key.startswith(_NODE)}
    return {name: digest for name, digest in found.items() if isinstance(digest, str)}


def patch_sets_of(objects: RecordView, nodes: Iterable[Mapping[str, Json]]) -> dict[str, str]:
    """Return the digests of the patches of Nodes by their names: as recorded, else as noted, and empty for none."""
    record = objects.find("ConfigMap", KUBE_SYSTEM, RECORD)
    data = record.get("data") if record else None
    recorded = node_sets(data if isinstance(data, dict) else {})
    found = {_name_of(each): _noted_on(each) for each in nodes}
    return {name: recorded.get(name) or noted for name, noted in found.items()}


def _name_of(node: Mapping[str, Json]) -> str:
    metadata = node.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def noted_set(objects: RecordView, node_name: str) -> str:
    """Return the digest that a worker has noted on its Node."""
    return _noted_on(objects.find("Node", "", node_name) or {})


def _noted_on(node: Mapping[str, Json]) -> str:
    metadata = node.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return str(text or "").removeprefix(_annotated(""))


def holds_set(objects: RecordView, digest: str) -> bool:
    """Say whether the cluster has a patch set; a worker that may not read the record cannot tell, and takes it for no.

    Who may read the record is stored with it.
    """
    with suppress(GarboardError):
        record = objects.find("ConfigMap", KUBE_SYSTEM, RECORD)
        data = record.get("data") if record else None
        return isinstance(data, dict) and f"{_SET}{digest}" in data
    return False


def content_of(patches: NodePatches) -> PatchSetContent | None:
    """Return the content of a patch directory; None where there is nothing to keep."""
    files = patches.list_files() if patches.list_files else ()
    return PatchSetContent({each.path: each.load() for each in files}) if files else None


def wait_for_node(context: NodeContext, cause: str) -> Iterator[Step]:
    """Plan to wait until the kubelet has registered its Node."""
    timeout_s = context.timeouts.kubernetes_api_call.seconds
    yield Step(AwaitGate(gate=NodeRegistered(node_name=context.node_name, timeout_s=timeout_s)), cause)


def plan_mark_control_plane(context: NodeContext) -> Iterator[Step]:
    """Plan to label and taint the Node, once its kubelet has made it; taints that others have set stay."""
    yield from wait_for_node(context, "its labels and taints are set")
    taints = context.node_registration.taints or ()
    labels: dict[str, Json] = dict.fromkeys(_LABELS, "")
    content: dict[str, Json] = {"metadata": {"labels": labels}}
    if taints:
        content["spec"] = {"taints": [_taint_document(each) for each in taints]}
    patch = PatchObject(
        api_version="v1", kind="Node", name=context.node_name, content=content, united=(_TAINTS,) if taints else ()
    )
    yield Step(patch, "it is a control-plane node")
    yield from record_on_control_plane(context)


def _taint_document(taint: Taint) -> dict[str, Json]:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {name: value for name, value in fields.items() if value}


def record_on_control_plane(context: NodeContext) -> Iterator[Step]:
    """Plan to keep the patch set in the cluster, beside those of other nodes, and to let nodes read it."""
    content = content_of(context.patches)
    if content is None:
        return
    # Undo goes backwards: who may read the record is left alone as long as it has not gone.
    for each in readable_by(ROLE, KUBE_SYSTEM, RECORD, (group(NODES_GROUP),)):
        yield Step(PutObject.of(each.content, serves=("ConfigMap", KUBE_SYSTEM, RECORD)), _CAUSE)
    digest = content.digest
    shared = SharedKey(f"{_SET}{digest}", value=digest, annotation=ANNOTATION, annotated=_annotated(digest))
    data = {shared.key: content.packed(), f"{_NODE}{context.node_name}": digest}
    record = config_map(RECORD, KUBE_SYSTEM, data)
    yield Step(PutObject.of(record.content, keeps_other_data=True, shared_keys=(shared,)), _CAUSE)


def _annotated(digest: str) -> str:
    return f"sha256:{digest}"


def record_on_worker(context: NodeContext) -> Iterator[Step]:
    """Plan to note the digest on the Node, once the kubelet has made it; the kubelet's user may do that.

    Of all that can be patched a worker has its kubelet: a set without a patch for the kubelet is not recorded.
    """
    content = content_of(context.patches)
    if content is None or not content.is_for_workers:
        return
    yield from wait_for_node(context, "the patch set is noted on it")
    annotations: Json = {ANNOTATION: _annotated(content.digest)}
    patch = PatchObject(
        api_version="v1", kind="Node", name=context.node_name, content={"metadata": {"annotations": annotations}}
    )
    yield Step(patch, _CAUSE)
