"""Patching a document for its purpose: one of kubeadm's targets, or an object on its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from garboard.documents import Json
from garboard.errors import BadDocument, PatchFailed
from garboard.patches.apply import Applied, apply_patches, apply_watched
from garboard.patches.check import COMPONENTS, PatchChecks
from garboard.patches.findings import refuse_errors
from garboard.patches.patch import Patch
from garboard.patches.taking import copy_of
from garboard.patches.targets import Target, finish, instance_patch
from garboard.schema import Schema, StructType

_REFUSED_BY_ALL: Final = "correct the patch; kubeadm and kubectl refuse it too"


def patch_object(
    original: Json,
    patches: Sequence[Patch],
    shape: StructType | None,
    *,
    is_watched: bool,
    checks: PatchChecks | None = None,
    component: str | None = None,
) -> Applied:
    """Apply patches to an object, which is taken over; `is_watched` asks for findings and origins as well.

    With `checks`, the findings are also those that the patches show by themselves.
    """
    if not is_watched:
        return apply_patches(original, patches, shape)
    findings = checks.check(patches, shape, component) if checks is not None else []
    try:
        applied = apply_watched(original, patches, shape)
    except PatchFailed:
        # A misspelt field says more than what it leads to.
        refuse_errors(findings, _REFUSED_BY_ALL)
        raise
    return replace(applied, findings=(*findings, *applied.findings))


def patch_target(
    original: Json, patches: Sequence[Patch], target: Target, schema: Schema, *, is_watched: bool
) -> Applied:
    """Apply a target's patches and do what kubeadm does with the outcome; `original` is taken over."""
    unpatched = copy_of(original)
    own = instance_patch(original, target)
    applied = patch_object(
        original,
        [*patches, own] if own else patches,
        target.shape(schema),
        is_watched=is_watched,
        checks=PatchChecks(schema),
        component=COMPONENTS.get(target.name),
    )
    if own:
        # That the node's own patch often changes nothing is no fault of the user's.
        theirs = tuple(finding for finding in applied.findings if finding.file != own.source.name)
        applied = replace(applied, findings=theirs)
    try:
        return applied.then(lambda document: finish(document, unpatched, target, schema))
    except BadDocument:
        refuse_errors(applied.findings, _REFUSED_BY_ALL)  # they know the line of the patch
        raise
