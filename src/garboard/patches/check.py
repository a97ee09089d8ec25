"""Checking patches before they are applied: what is wrong whatever the document they meet.

Strict mode refuses these errors, lint reports them; both call `PatchChecks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from garboard.documents import Json
from garboard.patches.check_directives import DirectiveCheck
from garboard.patches.check_flags import FlagCheck
from garboard.patches.check_operations import OperationCheck
from garboard.patches.check_types import Reading, TypeCheck, short_name
from garboard.patches.findings import Finding
from garboard.patches.notes import Notes
from garboard.patches.patch import Patch, PatchType
from garboard.schema import Schema, StructType

# The programs whose flags and gates a target's patches may name; the other targets run programs of others.
COMPONENTS = {
    "etcd": "etcd",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kubeproxydaemonset": "kube-proxy",
}


@dataclass(frozen=True, slots=True)
class PatchChecks:
    """The checks of one minor; a patch that is meant for many objects is checked once."""

    schema: Schema
    _done: dict[tuple[int, int, str | None], tuple[Patch, list[Finding]]] = field(default_factory=dict, repr=False)

    def check(self, patches: Sequence[Patch], shape: StructType | None, component: str | None = None) -> list[Finding]:
        """Return the findings about patches for documents of one type."""
        findings: list[Finding] = []
        for patch in patches:
            key = (id(patch), id(shape), component)
            if key not in self._done:
                # The patch is kept as well: its identity must not pass to another one.
                self._done[key] = (patch, check_patch(patch, shape, self.schema, component))
            findings += self._done[key][1]
        return findings


def check_patch(patch: Patch, shape: StructType | None, schema: Schema, component: str | None = None) -> list[Finding]:
    """Return what is wrong with one patch document for a type; `component` is the program that the target runs.

    Without a type, only what the patch language itself demands is checked.
    """
    notes = Notes(patch)
    for name, position in patch.source.repeated_keys:
        message = f"{name!r} stands twice in one mapping, and only the last one counts"
        notes.findings.append(Finding(patch.source.name, position, "repeated-key", message, "remove one of the two"))
    types = TypeCheck(notes, schema, FlagCheck(notes, schema, component), DirectiveCheck(notes))
    try:
        _check_content(patch, shape, types)
    except RecursionError:
        notes.error("bad-document", "the patch is nested too deeply", ())
    return notes.findings


def _check_content(patch: Patch, shape: StructType | None, types: TypeCheck) -> None:
    if patch.type is PatchType.JSON:
        OperationCheck(types).run(patch.value, shape)
    elif patch.type is PatchType.ARGS:
        types.flags.args(patch.value, is_pod=shape is not None and short_name(shape) == "Pod")
    else:
        _check_mapping(patch, shape, types)


def _check_mapping(patch: Patch, shape: StructType | None, types: TypeCheck) -> None:
    if patch.value is None and patch.type is PatchType.STRATEGIC:
        return
    if not isinstance(patch.value, dict):
        message = f"a {patch.type} patch must be a mapping"
        types.notes.error("bad-document", message, (), "remove the document, or write it as a mapping of fields")
    elif shape is not None:
        reading = Reading.STRATEGIC if patch.type is PatchType.STRATEGIC else Reading.MERGE
        types.members(patch.value, shape, (), reading)
        _check_kind(patch.value, shape, types)


def _check_kind(document: dict[str, Json], shape: StructType, types: TypeCheck) -> None:
    """Refuse a patch that names another kind than the one it is for."""
    if not {"apiVersion", "kind"} & document.keys():
        return
    known = [kind for kind in types.schema.kinds() if kind.type is shape]
    for key, right in (
        ("apiVersion", [kind.api_version for kind in known]),
        ("kind", [kind.name for kind in known]),
    ):
        if known and key in document and document[key] not in right:
            message = f"the patch is for {short_name(shape)} and changes {key} to {document[key]!r}"
            hint = f"remove {key}, or write {' or '.join(sorted(right))}"
            types.notes.error("kind-change", message, (key,), hint)
