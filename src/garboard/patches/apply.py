"""Applying patches to a document: the one entry to the patch engine, with the findings and the trace of a run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from garboard.documents import DocumentPath, Json, equal
from garboard.errors import BadDocument, PatchFailed
from garboard.patches.check import PatchChecks
from garboard.patches.findings import Finding, Severity, refuse_errors
from garboard.patches.json6902 import apply_args, apply_json
from garboard.patches.json_values import as_decoded, copy_of
from garboard.patches.merge import apply_merge
from garboard.patches.patch import Patch, PatchType
from garboard.patches.results import result_findings
from garboard.patches.strategic import apply_strategic
from garboard.patches.strategic_fields import DIRECTIVES
from garboard.patches.targets import PatchSubject
from garboard.patches.trace import Trace
from garboard.patches.writer import DocumentWriter, Remark
from garboard.schema import StructType

_REFUSED_BY_ALL: Final = "correct the patch; kubeadm and kubectl refuse it too"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The document after a replay, and the patches that failed in it and were left out."""

    document: Json
    failed: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """What it takes to repeat a run with fewer patches: the original document, and the steps after the patches."""

    original: Json
    shape: StructType | None
    last: tuple[Callable[[Json], Json], ...] = ()

    def without_each(self, patches: Sequence[Patch]) -> Iterator[Replayed]:
        """Yield the document patched without the first of `patches`, without the second, and so on.

        A patch that fails once another one is left out is left out too, so that the rest can be compared. If the steps
        after the patches refuse the document (it is no Pod any more, say), they are left out as well.
        """
        before = copy_of(self.original)
        for number, patch in enumerate(patches, start=1):
            yield self._run(before, patches[number:])
            before = _apply(before, patch, self.shape, DocumentWriter())

    def _run(self, before: Json, patches: Sequence[Patch]) -> Replayed:
        failed: list[Patch] = []
        while True:
            document = copy_of(before)
            for patch in patches:
                try:
                    document = _apply(document, patch, self.shape, DocumentWriter())
                except PatchFailed:  # it may have left the document half done
                    failed.append(patch)
                    break
            else:
                return Replayed(self._finished(document), tuple(failed))
            patches = [patch for patch in patches if patch is not failed[-1]]

    def _finished(self, document: Json) -> Json:
        unfinished = copy_of(document) if self.last else document
        try:
            for step in self.last:
                document = step(document)
        except BadDocument:
            return unfinished
        return document


@dataclass(frozen=True, slots=True)
class Applied:
    """The patched document and the patches; of a traced run also the findings, the trace and what a replay needs."""

    document: Json
    patches: tuple[Patch, ...]
    findings: tuple[Finding, ...] = ()
    trace: Trace | None = None
    replay: Replay | None = None
    consequences: tuple[Finding, ...] = ()  # what is wrong with the result, where the findings have told why

    def then(self, step: Callable[[Json], Json]) -> Self:
        """Return this with `step` done to the document, in this run and in every replay of it."""
        replay = self.replay and replace(self.replay, last=(*self.replay.last, step))
        return replace(self, document=step(self.document), replay=replay)


def apply_patches(
    document: Json,
    patches: Sequence[Patch],
    subject: PatchSubject,
    *,
    is_traced: bool = False,
    is_decoded: bool = True,
    checks: PatchChecks | None = None,
) -> Applied:
    """Apply `patches` in order to `document`, which is changed in place: all code that applies patches calls this.

    If the subject is a target, what kubeadm does to it follows: the node's own patches, and the decoding (unless
    `is_decoded` is false). A traced run has findings and origins as well, about the result of a target too; with
    `checks`, the findings include what is wrong with the patches by themselves.
    """
    is_decoded = is_decoded and subject.is_decoded
    unpatched = copy_of(document) if is_decoded else None
    if is_traced:
        applied = _apply_with_findings(document, patches, subject, checks)
    else:
        applied = _apply_untraced(document, patches, subject)
    if not is_decoded:
        return applied
    try:
        return applied.then(lambda patched: subject.decoded(patched, unpatched))
    except BadDocument:
        refuse_errors(applied.findings, _REFUSED_BY_ALL)  # they know the line of the patch
        raise


def is_already_patched(document: Json, applied: Applied, subject: PatchSubject) -> bool:
    """Tell whether a document was what patches make of it, and nothing else speaks against them.

    Some may find nothing to remove, but one at least must find what it sets.
    """
    if not has_found_its_work_done(applied):
        return False
    return equal(applied.document, apply_patches(copy_of(document), (), subject).document)


def has_found_its_work_done(applied: Applied) -> bool:
    """Tell whether patches have nothing against them but that they change nothing."""
    without_change = {each.file for each in applied.findings if each.error_class == "no-change"}
    without_match = {each.file for each in applied.findings if each.error_class == "zero-match"}
    others = {each.error_class for each in applied.findings if each.severity is Severity.ERROR}
    return bool(without_change - without_match) and not others - {"no-change", "zero-match"}


def _apply_untraced(document: Json, patches: Sequence[Patch], subject: PatchSubject) -> Applied:
    patches = (*patches, *subject.node_patches)
    for patch in patches:
        document = _apply(document, patch, subject.shape, DocumentWriter())
    return Applied(document, patches)


