"""Checking patches by themselves: what is wrong with them whatever document they are applied to.

Strict mode refuses these errors, lint reports them; both call `PatchChecks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Json
from garboard.patches.check_directives import DirectiveCheck
from garboard.patches.check_flags import FlagCheck
from garboard.patches.check_types import CONTAINER, Reading, TypeCheck, short_name
from garboard.patches.exceptions import check_exceptions
from garboard.patches.findings import Finding, PatchFindings
from garboard.patches.patch import Patch, PatchType
from garboard.schema import FieldType, Schema, StructType, suggest

# What each operation of a JSON patch needs.
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
class PatchChecks:
    """The checks of one minor; a patch that is meant for many objects is checked once."""

    schema: Schema
    _done: dict[tuple[int, int, str | None], tuple[Patch, list[Finding]]] = field(default_factory=dict, repr=False)

    def check(self, patches: Sequence[Patch], shape: StructType | None, component: str | None = None) -> list[Finding]:
        """Return the findings about patches for documents of one type."""
        findings: list[Finding] = []
        for patch in patches:
            key = (id(patch), id(shape), component)
            if key not in self._done:
                # The patch is kept as well: its identity must not pass to another one.
                self._done[key] = (patch, check_patch(patch, shape, self.schema, component))
            findings += self._done[key][1]
        return findings


def check_patch(patch: Patch, shape: StructType | None, schema: Schema, component: str | None = None) -> list[Finding]:
    """Return what is wrong with one patch document for a type; `component` is the program that the target runs.

    Without a type, only what the patch language itself demands is checked.
    """
    findings = PatchFindings(patch)
    for name, position in patch.source.repeated_keys:
        message = f"{name!r} stands twice in one mapping, and only the last one counts"
        findings.all.append(Finding(patch.source.name, position, "repeated-key", message, "remove one of the two"))
    findings.all.extend(check_exceptions(patch))
    types = TypeCheck(findings, schema, FlagCheck(findings, schema, component), DirectiveCheck(findings))
    try:
        _check_content(patch, shape, types)
    except RecursionError:
        findings.error("bad-document", "the patch is nested too deeply", ())
    return findings.all


def _check_content(patch: Patch, shape: StructType | None, types: TypeCheck) -> None:
    if patch.type is PatchType.JSON:
        OperationCheck(types).run(patch.value, shape)
    elif patch.type is PatchType.ARGS:
        types.flags.args(patch.value, is_pod=shape is not None and short_name(shape) == "Pod")
    else:
        _check_mapping(patch, shape, types)


def _check_mapping(patch: Patch, shape: StructType | None, types: TypeCheck) -> None:
    if patch.value is None and patch.type is PatchType.STRATEGIC:
        return
    if not isinstance(patch.value, dict):
        message = f"a {patch.type} patch must be a mapping"
        types.findings.error("bad-document", message, (), "remove the document, or write it as a mapping of fields")
    elif shape is not None:
        reading = Reading.STRATEGIC if patch.type is PatchType.STRATEGIC else Reading.MERGE
        types.members(patch.value, shape, (), reading)
        _check_kind(patch.value, shape, types)


def _check_kind(document: dict[str, Json], shape: StructType, types: TypeCheck) -> None:
    """Refuse a patch that names another kind than the one it is for."""
    if not {"apiVersion", "kind"} & document.keys():
        return
    known = [kind for kind in types.schema.kinds() if kind.type is shape]
    for key, right in (
        ("apiVersion", [kind.api_version for kind in known]),
        ("kind", [kind.name for kind in known]),
    ):
        if known and key in document and document[key] not in right:
            message = f"the patch is for {short_name(shape)} and changes {key} to {document[key]!r}"
            hint = f"remove {key}, or write {' or '.join(sorted(right))}"
            types.findings.error("kind-change", message, (key,), hint)


@dataclass(frozen=True, slots=True)
class PointerStep:
    """One name in a pointer, and what it was looked up in."""

    holder: FieldType
    name: str


@dataclass(frozen=True, slots=True)
class OperationCheck:
    """Follows each pointer of a JSON patch through the type, and checks each value against where it goes."""

    types: TypeCheck

    def run(self, operations: Json, shape: StructType | None) -> None:
        """Check a JSON patch; without a type only the form of the operations is checked."""
        if operations is None:
            return
        if not isinstance(operations, list):
            self._bad("bad-document", "a JSON patch must be a list of operations", ())
            return
        root = None if shape is None else FieldType("struct", type=shape)
        for index, operation in enumerate(operations):
            if isinstance(operation, dict):
                self._operation(operation, root, (index,))
            else:
                self._bad("bad-operation", "each operation must be a mapping", (index,))

    def _operation(self, operation: dict[str, Json], root: FieldType | None, at: DocumentPath) -> None:
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
                self.types.findings.warning(
                    "unknown-field",
                    f"an operation has no member {key!r}; it is ignored",
                    (*at, key),
                    f"did you mean {near!r}?" if near else None,
                )
        for key in NEEDS[name]:
            # A test without a value asks for null, which is a way to say that nothing may be there.
            if key not in operation and (name, key) != ("test", "value"):
                self._bad("bad-operation", f"{name} needs {key!r}", at)

    def _pointer(self, pointer: str, operation: dict[str, Json], root: FieldType, at: DocumentPath) -> None:
        steps: list[PointerStep] = []
        field: FieldType | None = root
        for number, raw in enumerate(pointer.split("/")[1:]):
            name = raw.replace("~1", "/").replace("~0", "~")
            if field is None:
                return
            steps.append(PointerStep(field, name))
            found = self._step(field, name, at, number)
            if isinstance(found, str):
                return
            field = found
        if field is not None and at[-1] == "path" and "value" in operation:
            self._value(operation["value"], field, steps, (*at[:-1], "value"))

    def _step(self, field: FieldType, name: str, at: DocumentPath, number: int) -> "FieldType | str | None":
        """Return the field that a name leads to, None where any value is allowed, or a text after an error."""
        findings = self.types.findings
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
            findings.error_in_pointer("bad-index", f"{name!r} is not an index of a list", at, number)
        else:
            findings.error_in_pointer("path-missing", f"there is nothing below a {field.scalar}", at, number)
        return "error"

    def _value(self, value: Json, field: FieldType, steps: list[PointerStep], at: DocumentPath) -> None:
        self.types.value(value, field, at, Reading.VERBATIM)
        holder = steps[-1].holder.type if steps else None
        if holder is not None:
            self.types.allowed(value, holder, steps[-1].name, at)
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
        self.types.findings.error(rule, message, at, hint)


def _is_container(field: FieldType) -> bool:
    return field.type is not None and field.type.name == CONTAINER
