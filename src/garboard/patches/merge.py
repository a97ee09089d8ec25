"""JSON merge patch (RFC 7396) with the deviations of the Go library behind kubectl and kubeadm.

It differs from the RFC in two ways: null members are pruned inside lists too, and a patch that is a scalar or null is
refused instead of replacing the document.
"""

from garboard.documents import DocumentPath, Json
from garboard.errors import PatchFailed
from garboard.patches.json_values import as_json
from garboard.patches.writer import DocumentWriter


def apply_merge(original: Json, patch: Json, writer: DocumentWriter | None = None) -> Json:
    """Apply `patch` to `original`, which is changed in place; return the result."""
    writer = writer or DocumentWriter()
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
        return _pruned(writer, patch, ())
    _merge_members(original, patch, writer, ())
    return original


def _merge_members(original: dict[str, Json], patch: dict[str, Json], writer: DocumentWriter, at: DocumentPath) -> None:
    for key, value in patch.items():
        place = (*at, key)
        before = original.get(key)
        if value is None:
            if key in original:
                writer.remove(original, key, place)
            else:
                writer.remove_absent(original, key, place)
        elif not isinstance(before, dict):
            writer.set(original, key, _pruned(writer, value, place), place)
        elif isinstance(value, dict):
            _merge_members(before, value, writer, place)
        else:
            writer.set(original, key, writer.copy(value, place), place)


def _pruned(writer: DocumentWriter, value: Json, at: DocumentPath) -> Json:
    return as_json(writer.copy_pruned(value, at, nulls=True, directives=False))
