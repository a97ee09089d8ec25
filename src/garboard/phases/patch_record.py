"""What a node was patched with, kept where an upgrade finds it: kubeadm forgets, and drops patches without a word.

A control-plane node stores its patch set by content in one ConfigMap of ours, under its digest, and notes which set is
its own. A worker may not write there: it puts the digest on its own Node.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from posixpath import basename

from garboard.documents import Json
from garboard.engine import AwaitGate, PatchObject, Step
from garboard.errors import BadDocument
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.manifests.objects import KUBE_SYSTEM, NODES_GROUP, config_map, group, readable_by
from garboard.model.node import Timeouts
from garboard.phases.patching import NodePatches
from garboard.phases.putting import put
from garboard.phases.waiting import NodeRegistered
from garboard.values import dataclass

RECORD, ROLE = "garboard-patches", "garboard:patches"
ANNOTATION = "garboard.dev/patch-set"
MAX_BYTES = 192 * 1024  # packed; an object of etcd has room for 1.5 MiB, and several sets have to fit
_SET, _NODE = "set.", "node."
_CAUSE = "an upgrade or a change must not drop the patches"


@dataclass(frozen=True, slots=True)
class PatchSetContent:
    """The files of a patch directory by their path; equal content has an equal digest, wherever it came from."""

    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self._plain()).hexdigest()

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


def recorded_set(record: dict[str, Json] | None, node_name: str) -> PatchSetContent | None:
    """Return what a control-plane node was patched with, by the ConfigMap; None if it was not, or nobody knows."""
    data = (record or {}).get("data")
    if not isinstance(data, dict):
        return None
    packed = data.get(f"{_SET}{data.get(f'{_NODE}{node_name}')}")
    return unpack(packed) if isinstance(packed, str) else None


def content_of(patches: NodePatches) -> PatchSetContent | None:
    """Return the content of a patch directory; None where there is nothing to keep."""
    files = patches.list_files() if patches.list_files else ()
    return PatchSetContent({each.path: each.load() for each in files}) if files else None


def record_on_control_plane(node_name: str, patches: NodePatches) -> Iterator[Step]:
    """Plan to keep the patch set in the cluster, beside those of other nodes, and to let nodes read it."""
    content = content_of(patches)
    if content is None:
        return
    data = {f"{_SET}{content.digest}": content.packed(), f"{_NODE}{node_name}": content.digest}
    yield Step(put(config_map(RECORD, KUBE_SYSTEM, data), keeps_other_data=True), _CAUSE)
    yield from (Step(put(each), _CAUSE) for each in readable_by(ROLE, KUBE_SYSTEM, RECORD, (group(NODES_GROUP),)))


def record_on_worker(node_name: str, patches: NodePatches, timeouts: Timeouts) -> Iterator[Step]:
    """Plan to note the digest on the Node, once the kubelet has made it; its own user may do that.

    Of all that can be patched a worker has its kubelet: a set without a patch for that is none of its business.
    """
    content = content_of(patches)
    if content is None or not any(basename(path).startswith(KUBELET_TARGET) for path in content.files):
        return
    gate = NodeRegistered(node_name=node_name, timeout_s=timeouts.kubernetes_api_call.seconds)
    yield Step(AwaitGate(gate=gate), "the patch set is noted on it")
    annotations: Json = {ANNOTATION: f"sha256:{content.digest}"}
    patch = PatchObject(
        api_version="v1", kind="Node", name=node_name, content={"metadata": {"annotations": annotations}}
    )
    yield Step(patch, _CAUSE)
