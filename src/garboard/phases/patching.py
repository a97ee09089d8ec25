"""The user's patches while a node is rendered: applied as kubeadm applies them, watched as strict mode would."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from garboard.documents import Json
from garboard.engine import Note
from garboard.model import KubernetesVersion
from garboard.schema import load_schema

if TYPE_CHECKING:  # the engine is large, and most runs have no patches
    from garboard.patches import Finding, PatchFile


@dataclass(frozen=True, slots=True)
class NodePatches:
    """A patch directory, listed and read when a phase first patches something: if it is broken, that phase fails.

    One with the marker file is a tree, of which the layers of this node apply.
    """

    list_files: "Callable[[], Sequence[PatchFile]] | None" = None  # None: nobody asked for patches
    is_strict: bool = False  # what strict mode objects to is refused, and not only told
    node_name: str | None = None  # None: a tree's layers for nodes are left out
    role: str | None = None  # None: … and those for roles

    def begin(self, version: KubernetesVersion) -> "PatchRun":
        """Return the patcher of one phase, which knows what there was to say once it has been called."""
        return PatchRun(self, version)


@dataclass(slots=True)
class PatchRun:
    """Patches of one phase; calling it is what `manifests` knows as a patcher."""

    patches: NodePatches
    version: KubernetesVersion
    findings: "list[Finding]" = field(default_factory=list)
    read: list[str] = field(default_factory=list)  # what was ignored and what was applied, in that order

    def __call__(self, target: str, document: Json, /) -> Json:
        files = self.patches.list_files() if self.patches.list_files else ()
        if not files:
            return document
        from garboard.patches import NodeFacts, TargetPatcher, read_patch_tree, refuse_errors

        schema = load_schema(self.version)
        node = NodeFacts(self.patches.node_name, self.patches.role)
        patch_set = read_patch_tree(files, schema, node)
        patcher = TargetPatcher(patch_set, schema)
        applied = patcher.apply(target, document, is_watched=True)
        if self.patches.is_strict:
            refuse_errors(applied.findings, "correct the patch, or leave out --strict-patches")
        self.findings += applied.findings
        self.read += [f"ignored {each.shown}: {each.reason}" for each in patch_set.ignored]
        self.read += [f"applied {each.label} ({each.type}) to {target}" for each in patcher.patches_of(target)]
        return applied.document

    def notes(self) -> Iterator[Note]:
        yield from (Note(f"patches: {text}") for text in self.read)
        for finding in self.findings:
            yield Note(f"[{finding.error_class}] {finding.where}: {finding.message}", is_warning=True)
