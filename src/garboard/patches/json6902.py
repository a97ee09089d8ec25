"""JSON Patch (RFC 6902) with the deviations of the Go library behind kubectl and kubeadm.

Where that library is more lenient than the RFC, the operation is carried out with a remark: compat mode ignores the
remark, strict mode refuses it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from garboard.documents import DocumentPath, Json, equal
from garboard.errors import PatchFailed
from garboard.patches.args import compile_args
from garboard.patches.fieldpath import IDENTIFYING_KEYS
from garboard.patches.json_values import ABSENT, Absent, Container, JsonOrAbsent, copy_of
from garboard.patches.trace import Item
from garboard.patches.writer import DocumentWriter

MAX_INDEX = 2**63


@dataclass(slots=True)
class JsonPatch:
    """One run over one document, which is changed in place; after a failure it is half patched and of no use."""

    root: Json
    writer: DocumentWriter
    at: DocumentPath = ()

    def run(self, operation: Json, at: DocumentPath) -> None:
        self.at = at
        if not isinstance(operation, dict):
            raise PatchFailed("null is not an operation", error_class="bad-operation", at=self.at)
        name = operation.get("op")
        act = _OPERATIONS.get(name) if isinstance(name, str) else None
        if act is None:
            known = ", ".join(_OPERATIONS)
            raise PatchFailed(
                f"{name!r} is not an operation; it must be one of {known}",
                error_class="bad-operation",
                at=(*self.at, "op") if "op" in operation else self.at,
            )
        act(self, operation)

    def add(self, operation: dict[str, Json]) -> None:
        holder, token = self._find(self._pointer(operation, "path"), "path")
        value = self.writer.copy(self._value(operation), (*self.at, "value"))
        self._insert(holder, token, value, (*self.at, "value"))

    def remove(self, operation: dict[str, Json]) -> None:
        holder, token = self._find(self._pointer(operation, "path"), "path")
        self._record_gone(holder, self._take_out(holder, token, "path"))

    def replace(self, operation: dict[str, Json]) -> None:
        pointer = self._pointer(operation, "path")
        if pointer == "":
            self._replace_root(operation.get("value"))
            return
        holder, token = self._find(pointer, "path")
        value = self.writer.copy(self._value(operation), (*self.at, "value"))
        if isinstance(holder, list):
            position = self._position(holder, token, len(holder), "path")
            before = holder[position]
            holder[position] = value
            self._record_item(holder, before, ABSENT, "path")
            self._record_item(holder, before, value, "value")
            self._record_gone(holder, before)
            return
        if token not in holder:
            self._lenient("path-missing", f"replace of {pointer}, which is not there, adds it", "path")
        self.writer.set(holder, token, value, (*self.at, "value"))

    def _replace_root(self, value: Json) -> None:
        if not isinstance(value, dict | list):
            raise PatchFailed(
                "the whole document can only be replaced by a mapping or a list", error_class="bad-root", at=self.at
            )
        self.root = self.writer.copy(value, (*self.at, "value"))

    def move(self, operation: dict[str, Json]) -> None:
        holder, token = self._find(self._pointer(operation, "from"), "from")
        value = self._take_out(holder, token, "from")
        target, name = self._find(self._pointer(operation, "path"), "path")
        self._insert(target, name, value, (*self.at, "from"))

    def copy(self, operation: dict[str, Json]) -> None:
        pointer = self._pointer(operation, "from")
        found = self._look_up(pointer, "from")
        if isinstance(found, Absent):
            self._lenient("path-missing", f"copy of {pointer}, which is not there, writes null", "from")
            found = None
        target, name = self._find(self._pointer(operation, "path"), "path")
        value = self.writer.copy(copy_of(found), (*self.at, "from"))
        self._insert(target, name, value, (*self.at, "from"))

    def test(self, operation: dict[str, Json]) -> None:
        pointer = self._pointer(operation, "path")
        found = self.root if pointer == "" else self._look_up(pointer, "path")
        wanted = operation.get("value")
        if isinstance(found, Absent) and wanted is None:
            self._lenient("path-missing", f"test of {pointer}, which is not there, passes as null", "path")
            return
        if isinstance(found, Absent) or not equal(found, wanted):
            raise PatchFailed(
                f"the test of {pointer or 'the document'} failed: another value is there",
                error_class="test-failed",
                at=(*self.at, "value") if "value" in operation else self.at,
            )

    def _value(self, operation: dict[str, Json]) -> Json:
        if "value" not in operation:
            self._lenient("bad-operation", f"{operation['op']} without a value writes null", "op")
        return operation.get("value")

    def _pointer(self, operation: dict[str, Json], name: str) -> str:
        pointer = operation.get(name)
        if not isinstance(pointer, str):
            found = "is not text" if name in operation else "is missing"
            raise PatchFailed(f"{name!r} {found}", error_class="bad-operation", at=self.at)
        if pointer and not pointer.startswith("/") and "/" in pointer:
            self._lenient("path-missing", f"{pointer!r} does not begin with '/': the text before it is dropped", name)
        return pointer

    def _look_up(self, pointer: str, name: str) -> JsonOrAbsent:
        holder, token = self._find(pointer, name)
        if isinstance(holder, dict):
            return holder.get(token, ABSENT)
        return holder[self._position(holder, token, len(holder), name)]

    def _find(self, pointer: str, name: str) -> tuple[Container, str]:
        """Return the container that `pointer` leads to, and its last token."""
        tokens = [_unescaped(token) for token in pointer.split("/")[1:]]
        if not tokens:
            self._missing(pointer, name)
        holder = self.root
        for token in tokens[:-1]:
            holder = self._step(holder, token, pointer, name)
        if not isinstance(holder, dict | list):
            self._missing(pointer, name)
        return holder, tokens[-1]

    def _step(self, holder: Json, token: str, pointer: str, name: str) -> Json:
        if isinstance(holder, dict) and token in holder:
            return holder[token]
        if not isinstance(holder, list):
            self._missing(pointer, name)
        try:
            return holder[self._position(holder, token, len(holder), name)]
        except PatchFailed:
            self._missing(pointer, name)

    def _missing(self, pointer: str, name: str) -> NoReturn:
        raise PatchFailed(
            f"there is nothing at {pointer!r} to work on" if pointer else "the whole document cannot be addressed here",
            error_class="path-missing",
            at=(*self.at, name),
            hint="parents are never created: add them first",
        )

    def _position(self, holder: list[Json], token: str, length: int, name: str) -> int:
        """Return the place that an array index names among `length` places."""
        try:
            # int() alone would also take blanks, underscores and other scripts' digits.
            index = int(token) if token.lstrip("+-").isascii() and token.lstrip("+-").isdigit() else MAX_INDEX
        except ValueError:
            index = MAX_INDEX
        if not -length <= index < length:
            raise PatchFailed(
                f"{token!r} is not an index of this list, which has {len(holder)} elements",
                error_class="bad-index",
                at=(*self.at, name),
            )
        if str(index) != token or index < 0:
            self._lenient("bad-index", f"{token!r} is read as index {index} of the list", name)
        return index + length if index < 0 else index

    def _insert(self, holder: Container, token: str, value: Json, at: DocumentPath) -> None:
        if isinstance(holder, dict):
            self.writer.set(holder, token, value, at)
            return
        # A new element has one place more to go to than there are elements, counted from either end.
        position = len(holder) if token == "-" else self._position(holder, token, len(holder) + 1, "path")
        holder.insert(position, value)
        if not isinstance(value, dict | list):
            self.writer.record(holder, Item.of(value), at, ABSENT, value)

    def _take_out(self, holder: Container, token: str, name: str) -> Json:
        if isinstance(holder, list):
            position = self._position(holder, token, len(holder), name)
            self._record_item(holder, holder[position], ABSENT, name)
            return holder.pop(position)
        if token not in holder:
            raise PatchFailed(f"there is no {token!r} to take away", error_class="path-missing", at=(*self.at, name))
        value = holder[token]
        self.writer.remove(holder, token, (*self.at, name))
        return value

    def _record_item(self, holder: list[Json], before: JsonOrAbsent, after: JsonOrAbsent, name: str) -> None:
        value = before if isinstance(after, Absent) else after
        if not isinstance(value, dict | list | Absent):
            self.writer.record(holder, Item.of(value), (*self.at, name), before, after)

    def _record_gone(self, holder: Container, element: Json) -> None:
        """Record that a map is no longer an element of a list; one that is only moved is not gone."""
        if isinstance(holder, list) and isinstance(element, dict):
            name = next((element[key] for key in IDENTIFYING_KEYS if key in element), element)
            self.writer.record(holder, Item.of(name), (*self.at, "path"), element, ABSENT)

    def _lenient(self, error_class: str, message: str, name: str) -> None:
        self.writer.remark(error_class, message, (*self.at, name))


_OPERATIONS: dict[str, Callable[[JsonPatch, dict[str, Json]], None]] = {
    "add": JsonPatch.add,
    "remove": JsonPatch.remove,
    "replace": JsonPatch.replace,
    "move": JsonPatch.move,
    "copy": JsonPatch.copy,
    "test": JsonPatch.test,
}


def apply_json(original: Json, patch: Json, writer: DocumentWriter | None = None) -> Json:
    """Apply `patch` to `original`, which is changed in place; return the result."""
    if patch is None:
        return original
    if not isinstance(patch, list):
        raise PatchFailed("a JSON patch must be a list of operations", error_class="bad-document")
    for index, operation in enumerate(patch):
        if operation is not None and not isinstance(operation, dict):
            raise PatchFailed("each operation must be a mapping", error_class="bad-document", at=(index,))
    run = JsonPatch(original, writer or DocumentWriter())
    for index, operation in enumerate(patch):
        run.run(operation, (index,))
    return run.root


def apply_args(original: Json, args: Json, writer: DocumentWriter | None = None) -> Json:
    """Apply a flag patch as the JSON patch that it compiles to; errors are at the places of the flags."""
    run = JsonPatch(original, writer or DocumentWriter())
    for guarded in compile_args(args, original):
        run.run(guarded.operation, guarded.at)
    return run.root


def _unescaped(token: str) -> str:
    # One pass from left to right: "~01" is "~1", and a lone "~" stands for itself.
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token
