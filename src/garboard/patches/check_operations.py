"""Checking JSON patches: each pointer is followed through the type, and each value checked against where it goes."""

from dataclasses import dataclass

from garboard.documents import DocumentPath, Json
from garboard.patches.check_types import CONTAINER, Reading, TypeCheck
from garboard.schema import Field, StructType, suggest

NEEDS = {
    "add": ("path", "value"),
    "replace": ("path", "value"),
    "test": ("path", "value"),
    "remove": ("path",),
    "move": ("from", "path"),
    "copy": ("from", "path"),
}
MEMBERS = ("op", "path", "from", "value")


@dataclass(frozen=True, slots=True)
class Step:
    """One name in a pointer, and what it was looked up in."""

    holder: Field
    name: str


@dataclass(frozen=True, slots=True)
class OperationCheck:
    types: TypeCheck

    def run(self, operations: Json, shape: StructType | None) -> None:
        """Check a JSON patch; without a type only the operations themselves are looked at."""
        if operations is None:
            return
        if not isinstance(operations, list):
            self._bad("bad-document", "a JSON patch must be a list of operations", ())
            return
        root = None if shape is None else Field("struct", type=shape)
        for index, operation in enumerate(operations):
            if isinstance(operation, dict):
                self._operation(operation, root, (index,))
            else:
                self._bad("bad-operation", "each operation must be a mapping", (index,))

    def _operation(self, operation: dict[str, Json], root: Field | None, at: DocumentPath) -> None:
        name = operation.get("op")
        if not isinstance(name, str) or name not in NEEDS:
            near = suggest(name, NEEDS) if isinstance(name, str) else None
            hint = f"did you mean {near!r}?" if near else f"it is one of {', '.join(NEEDS)}"
            self._bad("bad-operation", f"{name!r} is not an operation", (*at, "op"), hint)
            return
        self._members(operation, name, at)
        for key in ("from", "path"):
            if key not in NEEDS[name] or key not in operation:
                continue
            pointer = operation[key]
            if not isinstance(pointer, str):
                self._bad("bad-operation", f"{key!r} is not text", (*at, key))
            elif pointer and not pointer.startswith("/"):
                self._bad("path-missing", f"the pointer {pointer!r} does not begin with '/'", (*at, key))
            elif root is not None:
                self._pointer(pointer, operation, root, (*at, key))

    def _members(self, operation: dict[str, Json], name: str, at: DocumentPath) -> None:
        for key in operation:
            if key not in MEMBERS:
                near = suggest(key, MEMBERS)
                self.types.notes.warning(
                    "unknown-field",
                    f"an operation has no member {key!r}; it is ignored",
                    (*at, key),
                    f"did you mean {near!r}?" if near else None,
                )
        for key in NEEDS[name]:
            # A test without a value asks for null, which is a way to say that nothing may be there.
            if key not in operation and (name, key) != ("test", "value"):
                self._bad("bad-operation", f"{name} needs {key!r}", at)

    def _pointer(self, pointer: str, operation: dict[str, Json], root: Field, at: DocumentPath) -> None:
        steps: list[Step] = []
        field: Field | None = root
        for number, raw in enumerate(pointer.split("/")[1:]):
            name = raw.replace("~1", "/").replace("~0", "~")
            if field is None:
                return
            steps.append(Step(field, name))
            found = self._step(field, name, at, number)
            if isinstance(found, str):
                return
            field = found
        if field is not None and at[-1] == "path" and "value" in operation:
            self._value(operation["value"], field, steps, (*at[:-1], "value"))

    def _step(self, field: Field, name: str, at: DocumentPath, number: int) -> "Field | str | None":
        """Return what a name leads to, None where anything goes, or a text once an error has been noted."""
        notes = self.types.notes
        if field.kind == "any":
            return None
        if field.kind == "struct" and field.type is not None:
            if name in field.type.fields:
                return field.type.fields[name]
            self.types.unknown_field(name, field.type, at, number)
        elif field.kind == "map":
            return field.of
        elif field.kind == "list":
            if name == "-" or (name.isascii() and name.isdigit() and str(int(name)) == name):
                return field.of
            notes.error_in_pointer("bad-index", f"{name!r} is not an index of a list", at, number)
        else:
            notes.error_in_pointer("path-missing", f"there is nothing below a {field.scalar}", at, number)
        return "noted"

    def _value(self, value: Json, field: Field, steps: list[Step], at: DocumentPath) -> None:
        self.types.value(value, field, at, Reading.VERBATIM)
        container = next((n for n, step in enumerate(steps) if _is_container(step.holder)), None)
        if container is None or steps[container].name not in ("command", "args"):
            return
        flags = self.types.flags
        # The main container of a static Pod is its first; which other one is meant, only the document tells.
        is_main = container > 0 and steps[container - 1].name == "0"
        if flags.component is None or not is_main:
            return
        if isinstance(value, list) and steps[container].name == "command":
            flags.command(value, flags.component, at, is_main=True)
        elif isinstance(value, list):
            flags.words(value, flags.component, at, first=0)
        elif isinstance(value, str):
            flags.one_word(value, flags.component, at)

    def _bad(self, rule: str, message: str, at: DocumentPath, hint: str | None = None) -> None:
        self.types.notes.error(rule, message, at, hint)


def _is_container(field: Field) -> bool:
    return field.type is not None and field.type.name == CONTAINER
