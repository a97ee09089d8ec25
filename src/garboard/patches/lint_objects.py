"""Linting a patch set: each entry against the kind it selects, and against the objects if there are any."""

from collections.abc import Sequence

from garboard.documents import Json
from garboard.patches.check import PatchChecks
from garboard.patches.findings import Finding, in_reading_order
from garboard.patches.lint import Subject, lint_patches
from garboard.patches.objects import Entry, ObjectPatches, Selection, unmatched
from garboard.schema import Schema, StructType


def lint_objects(
    patches: ObjectPatches, checks: PatchChecks, *, source: str, originals: Sequence[Json] = ()
) -> list[Finding]:
    """Return every finding about a patch set; with objects, also about entries that select none of them."""
    if not originals:
        return _lint_entries(patches, checks)
    findings: list[Finding] = []
    matched: list[Entry] = []
    for document in originals:
        entries = patches.for_object(document)
        matched += entries
        mine = [patch for entry in entries for patch in entry.patches]
        subject = Subject(_shape_of(document, checks.schema), None, (document,))
        findings += lint_patches(mine, subject, checks)
    unused = unmatched(patches, matched)
    findings += [unused_entry(source, entry) for entry in unused]
    return in_reading_order([*findings, *_lint_entries(ObjectPatches(tuple(unused)), checks)])


def unused_entry(source: str, entry: Entry) -> Finding:
    return Finding(source, entry.position, "zero-match", f"the patches of {entry.file} select no object")


def _lint_entries(patches: ObjectPatches, checks: PatchChecks) -> list[Finding]:
    """Check entries by the kind they select; those that select the same things may overlap."""
    alike: dict[Selection, list[Entry]] = {}
    for entry in patches.entries:
        alike.setdefault(entry.selection, []).append(entry)
    findings: list[Finding] = []
    for selection, entries in alike.items():
        mine = [patch for entry in entries for patch in entry.patches]
        findings += lint_patches(mine, Subject(_selected_shape(selection, checks.schema)), checks)
    return in_reading_order(findings)


def _selected_shape(selection: Selection, schema: Schema) -> StructType | None:
    """Return the type that a selection is about, or nothing if it leaves the kind open or names one we do not know."""
    for kind in schema.kinds():
        version = kind.api_version.rpartition("/")[2]
        if (
            kind.name == selection.kind
            and selection.group in (None, kind.group)
            and selection.version in (None, version)
        ):
            return kind.type
    return None


def _shape_of(document: Json, schema: Schema) -> StructType | None:
    api_version, kind = (
        (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else (None, None)
    )
    return schema.type_of(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
