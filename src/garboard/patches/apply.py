"""Applying patches to one document: the engine's run, with its objections and its trace."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from garboard.documents import DocumentPath, Json, equal
from garboard.errors import BadDocument, PatchFailed
from garboard.patches.directives import DIRECTIVES
from garboard.patches.findings import Finding
from garboard.patches.json6902 import apply_args, apply_json
from garboard.patches.merge import apply_merge
from garboard.patches.numbers import as_decoded
from garboard.patches.patch import Patch, PatchType
from garboard.patches.strategic import apply_strategic
from garboard.patches.taking import Remark, Taker, copy_of
from garboard.patches.trace import Trace
from garboard.schema import StructType


@dataclass(frozen=True, slots=True)
class Replayed:
    """What another run made of the document, and the patches that it could not apply and left out."""

    document: Json
    failed: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that can be repeated with other patches: the document that it began with, and what followed the patches."""

    original: Json
    shape: StructType | None
    last: tuple[Callable[[Json], Json], ...] = ()

    def without_each(self, patches: Sequence[Patch]) -> Iterator[Replayed]:
        """Yield what comes of the document without the first of `patches`, without the second, and so on.

        A patch that fails without another one is left out with it, so that something can be said of the rest. What
        follows the patches may refuse the outcome (it is no Pod any more, say); then it is left out as well.
        """
        before = copy_of(self.original)
        for number, patch in enumerate(patches, start=1):
            yield self._run(before, patches[number:])
            before = _apply(before, patch, self.shape, Taker())

    def _run(self, before: Json, patches: Sequence[Patch]) -> Replayed:
        failed: list[Patch] = []
        while True:
            document = copy_of(before)
            for patch in patches:
                try:
                    document = _apply(document, patch, self.shape, Taker())
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
    """The patched document, what strict mode objects to, who wrote what, and how to run it again without a patch."""

    document: Json
    patches: tuple[Patch, ...]
    findings: tuple[Finding, ...] = ()
    trace: Trace | None = None
    replay: Replay | None = None

    def then(self, step: Callable[[Json], Json]) -> Self:
        """Return this with `step` done to the document, in this run and in every replay of it."""
        replay = self.replay and replace(self.replay, last=(*self.replay.last, step))
        return replace(self, document=step(self.document), replay=replay)


def apply_patches(document: Json, patches: Sequence[Patch], shape: StructType | None) -> Applied:
    """Apply `patches` in order and nothing else: the quick way, for callers who have no questions.

    `document` is taken over. `shape` is the type that strategic patches merge by; None if it is not known.
    """
    for patch in patches:
        document = _apply(document, patch, shape, Taker())
    return Applied(document, tuple(patches))


def apply_watched(document: Json, patches: Sequence[Patch], shape: StructType | None) -> Applied:
    """Apply `patches` in order, noting who writes what and everything that strict mode would refuse."""
    trace = Trace(document)
    findings: list[Finding] = []
    original = copy_of(document) if patches else document
    for number, patch in enumerate(patches):
        trace.patch = number
        taker = Taker(trace)
        before = copy_of(document) if number else original
        document = _apply(document, patch, shape, taker)
        remarks = [*taker.remarks, *_afterthoughts(before, document, patch, number, trace)]
        findings += [finding_from(patch, remark) for remark in remarks]
    return Applied(document, tuple(patches), tuple(findings), trace, Replay(original, shape))


def finding_from(patch: Patch, remark: Remark) -> Finding:
    """Return the remark with its place in the patch file."""
    return Finding(patch.source.name, patch.source.position(remark.at), remark.error_class, remark.message, remark.hint)


def _apply(document: Json, patch: Patch, shape: StructType | None, taker: Taker) -> Json:
    try:
        if patch.type is PatchType.MERGE:
            return apply_merge(document, patch.value, taker)
        if patch.type is PatchType.JSON:
            return apply_json(document, patch.value, taker)
        if patch.type is PatchType.ARGS:
            return apply_args(document, patch.value, taker)
        return apply_strategic(as_decoded(document), patch.value, _known(shape), taker)
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


def _afterthoughts(before: Json, after: Json, patch: Patch, number: int, trace: Trace) -> list[Remark]:
    """Return the remarks that only the outcome shows."""
    remarks = [
        Remark("leaked-directive", f"the directive {name!r} took no effect and stays in the result as data", at)
        for name, at in _leaked(after, number, trace)
    ]
    if isinstance(before, dict) and isinstance(after, dict):
        for key in ("apiVersion", "kind"):
            if not equal(before.get(key), after.get(key)):
                message = f"the patch changes {key} from {before.get(key)!r} to {after.get(key)!r}"
                remarks.append(Remark("kind-change", message, (key,)))
    if equal(before, after) and not _is_only_tests(patch):
        hint = "remove the patch, or look for a misspelt field or value"
        remarks.append(Remark("no-change", "the patch changes nothing", (), hint))
    return remarks


def _is_only_tests(patch: Patch) -> bool:
    """Tell whether the patch is a guard: JSON operations that test and are not meant to change anything."""
    return isinstance(patch.value, list) and all(
        isinstance(operation, dict) and operation.get("op") == "test" for operation in patch.value
    )


def _leaked(document: Json, number: int, trace: Trace) -> list[tuple[str, DocumentPath]]:
    """Return the directives in `document` that patch `number` brought there, with their places in the patch."""
    found: list[tuple[str, DocumentPath]] = []
    if isinstance(document, dict):
        for key in document:
            if key.startswith(DIRECTIVES):
                writes = trace.writes(document, key)
                birth = trace.birth(document)
                if writes and writes[-1].patch == number:
                    found.append((key, writes[-1].at))
                elif not writes and birth is not None and birth.patch == number:
                    found.append((key, (*birth.at, key)))
    members = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    for member in members:
        if isinstance(member, dict | list):
            found += _leaked(member, number, trace)
    return found
