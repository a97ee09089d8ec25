"""A document decoded into its Go type, with everything that Go has to say about it.

A decoded tree holds only what was really said: unknown fields, nulls and zero values are gone, because Go cannot tell
a zero from nothing.
"""

import re
from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Json
from garboard.errors import InvalidValue
from garboard.model.duration import Duration
from garboard.schema import Field, StructType, suggest
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


def decode(value: Json, type_: StructType) -> Decoded:
    """Decode one document as its Go type would be, without failing: the caller decides what is fatal."""
    found = Decoded()
    tree = _Decoder(found).struct(value, type_, (), _Where())
    found.tree = tree if isinstance(tree, dict) else {}
    return found


def path_text(path: DocumentPath) -> str:
    """Write a path as Go does: `apiServer.extraArgs[0].name`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class _Where:
    """The struct and the field names that Go's own messages tell, list indices left out."""

    struct: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Decoder:
    found: Decoded

    def struct(self, value: Json, type_: StructType, path: DocumentPath, where: _Where) -> Json:
        if not isinstance(value, dict):
            return self.mismatch(value, _go_name(type_), where)
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

    def value(self, value: Json, known: Field, path: DocumentPath, where: _Where) -> Json:
        if value is None:
            if known.scalar in REFUSES_NULL and not known.pointer:
                self.found.mismatches.append('time: invalid duration ""')
            return None
        if known.kind == "struct" and known.type is not None:
            return self.struct(value, known.type, path, where)
        if known.kind == "list" and known.of is not None:
            return self.sequence(value, known, known.of, path, where)
        if known.kind == "map" and known.of is not None:
            return self.mapping(value, known, known.of, path, where)
        return value if known.kind == "any" else self.scalar(value, known, where)

    def sequence(self, value: Json, known: Field, of: Field, path: DocumentPath, where: _Where) -> Json:
        if not isinstance(value, list):
            return self.mismatch(value, _go_type(known), where)
        items = [self.value(item, of, (*path, index), where) for index, item in enumerate(value)]
        return [_zero(of) if item is None else item for item in items]

    def mapping(self, value: Json, known: Field, of: Field, path: DocumentPath, where: _Where) -> Json:
        if not isinstance(value, dict):
            return self.mismatch(value, _go_type(known), where)
        items = {name: self.value(value[name], of, (*path, name), where) for name in sorted(value)}
        return {name: _zero(of) if item is None else item for name, item in items.items()}

    def scalar(self, value: Json, known: Field, where: _Where) -> Json:
        if known.type is not None:
            return self.self_written(value, known.scalar, where)
        if known.scalar in _INTEGER_BITS:
            return value if _is_integer(value, known.scalar) else self.mismatch(value, known.scalar, where)
        if known.scalar in ("float32", "float64"):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else self.mismatch(value, known.scalar, where)
        expected = {"string": str, "bool": bool}.get(known.scalar)
        if expected is not None and not isinstance(value, expected):
            return self.mismatch(value, known.scalar, where)
        return value

    def self_written(self, value: Json, word: str, where: _Where) -> Json:
        """A value whose Go type reads itself; such a type does not tell where it stands."""
        if word in ("duration", "time") and not isinstance(value, str):
            return self.mismatch(value, "string", where)
        try:
            return _GO_WORDED.get(word, READERS[word])(value)
        except InvalidValue as error:
            self.found.mismatches.append(error.message)
        except Mismatch as error:
            self.found.mismatches.append(f"{'.'.join(where.fields)}: {error.reason}")
        return None

    def mismatch(self, value: Json, go_type: str, where: _Where) -> Json:
        found = _found(value)
        if found == "number" and go_type in _INTEGER_BITS:
            found = f"number {value}"
        target = f"struct field {where.struct}.{'.'.join(where.fields)}" if where.struct else "value"
        self.found.mismatches.append(f"json: cannot unmarshal {found} into Go {target} of type {go_type}")
        return None


def _is_zero(value: Json, known: Field) -> bool:
    zero = ZEROS.get(known.scalar, 0)
    return known.kind == "scalar" and isinstance(value, bool) == isinstance(zero, bool) and value == zero


def _zero(known: Field) -> Json:
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


def _go_type(known: Field) -> str:
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


# Two of the types that read themselves have a reader here, for the sake of Go's words.
_GO_WORDED = {"duration": _duration, "bootstrapToken": _token}
