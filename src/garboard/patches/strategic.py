"""Strategic merge: a patch map into a document map, as the API machinery of Kubernetes does it.

The rules, accidents included, are those of `k8s.io/apimachinery/pkg/util/strategicpatch`; docs/patches.md
summarizes them. Lists are in `strategic_list`. The document is changed in place, the patch never is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from garboard.documents import DocumentPath, Json, equal
from garboard.errors import PatchFailed
from garboard.patches.json_values import ABSENT, Absent, as_json
from garboard.patches.strategic_fields import (
    DELETE_FROM_LIST,
    DIRECTIVE,
    RETAIN_KEYS,
    SET_ORDER,
    Shape,
    element_shape,
    member_shape,
)
from garboard.patches.strategic_list import arrange, check_order, merge_list
from garboard.patches.writer import DocumentWriter
from garboard.schema import FieldType, StructType


def apply_strategic(original: Json, patch: Json, shape: StructType, writer: DocumentWriter | None = None) -> Json:
    """Apply `patch` to `original`, which is changed in place; return the result."""
    if patch is None:
        return original
    if not isinstance(patch, dict):
        raise PatchFailed("a strategic patch must be a mapping", error_class="bad-document")
    if not isinstance(original, dict):
        raise PatchFailed("a strategic patch needs an object to apply to", error_class="bad-document")
    return MapMerge(writer or DocumentWriter(), is_applying=True).merge(original, patch, shape, ())


def combine_patches(first: dict[str, Json], second: dict[str, Json], shape: StructType) -> dict[str, Json]:
    """Lay one strategic patch over another, keeping nulls and directives; `first` is changed in place."""
    return MapMerge(DocumentWriter(), is_applying=False).merge(first, second, shape, ())


@dataclass(frozen=True, slots=True)
class MapMerge:
    """One merge; `is_applying` is false where two patches are combined, whose nulls and directives must survive."""

    writer: DocumentWriter
    is_applying: bool

    def merge(
        self, original: dict[str, Json], patch: dict[str, Json], shape: Shape, at: DocumentPath
    ) -> dict[str, Json]:
        """Merge `patch` into `original` and return the outcome (`original` itself unless a directive replaced it)."""
        if DIRECTIVE in patch:
            return self._directive(patch, at)
        if RETAIN_KEYS in patch:
            self._retain_keys(original, patch, at)
        ordered = self._merge_ordered_lists(original, patch, shape, at)
        for key, value in patch.items():
            if key == RETAIN_KEYS or key.startswith(SET_ORDER) or key in ordered:
                continue
            if not key.startswith(DELETE_FROM_LIST):
                self._merge_member(original, key, value, shape, (*at, key), is_delete_list=False)
            elif self.is_applying:
                self._merge_member(original, _field_of(key, at), value, shape, (*at, key), is_delete_list=True)
            else:
                original[key] = self.writer.copy(value, (*at, key))
        return original

    def _directive(self, patch: dict[str, Json], at: DocumentPath) -> dict[str, Json]:
        directive = patch[DIRECTIVE]
        if directive == "replace":
            rest: Json = {key: value for key, value in patch.items() if key != DIRECTIVE}
            taken = self.writer.copy(rest, at)
            assert isinstance(taken, dict)
            return taken
        if directive == "delete":
            emptied: dict[str, Json] = {}
            self.writer.copy(emptied, at)
            return emptied
        raise PatchFailed(
            f"$patch is {directive!r} here, which is neither 'replace' nor 'delete'",
            error_class="bad-directive",
            at=(*at, DIRECTIVE),
        )

    def _retain_keys(self, original: dict[str, Json], patch: dict[str, Json], at: DocumentPath) -> None:
        place = (*at, RETAIN_KEYS)
        keys = patch[RETAIN_KEYS]
        if not self.is_applying:
            if RETAIN_KEYS in original and not equal(original[RETAIN_KEYS], keys):
                raise PatchFailed("the two patches retain different keys", error_class="bad-directive-format", at=place)
            original.setdefault(RETAIN_KEYS, self.writer.copy(keys, place))
            return
        if not isinstance(keys, list):
            raise PatchFailed("$retainKeys must be a list", error_class="bad-directive-format", at=place)
        retained = {key for key in keys if isinstance(key, str)}
        for key in _kept_by_patch(patch):
            if key not in retained:
                message = f"the patch sets {key!r}, which its $retainKeys does not list"
                raise PatchFailed(message, error_class="bad-directive-format", at=place)
        for key in [key for key in original if key not in retained]:
            self.writer.remove(original, key, place)

    def _merge_member(
        self, original: dict[str, Json], key: str, value: Json, shape: Shape, at: DocumentPath, *, is_delete_list: bool
    ) -> None:
        if value is None and key in original:
            self.writer.remove(original, key, at)
        elif value is None:
            self.writer.remove_absent(original, key, at)
        if value is None and self.is_applying:
            return
        before = original.get(key, ABSENT)
        if isinstance(before, Absent) or type(before) is not type(value):
            if is_delete_list:
                self.writer.remark("zero-match", f"there is no list {key!r} to delete from", at)
            else:
                self._copy_over(original, key, value, at)
        elif isinstance(value, dict) and isinstance(before, dict):
            self._merge_map(original, key, before, value, member_shape(shape, key, at), at)
        elif isinstance(value, list) and isinstance(before, list):
            field = member_shape(shape, key, at)
            elements = element_shape(field, at)
            if field.strategy == "merge" or is_delete_list:
                merged = merge_list(self, before, value, elements, field.merge_key, at, is_delete_list=is_delete_list)
                self._keep_list(original, key, before, merged)
            else:
                self.writer.set(original, key, self.writer.copy(value, at), at)
        else:
            self.writer.set(original, key, value, at)

    def _merge_map(
        self,
        original: dict[str, Json],
        key: str,
        before: dict[str, Json],
        value: dict[str, Json],
        field: Shape,
        at: DocumentPath,
    ) -> None:
        if not isinstance(field, StructType) and field.strategy == "replace":
            self.writer.set(original, key, self.writer.copy(value, at), at)
            return
        merged = self.merge(before, value, field, at)
        if merged is not before:
            self.writer.set(original, key, merged, at)

    def _copy_over(self, original: dict[str, Json], key: str, value: Json, at: DocumentPath) -> None:
        taken = self.writer.copy_pruned(value, at, nulls=self.is_applying, directives=True)
        if not isinstance(taken, Absent):
            self.writer.set(original, key, taken, at)
        elif key in original:
            self.writer.remove(original, key, at)
        else:
            self.writer.remark("zero-match", f"$patch acts on {key!r}, which is not there, and adds nothing", at)

    def _merge_ordered_lists(
        self, original: dict[str, Json], patch: dict[str, Json], shape: Shape, at: DocumentPath
    ) -> frozenset[str]:
        """Handle every `$setElementOrder/FIELD` together with its list; return the fields that need nothing more."""
        done = []
        for key, order in patch.items():
            if key.startswith(SET_ORDER) and self._merge_ordered_list(original, patch, key, order, shape, (*at, key)):
                done.append(_field_of(key, at))
        return frozenset(done)

    def _merge_ordered_list(
        self, original: dict[str, Json], patch: dict[str, Json], key: str, order: Json, shape: Shape, at: DocumentPath
    ) -> bool:
        if not self.is_applying:
            if key in original and not equal(original[key], order):
                raise PatchFailed("the two patches want different orders", error_class="bad-directive-format", at=at)
            original.setdefault(key, self.writer.copy(order, at))
        order = _list_or_refuse(order, at)
        name = _field_of(key, at[:-1])
        before = _list_or_refuse(original[name], at) if name in original else None
        wanted_at = (*at[:-1], name)
        wanted = _list_or_refuse(patch[name], wanted_at) if name in patch else None
        field = member_shape(shape, name, at)
        element_shape(field, at)  # refuses a field that is no list
        check_order(wanted or [], order, field.merge_key, at)
        if before is None and wanted is None:
            return False
        # Deleting from the old list shifts it in place, and the order below is read from what that leaves behind.
        seen = list(before or [])
        merged = self._ordered_content(before, wanted, field, wanted_at, seen)
        arranged = arrange(merged, order, seen, before or [], wanted or [], field.merge_key, at)
        if before is None:
            self.writer.record_container(arranged, wanted_at)
            self.writer.set(original, name, arranged, wanted_at)
        else:
            self._keep_list(original, name, before, arranged)
            if wanted is not None and field.strategy != "merge":
                self.writer.record(original, name, wanted_at, before, arranged)
        return True

    def _ordered_content(
        self,
        before: list[Json] | None,
        wanted: list[Json] | None,
        field: FieldType,
        at: DocumentPath,
        seen: list[Json],
    ) -> list[Json]:
        """Return what the list will hold, not yet in order; `seen` becomes what the merge leaves in its old place."""
        if wanted is None:
            return list(before or [])
        if before is None:
            return _list_or_refuse(as_json(self.writer.copy_pruned(wanted, at, nulls=False, directives=True)), at)
        if field.strategy == "merge":
            return merge_list(self, before, wanted, element_shape(field, at), field.merge_key, at, storage=seen)
        return _list_or_refuse(self.writer.copy(wanted, at), at)

    @staticmethod
    def _keep_list(original: dict[str, Json], key: str, before: list[Json], merged: list[Json]) -> None:
        """Put the new content into the old list object, whose identity the trace knows."""
        if before is not merged:
            before[:] = merged
        original[key] = before


def _kept_by_patch(patch: dict[str, Json]) -> Iterable[str]:
    for key, value in patch.items():
        if value is not None and key != RETAIN_KEYS and not key.startswith((DELETE_FROM_LIST, SET_ORDER)):
            yield key


def _field_of(key: str, at: DocumentPath) -> str:
    """Return FIELD of `$directive/FIELD`."""
    prefix, slash, field = key.partition("/")
    if not slash or prefix not in (DELETE_FROM_LIST, SET_ORDER):
        raise PatchFailed(
            f"{key!r} must name its field, as in {prefix}/FIELD", error_class="bad-directive-format", at=(*at, key)
        )
    return field


def _list_or_refuse(value: Json, at: DocumentPath) -> list[Json]:
    if not isinstance(value, list):
        raise PatchFailed(
            "an order is given for something that is not a list", error_class="bad-directive-format", at=at
        )
    return value
