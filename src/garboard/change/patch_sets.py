"""The patch sets of nodes, as the cluster has recorded them and as they are asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from posixpath import basename

from garboard.change.plan import PlannedAttribute, PlannedObject
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import write_yaml
from garboard.errors import BadDocument
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.patches import MARKER, NodeFacts, PatchChecks, PatchFile, lint_tree
from garboard.patches.unified import TextDiff
from garboard.phases.node.records import ANNOTATION, RECORD, PatchSetContent
from garboard.schema import Schema
from garboard.values import Json, dataclass

LABEL, CAUSE = "patches", "the patches of the node changed"
_SHOWN = 12
_UNREAD = ("ignored-file", "unknown-target")
_RECORDED = "an upgrade or another change must not drop the patches"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSets:
    """The files of every set by its digest, and the set that is asked for, if another one is.

    `recorded` are the digests that single nodes shall have, by their names, where a recorded state is asked for: empty
    for none, while a node that it does not name, such as one that has joined since, keeps what it has. `contents` are
    those of them that the cluster does not have yet, by their digests.
    """

    files: Mapping[str, Mapping[str, bytes]]
    wanted: PatchSetContent | None = None
    recorded: Mapping[str, str] | None = None
    contents: Mapping[str, PatchSetContent] = field(default_factory=dict)
    is_changed: bool = False

    @classmethod
    def of(
        cls,
        snapshot: ClusterSnapshot,
        wanted: PatchSetContent | None,
        recorded: Mapping[str, str] | None = None,
        contents: Mapping[str, PatchSetContent] | None = None,
    ) -> "PatchSets":
        files = {
            digest: {path: text.encode() for path, text in texts.items()}
            for digest, texts in snapshot.patch_sets.items()
        }
        if wanted is not None:
            files[wanted.digest] = dict(wanted.files)
        new = contents or {}
        files |= {digest: dict(content.files) for digest, content in new.items()}
        found = cls(files=files, wanted=wanted, recorded=recorded, contents=new, is_changed=wanted is not None)
        found._refuse_lost(snapshot)
        moved = any(len(set(found.of_node(node))) > 1 for node in snapshot.nodes)
        return replace(found, is_changed=found.is_changed or moved)

    def _refuse_lost(self, snapshot: ClusterSnapshot) -> None:
        """Refuse a recorded state whose patches the cluster has not kept: nodes would lose them without a word."""
        names = {node.name for node in snapshot.nodes}
        needed = [digest for name, digest in (self.recorded or {}).items() if name in names and digest]
        lost = [digest for digest in needed if digest not in self.files]
        if lost:
            raise BadDocument(
                f"ConfigMap {RECORD} does not hold the patch set {lost[0][:_SHOWN]} that is asked for",
                hint="garboard change plan --patches DIR records a set of patches",
                error_class="lost-patches",
            )

    def of_node(self, node: SnapshotNode) -> tuple[str, str]:
        """Return the digests of the sets of a node, before and after; of a worker only its kubelet is patched."""
        if self.recorded is not None:
            return node.patch_set, self.recorded.get(node.name, node.patch_set)
        if self.wanted is None:
            return node.patch_set, node.patch_set
        is_for_worker = any(basename(path).startswith(KUBELET_TARGET) for path in self.wanted.files)
        is_recorded = bool(self.wanted.files) and (node.is_control_plane or is_for_worker)
        return node.patch_set, self.wanted.digest if is_recorded else ""

    def facts_of(self, node: SnapshotNode) -> str:
        """Return what layers of a tree choose by: nothing unless one of the sets is a tree."""
        is_tree = any(MARKER in self.files.get(digest, {}) for digest in self.of_node(node))
        return node.name if is_tree else ""


def unread_files(content: PatchSetContent, schema: Schema) -> Iterator[str]:
    """Yield the files of a patch set that look like patches, and that no component reads."""
    files = [PatchFile(path, path, partial(bytes, data)) for path, data in sorted(content.files.items())]
    for each in lint_tree(files, PatchChecks(schema), NodeFacts(), ()):
        if each.error_class in _UNREAD:
            yield f"{each.file}: {each.message}" + (f"; {each.hint}" if each.hint else "")


def patch_attribute(patch_sets: PatchSets, snapshot: ClusterSnapshot) -> tuple[PlannedAttribute, ...]:
    """Return the change of the patch set as an attribute, if any node gets another one."""
    moved = [node for node in snapshot.nodes if len(set(patch_sets.of_node(node))) > 1]
    if not moved:
        return ()
    former = sorted({patch_sets.of_node(node)[0][:_SHOWN] for node in moved})
    after = next((patch_sets.of_node(node)[1][:_SHOWN] for node in moved), "")
    reason = f"{len(moved)} of {len(snapshot.nodes)} nodes get another patch set, which the cluster records"
    before: Json = former[0] if len(former) == 1 else [*former]
    return (PlannedAttribute(label=LABEL, before=before or None, after=after or None, reason=reason),)


def record_part(patch_sets: PatchSets, snapshot: ClusterSnapshot) -> Iterator[PlannedObject]:
    """Yield what records the patch sets: one ConfigMap for control planes, and the Node of each worker."""
    moved = [node for node in snapshot.nodes if len(set(patch_sets.of_node(node))) > 1]
    control_planes = [node for node in moved if node.is_control_plane]
    wanted = patch_sets.wanted
    if control_planes or (moved and (wanted is not None or patch_sets.contents)):
        data = {f"node.{node.name}": patch_sets.of_node(node)[1] for node in control_planes}
        if wanted is not None and wanted.files:
            data[f"set.{wanted.digest}"] = wanted.packed()
        data |= {f"set.{digest}": content.packed() for digest, content in patch_sets.contents.items()}
        names = [f"node.{node.name}" for node in control_planes]
        old, new = (
            write_yaml(
                {name: patch_sets.of_node(node)[index] for name, node in zip(names, control_planes, strict=True)}
            )
            for index in (0, 1)
        )
        diff = "".join(TextDiff.of(old, new, (RECORD, RECORD)).lines)
        yield PlannedObject(kind="ConfigMap", name=RECORD, cause=_RECORDED, diff=diff, data=tuple(sorted(data.items())))
    for node in moved:
        if not node.is_control_plane:
            old, new = (f"{ANNOTATION}: {digest}\n" if digest else "" for digest in patch_sets.of_node(node))
            diff = "".join(TextDiff.of(old, new, (node.name, node.name)).lines)
            yield PlannedObject(
                kind="Node", namespace="", name=node.name, cause=_RECORDED, diff=diff,
                data=((ANNOTATION, patch_sets.of_node(node)[1]),),
            )  # fmt: skip
