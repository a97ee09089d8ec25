"""The hand edits of a node as a directory of patches that kubeadm reads, with those that are recorded for the node."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from garboard.change.drifting import ClusterDrift, ComparedNode
from garboard.change.snapshot import ClusterSnapshot
from garboard.drift import Difference, DriftKind, can_keep, capture
from garboard.errors import BadUsage, NotReady
from garboard.model.version import KubernetesVersion
from garboard.patches import MARKER
from garboard.schema import load_schema
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedDirectory:
    """The files by their names; what could not be kept, and of how many edits they are."""

    node: str
    files: Mapping[str, str]
    kept: int
    left: tuple[Difference, ...]


def capture_node(
    drift: ClusterDrift, snapshot: ClusterSnapshot, release: KubernetesVersion, name: str
) -> CapturedDirectory:
    """Return the patches with which a node is rendered as it is now.

    If a directory of patches is recorded for the node, its files are among them; a tree of ours, which kubeadm does not
    read, is written out as plain patches.
    """
    part = next((each for each in drift.nodes if each.node == name), None)
    if part is None:
        raise NotReady(f"nothing of node {name!r} was looked at", hint="run garboard change drift on that node")
    node = snapshot.node(name)
    recorded = dict(snapshot.patch_sets.get(node.patch_set, {})) if node else {}
    is_tree = MARKER in recorded
    kinds = (DriftKind.HAND_EDIT, DriftKind.PATCH) if is_tree else (DriftKind.HAND_EDIT,)
    schema = load_schema(release)
    edits = [_on_disk(each) for each in part.differences if each.kind in kinds]
    kept = [each for each in edits if can_keep(each, schema)]
    subjects = [replace(each, patched=()) for each in part.subjects] if is_tree else part.subjects
    files = {} if is_tree else dict(recorded)
    for each in capture(subjects, kept, schema, is_for_kubeadm=True):
        files[_free_name(each.name, files)] = each.text
    left = tuple(each for each in edits if not can_keep(each, schema))
    return CapturedDirectory(node=name, files=files, kept=len(kept), left=left)


def _on_disk(difference: Difference) -> Difference:
    """Return a difference with what runs in place of a file that nobody has seen."""
    return difference if difference.on_disk.is_known else replace(difference, on_disk=difference.running)


def _free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that no recorded patch has, and that comes after those of the same target."""
    while name in taken:
        name = name.replace("~", "~~", 1)
    return name


def node_to_capture(drift: ClusterDrift, here: str, wanted: str) -> str:
    """Return the node whose edits are meant: the one that was named, this one, or the only one that has any."""
    if wanted or here:
        return wanted or here
    edited = [each.node for each in drift.nodes if each.edits]
    if len(edited) > 1:
        raise BadUsage(
            f"{len(edited)} nodes have hand edits: {', '.join(edited)}",
            hint="name the one whose edits are kept with --node",
        )
    if not edited:
        raise BadUsage("no node has hand edits to keep", hint="leave --capture out to see all differences")
    return edited[0]


def edits_of(part: ComparedNode) -> dict[str, list[str]]:
    """Return the fields that were edited by hand, by component."""
    found: dict[str, list[str]] = {}
    for each in part.edits:
        found.setdefault(each.component, []).append(each.field)
    return found