def _apply_with_findings(
    document: Json, patches: Sequence[Patch], subject: PatchSubject, checks: PatchChecks | None
) -> Applied:
    findings = checks.check(patches, subject.shape, subject.component) if checks is not None else []
    try:
        applied = _apply_traced(document, patches, subject)
    except PatchFailed:
        # A misspelt field says more than what it leads to.
        refuse_errors(findings, _REFUSED_BY_ALL)
        raise
    # What is wrong with a value by itself, the result tells in the same words, or of another kind of value.
    told = {(each.error_class, each.message) for each in findings}
    unread = {(each.file, each.position) for each in findings if each.error_class == "wrong-type"}
    others = (
        each
        for each in applied.findings
        if (each.error_class, each.message) not in told and (each.file, each.position) not in unread
    )
    return replace(applied, findings=(*findings, *others))


def _apply_traced(document: Json, patches: Sequence[Patch], subject: PatchSubject) -> Applied:
    """Apply patches with a trace; remarks become findings, except those about the node's own patches."""
    trace = Trace(document)
    findings: list[Finding] = []
    states: list[Json] = []
    everything = (*patches, *subject.node_patches)
    original = copy_of(document) if everything else document
    for number, patch in enumerate(everything):
        trace.patch = number
        writer = DocumentWriter(trace)
        before = copy_of(document) if number else original
        states += [before] if number else []
        document = _apply(document, patch, subject.shape, writer)
        if number < len(patches):
            remarks = [*writer.remarks, *_remarks_on_outcome(before, document, patch, number, trace)]
            findings += [_finding(patch, remark) for remark in remarks]
    # Where the engine has told why, what follows from it adds nothing.
    told = {(each.file, each.position) for each in findings}
    judged = result_findings(original, [*states, document], everything, subject, trace)
    findings += [each for each in judged if (each.file, each.position) not in told]
    follows = tuple(each for each in judged if (each.file, each.position) in told)
    return Applied(document, everything, tuple(findings), trace, Replay(original, subject.shape), follows)


def _finding(patch: Patch, remark: Remark) -> Finding:
    """Return the remark as a finding at its place in the patch file."""
    position = patch.source.position(remark.at)
    return Finding(patch.source.name, position, remark.error_class, remark.message, remark.hint, at=remark.at)


def _apply(document: Json, patch: Patch, shape: StructType | None, writer: DocumentWriter) -> Json:
    try:
        if patch.type is PatchType.MERGE:
            return apply_merge(document, patch.value, writer)
        if patch.type is PatchType.JSON:
            return apply_json(document, patch.value, writer)
        if patch.type is PatchType.ARGS:
            return apply_args(document, patch.value, writer)
        return apply_strategic(as_decoded(document), patch.value, _known(shape), writer)
    except PatchFailed as error:
        message = f"{patch.where(error.at)}: {error.message}"
        raise PatchFailed(message, error_class=error.error_class, at=error.at, hint=error.hint) from error
    except RecursionError:
        raise PatchFailed(
            f"{patch.where()}: the patch or the document is nested too deeply", error_class="bad-document"
        ) from None


def _known(shape: StructType | None) -> StructType:
    if shape is None:
        raise PatchFailed(
            "a strategic patch needs a kind whose fields are known, and this one is not",
            error_class="unsupported-kind",
            hint="use a merge or JSON patch for custom resources, or name a built-in type with --kind",
        )
    return shape


def _remarks_on_outcome(before: Json, after: Json, patch: Patch, number: int, trace: Trace) -> list[Remark]:
    """Return the remarks that compare the document before a patch with the document after it."""
    remarks = [
        Remark("leaked-directive", f"the directive {name!r} took no effect and stays in the result as data", at)
        for name, at in _leaked(after, number, trace)
    ]
    if isinstance(before, dict) and isinstance(after, dict):
        for key in ("apiVersion", "kind"):
            if not equal(before.get(key), after.get(key)):
                message = f"the patch changes {key} from {before.get(key)!r} to {after.get(key)!r}"
                remarks.append(Remark("kind-change", message, (key,)))
    is_meant_to = patch.value is not None and not _is_only_tests(patch)  # a text of comments says nothing, on purpose
    if equal(before, after) and is_meant_to:
        hint = "remove the patch, or look for a misspelt field or value"
        remarks.append(Remark("no-change", "the patch changes nothing", (), hint))
    return remarks


def _is_only_tests(patch: Patch) -> bool:
    """Tell whether the patch is a guard: JSON operations that test and are not meant to change anything."""
    return isinstance(patch.value, list) and all(
        isinstance(operation, dict) and operation.get("op") == "test" for operation in patch.value
    )


def _leaked(document: Json, number: int, trace: Trace) -> list[tuple[str, DocumentPath]]:
    """Return the directives in `document` that patch `number` wrote there, with their places in the patch."""
    found: list[tuple[str, DocumentPath]] = []
    if isinstance(document, dict):
        for key in document:
            if key.startswith(DIRECTIVES):
                writes = trace.writes(document, key)
                creation = trace.creation(document)
                if writes and writes[-1].patch == number:
                    found.append((key, writes[-1].at))
                elif not writes and creation is not None and creation.patch == number:
                    found.append((key, (*creation.at, key)))
    members = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    for member in members:
        if isinstance(member, dict | list):
            found += _leaked(member, number, trace)
    return found
