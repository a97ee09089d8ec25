"""Documents decoded into their Go types, read field by field, and encoded again.

A decoded tree holds only what the document sets: unknown fields, nulls and zero values are gone, because Go cannot tell
a zero value from a field that is absent.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Json
from garboard.errors import InvalidValue
from garboard.model.duration import Duration
from garboard.model.minors import MinorFacts
from garboard.schema import FieldType, StructType, load_schema, round_trip, suggest
from garboard.schema.scalars import READERS, REFUSES_NULL, ZEROS, Mismatch

_INTEGER_BITS = {"int": 64, "int32": 32, "int64": 64, "uint32": 32, "uint64": 64}
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")


@dataclass(slots=True)
class Decoded:
    """A decoded tree, the paths of the fields its type does not have, and the values of a wrong type."""

    tree: dict[str, Json] = field(default_factory=dict)
    unknown: list[DocumentPath] = field(default_factory=list)
    meant: list[str] = field(default_factory=list)  # the real field nearest to an unknown one, where there is one
    mismatches: list[str] = field(default_factory=list)
    mismatched: list[DocumentPath] = field(default_factory=list)  # where each of these values stands

    def refuse(self, message: str, path: DocumentPath) -> None:
        self.mismatches.append(message)
        self.mismatched.append(path)


def decode(value: Json, type_: StructType) -> Decoded:
    """Decode one document into its Go type, without failing: the caller decides what is fatal."""
    found = Decoded()
    tree = _Decoder(found).struct(value, type_, (), _Where())
    found.tree = tree if isinstance(tree, dict) else {}
    return found


def path_text(path: DocumentPath) -> str:
    """Write a path as Go does: `apiServer.extraArgs[0].name`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class DecodedObject:
    """The members of one object; reading an absent one gives the default."""

    tree: Mapping[str, Json] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.tree

    def text(self, name: str, default: str = "") -> str:
        value = self.tree.get(name)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: int = 0) -> int:
        value = self.tree.get(name)
        return value if isinstance(value, int) else default

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.tree.get(name)
        return value if isinstance(value, bool) else default

    def choice(self, name: str) -> bool | None:
        """Return a boolean, or None where the document does not set it."""
        value = self.tree.get(name)
        return value if isinstance(value, bool) else None

    def duration(self, name: str, default: Duration) -> Duration:
        value = self.tree.get(name)
        return Duration.parse(value) if isinstance(value, str) else default

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.tree.get(name)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def object(self, name: str) -> "DecodedObject":
        value = self.tree.get(name)
        return DecodedObject(value if isinstance(value, dict) else {})

    def objects(self, name: str) -> "tuple[DecodedObject, ...]":
        value = self.tree.get(name)
        return tuple(DecodedObject(item) for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def without_empty(**members: Json) -> dict[str, Json]:
    """Return the members without zero values, which a decoded document does not have either."""
    return {name: value for name, value in members.items() if value not in (None, "", 0, False) and value != []}


def printed_document(tree: Mapping[str, Json], api_version: str, kind: str, facts: MinorFacts) -> dict[str, Json]:
    """Return the document as kubeadm of the minor writes it."""
    type_ = load_schema(facts.reference).type_of(api_version, kind)
    assert type_ is not None, f"the schema has {api_version} {kind}"
    document: dict[str, Json] = deepcopy({**tree, "apiVersion": api_version, "kind": kind})
    round_trip(document, type_)
    return document


@dataclass(frozen=True, slots=True)
class _Where:
    """The struct and the field names that Go's own messages name, list indices left out."""

    struct: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Decoder:
    found: Decoded

    def struct(self, value: Json, type_: StructType, path: DocumentPath, where: _Where) -> Json:
        if not isinstance(value, dict):
            return self.mismatch(value, _go_name(type_), path, where)
        tree: dict[str, Json] = {}
        for name in sorted(value):
            child = (*path, name)
            known = type_.fields.get(name)
            if known is None:
                self.found.unknown.append(child)
                self.found.meant += [near] if (near := suggest(name, type_.fields)) else []
                continue
            inside = _Where(type_.name.rpartition(".")[2], (*where.fields, name))
            decoded = self.value(value[name], known, child, inside)
            if decoded is not None and (known.pointer or not _is_zero(decoded, known)):
                tree[name] = decoded
        return tree

    def value(self, value: Json, known: FieldType, path: DocumentPath, where: _Where) -> Json:
        if value is None:
            if known.scalar in REFUSES_NULL and not known.pointer:
                self.found.refuse('time: invalid duration ""', path)
            return None
        if known.kind == "struct" and known.type is not None:
            return self.struct(value, known.type, path, where)
        if known.kind == "list" and known.of is not None:
            return self.sequence(value, known, known.of, path, where)
        if known.kind == "map" and known.of is not None:
            return self.mapping(value, known, known.of, path, where)
        return value if known.kind == "any" else self.scalar(value, known, path, where)

    def sequence(self, value: Json, known: FieldType, of: FieldType, path: DocumentPath, where: _Where) -> Json:
        if not isinstance(value, list):
            return self.mismatch(value, _go_type(known), path, where)
        items = [self.value(item, of, (*path, index), where) for index, item in enumerate(value)]
        return [_zero(of) if item is None else item for item in items]

    def mapping(self, value: Json, known: FieldType, of: FieldType, path: DocumentPath, where: _Where) -> Json:
        if not isinstance(value, dict):
            return self.mismatch(value, _go_type(known), path, where)
        items = {name: self.value(value[name], of, (*path, name), where) for name in sorted(value)}
        return {name: _zero(of) if item is None else item for name, item in items.items()}

    def scalar(self, value: Json, known: FieldType, path: DocumentPath, where: _Where) -> Json:
        if known.type is not None:
            return self.self_written(value, known.scalar, path, where)
        if known.scalar in _INTEGER_BITS:
            return value if _is_integer(value, known.scalar) else self.mismatch(value, known.scalar, path, where)
        if known.scalar in ("float32", "float64"):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else self.mismatch(value, known.scalar, path, where)
        expected = {"string": str, "bool": bool}.get(known.scalar)
        if expected is not None and not isinstance(value, expected):
            return self.mismatch(value, known.scalar, path, where)
        return value

    def self_written(self, value: Json, word: str, path: DocumentPath, where: _Where) -> Json:
        """Decode a value whose Go type implements UnmarshalJSON; the errors of such types name no field."""
        if word in ("duration", "time") and not isinstance(value, str):
            return self.mismatch(value, "string", path, where)
        try:
            return _GO_WORDED.get(word, READERS[word])(value)
        except InvalidValue as error:
            self.found.refuse(error.message, path)
        except Mismatch as error:
            self.found.refuse(f"{'.'.join(where.fields)}: {error.reason}", path)
        return None

    def mismatch(self, value: Json, go_type: str, path: DocumentPath, where: _Where) -> Json:
        found = _found(value)
        if found == "number" and go_type in _INTEGER_BITS:
            found = f"number {value}"
        target = f"struct field {where.struct}.{'.'.join(where.fields)}" if where.struct else "value"
        self.found.refuse(f"json: cannot unmarshal {found} into Go {target} of type {go_type}", path)
        return None


def _is_zero(value: Json, known: FieldType) -> bool:
    zero = ZEROS.get(known.scalar, 0)
    return known.kind == "scalar" and isinstance(value, bool) == isinstance(zero, bool) and value == zero


def _zero(known: FieldType) -> Json:
    if known.kind == "struct":
        return {}
    return ZEROS.get(known.scalar, 0) if known.kind == "scalar" else None


def _is_integer(value: Json, go_type: str) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    bits = _INTEGER_BITS[go_type]
    low, high = (0, 1 << bits) if go_type.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
    return low <= value < high


def _found(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    names: dict[type, str] = {str: "string", dict: "object", list: "array", int: "number", float: "number"}
    return names[type(value)]


def _go_type(known: FieldType) -> str:
    if known.kind in ("list", "map") and known.of is not None:
        return ("[]" if known.kind == "list" else "map[string]") + _go_type(known.of)
    return _go_name(known.type) if known.type is not None else known.scalar


def _go_name(type_: StructType) -> str:
    return type_.name.rpartition("/")[2]


def _token(value: Json) -> Json:
    if not isinstance(value, str) or _TOKEN.fullmatch(value) is None:
        # What looks like a token is one letter away from a secret: it is not repeated here.
        pattern = r'"\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z"'
        raise InvalidValue(f"the bootstrap token was not of the form {pattern}")
    return value


def _duration(value: Json) -> Json:
    return str(Duration.parse(str(value)))


# Types whose errors kubeadm shows in Go's words, which the readers of `schema.scalars` do not have.
_GO_WORDED = {"duration": _duration, "bootstrapToken": _token}
