"""Linting: every finding about patches for one kind of document, with documents to try them on if there are any."""

from collections.abc import Sequence
from dataclasses import dataclass

from garboard.documents import Json
from garboard.errors import PatchFailed
from garboard.patches.apply import apply_patches, apply_watched
from garboard.patches.check import COMPONENTS, PatchChecks
from garboard.patches.findings import Finding, Severity, in_reading_order
from garboard.patches.overlaps import find_overlaps
from garboard.patches.patch import Patch
from garboard.patches.static_overlaps import find_static_overlaps
from garboard.patches.taking import copy_of
from garboard.patches.targets import Target, target_of
from garboard.schema import Schema, StructType


@dataclass(frozen=True, slots=True)
class Subject:
    """What patches are for: a type, the program it runs if that is known, and documents to try them on."""

    shape: StructType | None
    component: str | None = None
    originals: tuple[Json, ...] = ()

    @classmethod
    def of_target(cls, target: Target, schema: Schema, originals: Sequence[Json] = ()) -> "Subject":
        mine = tuple(each for each in originals if target_of(each, schema.version) == target)
        return cls(target.shape(schema), COMPONENTS.get(target.name), mine)


def lint_patches(patches: Sequence[Patch], subject: Subject, checks: PatchChecks) -> list[Finding]:
    """Return every finding about patches that are applied in this order, each once, by file and place."""
    findings = checks.check(patches, subject.shape, subject.component)
    if not subject.originals:
        return in_reading_order([*findings, *find_static_overlaps(patches, subject.shape)])
    tried = [each for original in subject.originals for each in try_patches(original, patches, subject.shape)]
    return in_reading_order([*findings, *_news(tried, findings)])


# What a misspelt name leads to when the patch is tried.
CONSEQUENCES = frozenset({"path-missing", "unknown-field", "bad-index"})


def _news(tried: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """Return what trying shows and the types have not told: where they have, it is the same again, told less well."""
    same = {(each.file, each.position, each.error_class) for each in told}
    lines = {(each.file, each.position.line) for each in told if each.severity is Severity.ERROR}
    return [
        each
        for each in tried
        if (each.file, each.position, each.error_class) not in same
        and not (each.error_class in CONSEQUENCES and (each.file, each.position.line) in lines)
    ]


def try_patches(original: Json, patches: Sequence[Patch], shape: StructType | None) -> list[Finding]:
    """Return what applying the patches to a document shows; one that fails is reported and left out."""
    findings: list[Finding] = []
    good: list[Patch] = []
    document = copy_of(original)
    for patch in patches:
        try:
            document = apply_patches(copy_of(document), [patch], shape).document
            good.append(patch)
        except PatchFailed as error:
            findings.append(_failure(patch, error))
    applied = apply_watched(copy_of(original), good, shape)
    return [*findings, *applied.findings, *find_overlaps(applied)]


def _failure(patch: Patch, error: PatchFailed) -> Finding:
    message = error.message.removeprefix(f"{patch.where(error.at)}: ")
    return Finding(patch.source.name, patch.source.position(error.at), error.error_class, message, error.hint)
