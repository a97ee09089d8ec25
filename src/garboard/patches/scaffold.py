"""The beginning of a patch for a document: all there is to change, to be uncommented, or the fields asked for."""

from collections.abc import Iterator, Sequence

from garboard.documents import DocumentPath, Json, write_yaml
from garboard.errors import BadUsage, PatchFailed
from garboard.patches.args import command_of
from garboard.patches.asking import refuse_misspelt, type_below
from garboard.patches.fieldpath import FieldPath, step_to
from garboard.patches.json_values import Absent, copy_of, value_at
from garboard.patches.patch import PatchType
from garboard.patches.targets import Target
from garboard.rules.command_line import find_flag, flag_name
from garboard.schema import FieldType, Schema, StructType, suggest

_TYPES = {PatchType.STRATEGIC: "strategic", PatchType.JSON: "JSON", PatchType.ARGS: "flag"}
_CONTAINERS = ("containers", "initContainers")
# Written by others, or the flags, which a patch of their own changes one at a time.
_LEFT_OUT = frozenset({"apiVersion", "kind", "status", "creationTimestamp", "command"})


def scaffold(document: Json, target: Target, type_: PatchType, fields: Sequence[str], schema: Schema) -> str:
    """Return the text of a patch file for a target: `fields` with their present values, or everything commented out."""
    of = target.shape(schema), schema
    given, document = document, copy_of(document)
    paths = [] if type_ is PatchType.ARGS else [_found(field, document, *of) for field in fields]
    begin = f"# A {_TYPES[type_]} patch for {target.name} of Kubernetes {schema.version.as_minor}."
    if type_ is PatchType.ARGS:
        return f"{begin} A flag that is null is removed.\n{_flags(document, fields, target, schema)}"
    if type_ is PatchType.JSON:
        if not fields:
            raise BadUsage("a JSON patch needs the fields that it changes", hint="name them: spec.priorityClassName")
        operations: list[Json] = [each for path in paths for each in _operations(path, document, given)]
        return f"{begin} It fails if a value is not the one that the test expects.\n{write_yaml(operations)}"
    if fields:
        tree = _tree(document, paths, target.shape(schema))
        return f"{begin}\n{write_yaml(tree)}"
    flags = f"# Flags have a patch of their own: garboard patch new {target.name} --type args\n"
    body = "".join(f"{line}\n" for line in _commented(document, ""))
    return f"{begin} Uncomment what it changes, and delete the rest.\n{flags if target.component else ''}{body}"


def _flags(document: Json, names: Sequence[str], target: Target, schema: Schema) -> str:
    words = command_of(document)[1][1:]
    known = schema.component(target.component) if target.component else None
    for name in (each.lstrip("-") for each in names):
        if known is not None and target.component is not None and find_flag(name, known, target.component) is None:
            near = suggest(name, known.flags)
            raise BadUsage(
                f"{target.component} of Kubernetes {schema.version.as_minor} has no flag --{name}",
                hint=f"did you mean {near}?" if near else "the program's --help lists its flags",
            )
    present = {flag_name(word): word.partition("=")[2] for word in words if flag_name(word)}
    if not names:
        return "".join(f"# {line}\n" for line in write_yaml(dict(present)).splitlines())
    return write_yaml({name.lstrip("-"): present.get(name.lstrip("-"), "") for name in names})


def _found(field: str, document: Json, shape: StructType, schema: Schema) -> DocumentPath:
    """Return where a field is; one of the type that is not set gets an empty value, to be filled in."""
    parsed = FieldPath.parse(field)
    path = parsed.resolve(document)
    if path is None:
        refuse_misspelt(parsed, document, shape, schema)
        path = _filled_in(parsed, document, FieldType("struct", type=shape))
    if path is None:
        raise PatchFailed(
            f"there is no {field} in the document",
            error_class="path-missing",
            hint="name a field that is there, or write the patch without it",
        )
    return path


