"""The user's patches while a node is rendered: applied as kubeadm applies them, with the findings of strict mode."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from garboard.documents import Json
from garboard.engine import Note
from garboard.lazy import lazy_module
from garboard.model import KubernetesVersion
from garboard.schema import load_schema

if TYPE_CHECKING:
    from garboard import patches
else:  # the patch engine is large, and most runs have no patches
    patches = lazy_module("garboard.patches")


@dataclass(frozen=True, slots=True)
class NodePatches:
    """A patch directory, listed and read when a phase first patches something: if it is broken, that phase fails.

    If the directory holds the marker file it is a tree, and the layers of this node apply.
    """

    list_files: "Callable[[], Sequence[patches.PatchFile]] | None" = None  # None: there are no patches
    is_strict: bool = False  # errors that strict mode finds are refused, and not only reported
    node_name: str | None = None  # None: a tree's layers for nodes are left out
    role: str | None = None  # None: a tree's layers for roles are left out
    accepted: tuple[str, ...] = ()  # codes of dangers that strict mode lets pass

    def begin(self, version: KubernetesVersion) -> "PatchRun":
        """Return the patcher of one phase; after it has been called, its `notes` tell what it did."""
        return PatchRun(self, version)


@dataclass(slots=True)
class PatchRun:
    """The patcher of one phase, in the sense of `manifests.Patcher`."""

    directory: NodePatches
    version: KubernetesVersion
    findings: "list[patches.Finding]" = field(default_factory=list)
    read: list[str] = field(default_factory=list)  # what was ignored and what was applied, in that order

    def __call__(self, target: str, document: Json, /) -> Json:
        files = self.directory.list_files() if self.directory.list_files else ()
        if not files:
            return document
        schema = load_schema(self.version)
        node = patches.NodeFacts(self.directory.node_name, self.directory.role)
        patch_set = patches.read_patch_tree(files, schema, node)
        self.read += [f"ignored {each.shown}: {each.reason}" for each in patch_set.ignored]
        known = next((each for each in patches.targets_of(schema.version) if each.name == target), None)
        return document if known is None else self._apply(document, patch_set.for_target(known), known)

    def _apply(self, document: Json, mine: "Sequence[patches.Patch]", target: "patches.Target") -> Json:
        schema = load_schema(self.version)
        # The kubelet's own values are not applied here: `manifests` sets them in the patched document.
        subject, checks = patches.PatchSubject.of_target(target, schema), patches.PatchChecks(schema)
        applied = patches.apply_patches(document, mine, subject, is_traced=True, checks=checks)
        findings = patches.with_exceptions(applied.findings, accepted=self.directory.accepted)
        if self.directory.is_strict:
            patches.refuse_errors(findings, "correct the patch, or leave out --strict-patches")
        self.findings += findings
        self.read += [f"applied {each.label} ({each.type}) to {target.name}" for each in mine]
        return applied.document

    def notes(self) -> Iterator[Note]:
        yield from (Note(f"patches: {text}") for text in self.read)
        for finding in self.findings:
            yield Note(f"[{finding.error_class}] {finding.where}: {finding.message}", is_warning=True)
