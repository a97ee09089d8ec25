"""A document as its leaves, each under a name that survives when lists are put in another order.

List elements are named by the key that their list is merged by, flags of a command by their name. What has no such
name, such as a list of numbers, is one leaf as a whole.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from garboard.documents import DocumentPath, Json, equal
from garboard.drift.defaults import default_of
from garboard.patches.fieldpath import Pick
from garboard.rules.command_line import flag_name
from garboard.schema import FieldType, StructType
from garboard.schema.scalars import READERS, Mismatch
from garboard.values import dataclass

KUBELET_ARGS = "KUBELET_KUBEADM_ARGS"  # the variable of kubeadm-flags.env, whose words are the kubelet's flags
KUBELET_FLAGS = "kubeadm-flags.env"  # what that file is called as a component
_COMMANDS = ("command", "args", KUBELET_ARGS)
_NAME = "name"


@dataclass(frozen=True, slots=True)
class FlagStep:
    """All words of a command that set one flag."""

    name: str  # with its dashes

    def __str__(self) -> str:
        return self.name


LeafStep: TypeAlias = "str | Pick | FlagStep"
LeafPath: TypeAlias = "tuple[LeafStep, ...]"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a document: its name, its place, and whether the field would mean the same if it were left out."""

    path: LeafPath
    at: DocumentPath
    value: Json
    canonical: Json  # as Go would spell it
    is_default: bool = False

    def means(self, other: "Leaf | None") -> bool:
        """Say whether two leaves mean the same; None is a field that is left out."""
        if other is None:
            return self.is_default
        return equal(self.canonical, other.canonical)


def same_meaning(left: Leaf | None, right: Leaf | None) -> bool:
    """Say whether a field means the same in two documents, whether it is there or left out."""
    if left is None or right is None:
        present = left or right
        return present is None or present.means(None)
    return left.means(right)


def show_leaf(path: LeafPath) -> str:
    """Return the name of a leaf as field paths are written everywhere."""
    text = ""
    for step in path:
        if isinstance(step, Pick | FlagStep):
            text += f"[{step}]"
        else:
            is_plain = step and not any(char in step for char in '.[]"')
            text += f".{step}" if is_plain else f'["{step}"]'
    return text.removeprefix(".") or "."


def leaves_of(document: Json, shape: StructType | None) -> dict[LeafPath, Leaf]:
    """Return the leaves of a document of a type; without one, by what the document alone shows."""
    field = FieldType("struct", type=shape) if shape else None
    return {leaf.path: leaf for leaf in _walk(document, field, (), ())}


def _walk(value: Json, field: FieldType | None, path: LeafPath, at: DocumentPath) -> Iterator[Leaf]:
    if isinstance(value, dict) and value:
        yield from _walk_map(value, field, path, at)
    elif isinstance(value, list) and value:
        yield from _walk_list(value, field, path, at)
    else:
        yield Leaf(path, at, value, _canonical(value, field), _is_nothing(value, field))


def _walk_map(
    members: Mapping[str, Json], field: FieldType | None, path: LeafPath, at: DocumentPath, *, but: str = ""
) -> Iterator[Leaf]:
    type_ = field.type if field else None
    for name, value in members.items():
        if name == but:
            continue
        below = type_.fields.get(name) if type_ else field.of if field and field.kind == "map" else None
        default = default_of(type_.name, name, members) if type_ else None
        for leaf in _walk(value, below, (*path, name), (*at, name)):
            is_default = leaf.is_default or (len(leaf.path) == len(path) + 1 and _is_same(leaf, default))
            yield Leaf(leaf.path, leaf.at, leaf.value, leaf.canonical, is_default)


def _is_same(leaf: Leaf, default: Json) -> bool:
    return default is not None and equal(leaf.canonical, default)


def _walk_list(items: list[Json], field: FieldType | None, path: LeafPath, at: DocumentPath) -> Iterator[Leaf]:
    key = (field.merge_key if field else "") or _NAME
    if path and path[-1] in _COMMANDS and all(isinstance(item, str) for item in items):
        yield from _walk_command([str(item) for item in items], path, at)
    elif _is_keyed(items, key):
        for index, item in enumerate(items):
            assert isinstance(item, dict)
            below, here = (*path, Pick(_text(item[key]), key)), (*at, index)
            if len(item) == 1:
                yield Leaf(below, here, item, item)
            else:
                yield from _walk_map(item, field.of if field else None, below, here, but=key)
    else:
        canonical: Json = [_canonical(item, field.of if field else None) for item in items]
        yield Leaf(path, at, items, canonical)


def _is_keyed(items: list[Json], key: str) -> bool:
    """Say whether every element has the key, and each one another value of it."""
    found = [item.get(key) if isinstance(item, dict) else None for item in items]
    texts = {_text(value) for value in found if isinstance(value, str | int)}
    return len(texts) == len(items)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else str(value)


def _walk_command(words: list[str], path: LeafPath, at: DocumentPath) -> Iterator[Leaf]:
    plain: list[Json] = []
    flags: dict[str, list[Json]] = {}
    places: dict[str, int] = {}
    for index, word in enumerate(words):
        if not word.startswith("-"):
            plain.append(word)
            continue
        name = f"--{flag_name(word)}"
        places.setdefault(name, index)
        flags.setdefault(name, []).append(word.partition("=")[2] if "=" in word else True)
    if plain:
        yield Leaf(path, at, plain, plain)
    for name, values in flags.items():
        # A flag that stands alone is `true` to the library that reads it.
        texts: list[Json] = ["true" if each is True else each for each in values]
        value: Json = values[0] if len(values) == 1 else values
        canonical: Json = texts[0] if len(texts) == 1 else texts
        yield Leaf((*path, FlagStep(name)), (*at, places[name]), value, canonical)


def _canonical(value: Json, field: FieldType | None) -> Json:
    """Return a scalar as Go would write it, so that `1000m` is `1`; what its field cannot hold stays as it is."""
    if field is None or field.kind != "scalar" or value is None or isinstance(value, dict | list):
        return value
    try:
        return READERS[field.scalar](value)
    except Mismatch:
        return value


def _is_nothing(value: Json, field: FieldType | None) -> bool:
    """Say whether a value is that of a field which is left out: null, or the zero of what is no pointer."""
    if value is None:
        return True
    if field is None:
        return value in ({}, [], "")
    if field.pointer:
        return value == [] or (field.kind == "scalar" and field.scalar == "string" and value == "")
    return not value or (field.scalar == "duration" and value == "0s")
