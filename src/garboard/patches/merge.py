"""JSON merge patch (RFC 7396) with the habits of the Go library behind kubectl and kubeadm.

It differs from the RFC in two ways: null members are pruned inside lists too, and a patch that is a scalar or null is
refused instead of replacing the document.
"""

from garboard.documents import DocumentPath, Json
from garboard.errors import PatchFailed
from garboard.patches.taking import Taker, as_json


def apply_merge(original: Json, patch: Json, taker: Taker | None = None) -> Json:
    """Apply `patch` to `original`, which is taken over and changed in place; return the result."""
    taker = taker or Taker()
    if not isinstance(patch, dict | list):
        found = "empty or null" if patch is None else "a scalar"
        raise PatchFailed(
            f"a merge patch must be a mapping, but this one is {found}",
            error_class="bad-document",
            hint="remove the document, or a comment block that stands before a `---` line",
        )
    if original is None:
        raise PatchFailed("a merge patch needs a document to apply to", error_class="bad-document")
    if not isinstance(original, dict) or not isinstance(patch, dict):
        return _pruned(taker, patch, ())
    _merge_members(original, patch, taker, ())
    return original


def _merge_members(original: dict[str, Json], patch: dict[str, Json], taker: Taker, at: DocumentPath) -> None:
    for key, value in patch.items():
        place = (*at, key)
        before = original.get(key)
        if value is None:
            if key in original:
                taker.drop(original, key, place)
            else:
                taker.missed(original, key, place)
        elif not isinstance(before, dict):
            taker.put(original, key, _pruned(taker, value, place), place)
        elif isinstance(value, dict):
            _merge_members(before, value, taker, place)
        else:
            taker.put(original, key, taker.verbatim(value, place), place)


def _pruned(taker: Taker, value: Json, at: DocumentPath) -> Json:
    return as_json(taker.pruned(value, at, nulls=True, directives=False))
