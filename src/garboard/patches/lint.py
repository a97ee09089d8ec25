"""Linting: every finding about patches, for one kind of document or a patch set; `lint_tree` does whole directories.

Documents to try the patches on are optional; with them, lint also reports what only applying shows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from garboard.documents import Json, equal
from garboard.errors import PatchFailed
from garboard.patches.apply import apply_patches, has_found_its_work_done
from garboard.patches.check import PatchChecks
from garboard.patches.exceptions import without_ignored
from garboard.patches.findings import Finding, Severity, in_reading_order
from garboard.patches.json_values import copy_of
from garboard.patches.objects import ObjectPatches, PatchSetEntry, Selection, unmatched
from garboard.patches.overlaps import find_overlaps
from garboard.patches.patch import Patch
from garboard.patches.static_overlaps import find_static_overlaps
from garboard.patches.targets import PatchSubject, target_of
from garboard.rules import RESULT_RULES
from garboard.schema import Schema, StructType, suggest

# What a misspelt name leads to when the patch is tried.
CONSEQUENCES = frozenset({"path-missing", "unknown-field", "bad-index"})


@dataclass(frozen=True, slots=True)
class AssumedDocuments:
    """Documents that stand for those of a configuration which is not known: what kubeadm renders by default.

    Results are judged on them. What else trying a patch shows may be otherwise with the real ones, and is not told; a
    patch that cannot be tried on any node is noted in `unjudged`.
    """

    documents: tuple[Json, ...]
    _notes: dict[str, str] = field(default_factory=dict)  # by patch
    _judged: set[str] = field(default_factory=set)

    @property
    def unjudged(self) -> list[str]:
        """The patches whose results nothing is known about, each with the reason."""
        notes = ((label, reason) for label, reason in self._notes.items() if label not in self._judged)
        return [f"{label}: the result is not judged: {reason}" for label, reason in notes]

    def for_role(self, role: str | None) -> "AssumedDocuments":
        """Return what a node of a role has; what was noted is kept in common."""
        return replace(self, documents=tuple(_of_role(self.documents, role)))

    def judge(self, patches: Sequence[Patch], subject: PatchSubject, schema: Schema) -> list[Finding]:
        """Return what is wrong with the result of patches for a target."""
        mine = [each for each in self.documents if target_of(each, schema.version) == subject.target]
        if not mine and subject.target is not None:
            self._note(patches, f"such a node has no {subject.target.name}")
        findings: list[Finding] = []
        for original in mine:
            good, failures = split_failing(original, patches, subject)
            for patch, failure in failures:
                self._note([patch], failure.message)
            self._judged.update(patch.label for patch in good)
            assumed = replace(subject, is_assumed=True)
            applied = apply_patches(copy_of(original), good, assumed, is_traced=True, is_decoded=False)
            # Where the engine tells why a result is refused, its words are better, and the refusal is certain.
            refused = {(each.file, each.position) for each in applied.consequences}
            findings += [
                each
                for each in applied.findings
                if each.error_class in RESULT_RULES or (each.file, each.position) in refused
            ]
        return findings

    def _note(self, patches: Iterable[Patch], reason: str) -> None:
        for patch in patches:
            self._notes.setdefault(patch.label, reason)


Originals = Sequence[Json] | AssumedDocuments


def of_role(originals: Originals, role: str | None) -> Originals:
    """Return the documents that a node of a role has; a worker has no control plane."""
    return originals.for_role(role) if isinstance(originals, AssumedDocuments) else _of_role(originals, role)


def _of_role(documents: Sequence[Json], role: str | None) -> Sequence[Json]:
    if role != "worker":
        return documents
    return [each for each in documents if _type_names(each)[1] == "KubeletConfiguration"]


def lint_patches(
    patches: Sequence[Patch], subject: PatchSubject, checks: PatchChecks, originals: Originals = ()
) -> list[Finding]:
    """Return every finding about patches that are applied in this order, each once, by file and place.

    `originals` are documents to try them on; those that are not the subject's target are left out.
    """
    findings = checks.check(patches, subject.shape, subject.component)
    if isinstance(originals, AssumedDocuments):
        judged = originals.judge(patches, subject, checks.schema) if subject.target is not None else []
        findings = [*findings, *_not_reported(judged, findings), *find_static_overlaps(patches, subject.shape)]
        return in_reading_order(without_ignored(findings, patches))
    if subject.target is not None:
        originals = [each for each in originals if target_of(each, checks.schema.version) == subject.target]
    if originals:
        tried = [each for original in originals for each in try_patches(original, patches, subject)]
        findings = [*findings, *_not_reported(tried, findings)]
    else:
        findings = [*findings, *find_static_overlaps(patches, subject.shape)]
    return in_reading_order(without_ignored(findings, patches))


def _not_reported(tried: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """Return the findings of trying the patches that the checks have not reported already, and in better words."""
    same = {(each.file, each.position, each.error_class) for each in told}
    words = {(each.file, each.error_class, each.message) for each in told}
    unread = {(each.file, each.position) for each in told if each.error_class == "wrong-type"}
    lines = {(each.file, each.position.line) for each in told if each.severity is Severity.ERROR}
    return [
        each
        for each in tried
        if (each.file, each.position, each.error_class) not in same
        and (each.file, each.error_class, each.message) not in words
        and (each.file, each.position) not in unread
        and not (each.error_class in CONSEQUENCES and (each.file, each.position.line) in lines)
    ]


def try_patches(original: Json, patches: Sequence[Patch], subject: PatchSubject) -> list[Finding]:
    """Return what applying the patches to a document shows; one that fails is reported and left out."""
    good, failures = split_failing(original, patches, subject)
    applied = apply_patches(copy_of(original), good, subject, is_traced=True, is_decoded=False)
    overlaps = find_overlaps(applied)
    if len(good) > 1 and not failures and has_found_its_work_done(applied) and equal(applied.document, original):
        return [_already_patched(good), *overlaps]
    return [*(finding for _, finding in failures), *applied.findings, *overlaps]


def _already_patched(patches: Sequence[Patch]) -> Finding:
    message = f"the document is already patched: none of the {len(patches)} patches for it changes it"
    hint = "lint them on what is rendered: leave out -f, or name --config kubeadm.yaml"
    source = patches[0].source
    return Finding(source.name, source.position(()), "no-change", message, hint)


def split_failing(
    original: Json, patches: Sequence[Patch], subject: PatchSubject
) -> tuple[list[Patch], list[tuple[Patch, Finding]]]:
    """Split off the patches that fail on a document, each with the finding about it."""
    good: list[Patch] = []
    failures: list[tuple[Patch, Finding]] = []
    document = copy_of(original)
    for patch in patches:
        try:
            document = apply_patches(copy_of(document), [patch], subject, is_decoded=False).document
            good.append(patch)
        except PatchFailed as error:
            failures.append((patch, _failure(patch, error)))
    return good, failures


def _failure(patch: Patch, error: PatchFailed) -> Finding:
    message = error.message.removeprefix(f"{patch.where(error.at)}: ")
    return Finding(patch.source.name, patch.source.position(error.at), error.error_class, message, error.hint)


def lint_objects(
    patches: ObjectPatches, checks: PatchChecks, *, source: str, originals: Sequence[Json] = ()
) -> list[Finding]:
    """Return every finding about a patch set; with objects, also about entries that select none of them."""
    findings = _unknown_kinds(patches, checks.schema, source, originals)
    if not originals:
        return in_reading_order([*findings, *_lint_entries(patches, checks)])
    matched: list[PatchSetEntry] = []
    for document in originals:
        entries = patches.for_object(document)
        matched += entries
        mine = [patch for entry in entries for patch in entry.patches]
        target = target_of(document, checks.schema.version)
        subject = PatchSubject(_shape_of(document, checks.schema), target, checks.schema if target else None)
        findings += lint_patches(mine, subject, checks, [document])
    unused = unmatched(patches, matched)
    findings += [unused_entry(source, entry) for entry in unused]
    return in_reading_order([*findings, *_lint_entries(ObjectPatches(tuple(unused)), checks)])


def unused_entry(source: str, entry: PatchSetEntry) -> Finding:
    which = f"the patches of {entry.file} select" if entry.file else "the inline patch selects"
    return Finding(source, entry.position, "zero-match", f"{which} no object")


def _unknown_kinds(patches: ObjectPatches, schema: Schema, source: str, originals: Sequence[Json]) -> list[Finding]:
    """Return findings about selections whose kind is nearly a built-in one; any other may be a custom resource."""
    known = {kind.name for kind in schema.kinds()}
    known |= {str(each["kind"]) for each in originals if isinstance(each, dict) and "kind" in each}
    findings: list[Finding] = []
    for entry in patches.entries:
        kind = entry.selection.kind
        near = suggest(kind, known) if kind is not None and kind not in known else None
        if near is not None:
            message = f"Kubernetes {schema.version.as_minor} has no kind {kind!r}"
            findings.append(Finding(source, entry.kind_position, "unknown-kind", message, f"did you mean {near!r}?"))
    return findings


def _lint_entries(patches: ObjectPatches, checks: PatchChecks) -> list[Finding]:
    """Check entries by the kind they select; those that select the same things may overlap."""
    alike: dict[Selection, list[PatchSetEntry]] = {}
    for entry in patches.entries:
        alike.setdefault(entry.selection, []).append(entry)
    findings: list[Finding] = []
    for selection, entries in alike.items():
        mine = [patch for entry in entries for patch in entry.patches]
        findings += lint_patches(mine, PatchSubject(_selected_shape(selection, checks.schema)), checks)
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


def _type_names(document: Json) -> tuple[Json, Json]:
    return (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else (None, None)


def _shape_of(document: Json, schema: Schema) -> StructType | None:
    api_version, kind = _type_names(document)
    return schema.type_of(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