def _filled_in(field: FieldPath, document: Json, type_: FieldType | None) -> DocumentPath | None:
    """Set a field of the type that is not set; return where it is, or nothing if it needs an element of a list."""
    path: list[str | int] = []
    for segment in field.segments:
        below = type_below(type_, segment)
        step = step_to(document, segment)
        if step is None:
            if not isinstance(document, dict) or not isinstance(segment, str) or below is None:
                return None
            document[segment] = _nothing(below)
            step = segment
        path.append(step)
        document, type_ = document[step], below  # type: ignore[index]
    return tuple(path)


def _nothing(field: FieldType) -> Json:
    """Return a value of a type that says nothing yet."""
    if field.kind == "list":
        return []
    if field.kind != "scalar":
        return {}
    by_scalar: dict[str, Json] = {"bool": False, "duration": "0s", "quantity": "0"}
    is_number = field.scalar.startswith(("int3", "int6", "uint", "float"))
    return by_scalar.get(field.scalar, 0 if is_number else "")


def _operations(path: DocumentPath, document: Json, given: Json) -> Iterator[Json]:
    pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
    value = value_at(document, path)
    assert not isinstance(value, Absent)
    if isinstance(value_at(given, path), Absent):
        if isinstance(value_at(given, path[:-1]), Absent):
            raise PatchFailed(
                f"there is nothing at {pointer.rpartition('/')[0]} to add to",
                error_class="path-missing",
                hint="name the field above it, or write a strategic patch",
            )
        yield {"op": "add", "path": pointer, "value": copy_of(value)}
        return
    yield {"op": "test", "path": pointer, "value": copy_of(value)}
    yield {"op": "replace", "path": pointer, "value": copy_of(value)}


def _tree(document: Json, paths: Sequence[DocumentPath], shape: StructType) -> dict[str, Json]:
    """Return the strategic patch that sets the values at `paths`, with the merge keys on the way to them."""
    tree: dict[str, Json] = {}
    for path in paths:
        _graft(tree, document, path, shape)
    return tree


def _graft(tree: dict[str, Json], document: Json, path: DocumentPath, shape: StructType | None) -> None:
    step, rest = path[0], path[1:]
    field = shape.fields.get(str(step)) if shape else None
    value = value_at(document, (step,))
    assert isinstance(step, str)
    assert not isinstance(value, Absent)
    if rest and isinstance(value, dict):
        below = tree.setdefault(step, {})
        assert isinstance(below, dict)
        _graft(below, value, rest, field.type if field else None)
    elif len(rest) > 1 and isinstance(value, list) and field is not None and field.merge_key:
        element = value_at(value, rest[:1])
        elements = tree.setdefault(step, [])
        assert isinstance(element, dict)
        assert isinstance(elements, list)
        key = field.merge_key
        mine = next((each for each in elements if isinstance(each, dict) and each[key] == element[key]), None)
        if mine is None:
            mine = {key: element[key]}
            elements.append(mine)
        _graft(mine, element, rest[1:], field.of.type if field.of else None)
    else:  # all of a list that is replaced whole
        tree[step] = copy_of(value)


def _commented(value: Json, indent: str) -> Iterator[str]:
    """Yield a mapping as comments, except what leads to the containers: their names are what they merge by."""
    assert isinstance(value, dict)
    for key, member in value.items():
        if key in _LEFT_OUT:
            continue
        if isinstance(member, dict) and _leads_to_containers(member):
            yield f"{indent}{key}:"
            yield from _commented(member, f"{indent}  ")
        elif key in _CONTAINERS and isinstance(member, list):
            yield f"{indent}{key}:"
            for element in member:
                assert isinstance(element, dict)
                yield f"{indent}- name: {element['name']}"
                rest = {name: each for name, each in element.items() if name != "name"}
                yield from _commented(rest, f"{indent}  ")
        else:
            yield from (f"{indent}# {line}" for line in write_yaml({key: member}).splitlines())


def _leads_to_containers(value: dict[str, Json]) -> bool:
    return any(key in _CONTAINERS for key in value) or any(
        isinstance(member, dict) and _leads_to_containers(member) for member in value.values()
    )
