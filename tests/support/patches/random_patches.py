"""Random documents of a type, edits of them, and patches full of directives, from a seeded generator.

Values come from a small stock, so that keys of list elements meet, scalars repeat and patches often hit something.
"""

from collections.abc import Callable
from random import Random

from garboard.documents import Json
from garboard.patches.json_values import copy_of
from garboard.schema import FieldType, StructType

WORDS = ("a", "b", "c", "d", "aa", "B", "")
NUMBERS: tuple[Json, ...] = (1, 2, 3, 10, 0, -1)
MAX_DEPTH = 6
FAVOURITES = 7


class RandomPatches:
    """Documents and patches for one type; `is_tidy` ones hold nothing that a careful person would not write."""

    def __init__(self, random: Random, shape: StructType, *, is_tidy: bool = False) -> None:
        self.random = random
        self.shape = shape
        self.is_tidy = is_tidy
        self._favourites: dict[str, list[tuple[str, FieldType]]] = {}

    def document(self) -> dict[str, Json]:
        made = self._struct(self.shape, 0)
        tidied = _tidied(made, FieldType("struct", type=self.shape)) if self.is_tidy else made
        assert isinstance(tidied, dict)
        return tidied

    def edited(self, document: Json) -> Json:
        """Return a copy with some members changed, dropped, moved or added."""
        edited = self._edited(copy_of(document), FieldType("struct", type=self.shape), 0)
        return _tidied(edited, FieldType("struct", type=self.shape)) if self.is_tidy else edited

    def strategic(self, document: Json) -> dict[str, Json]:
        """Return a patch for `document`, with directives, some of which are wrong."""
        return self._patch(document if isinstance(document, dict) else {}, self.shape, 0)

    def merge(self, document: Json) -> Json:
        return self._merge(document, 0)

    def operations(self, document: Json) -> list[Json]:
        return [self._operation(document) for _ in range(self.random.randint(1, 4))]

    # Values

    def _is(self, chance: float) -> bool:
        return self.random.random() < chance

    def _is_odd(self, chance: float) -> bool:
        return not self.is_tidy and self._is(chance)

    def _fields(self, struct: StructType) -> list[tuple[str, FieldType]]:
        """Return the few fields of a type that documents use: merge lists first, so that two documents overlap."""
        if struct.name not in self._favourites:
            known = sorted(struct.fields.items(), key=lambda item: (not item[1].strategy, Random(item[0]).random()))
            self._favourites[struct.name] = known[:FAVOURITES]
        return self._favourites[struct.name]

    def _struct(self, struct: StructType, depth: int) -> dict[str, Json]:
        made: dict[str, Json] = {}
        for name, field in self._fields(struct):
            if self._is(0.65 if field.strategy or depth < 2 else 0.4):
                made[name] = self._value(field, depth + 1)
        return made

    def _value(self, field: FieldType, depth: int) -> Json:
        if self._is_odd(0.02):
            return self._scalar()
        if depth > MAX_DEPTH:
            empty: dict[str, Json] = {"struct": {}, "map": {}, "list": []}
            return empty.get(field.kind, self._typed_scalar(field.scalar))
        if field.kind == "struct" and field.type is not None:
            return self._struct(field.type, depth)
        if field.kind == "map" and field.of is not None:
            return {self._word(): self._value(field.of, depth + 1) for _ in range(self.random.randint(0, 3))}
        if field.kind == "list" and field.of is not None:
            return self._list(field, depth)
        return self._typed_scalar(field.scalar)

    def _list(self, field: FieldType, depth: int) -> list[Json]:
        assert field.of is not None
        made = [self._value(field.of, depth + 1) for _ in range(self.random.choice((0, 1, 2, 2, 3, 3, 4, 5)))]
        if field.merge_key:
            keys = self._keys(field)
            for element in made:
                if isinstance(element, dict) and not self._is_odd(0.01):
                    element[field.merge_key] = keys.pop() if keys and not self._is_odd(0.03) else self._key(field)
        return made

    def _keys(self, field: FieldType) -> list[Json]:
        keys: list[Json] = list(NUMBERS[:4] if self._has_number_key(field) else WORDS[:5])
        self.random.shuffle(keys)
        return keys

    def _key(self, field: FieldType) -> Json:
        return self.random.choice(NUMBERS[:4] if self._has_number_key(field) else WORDS[:5])

    @staticmethod
    def _has_number_key(field: FieldType) -> bool:
        assert field.of is not None
        struct = field.of.type
        key = struct.field(field.merge_key) if struct else None
        return key is not None and key.scalar.startswith("int")

    def _typed_scalar(self, name: str) -> Json:
        if name == "bool":
            return self._is(0.5)
        if name.startswith(("int", "uint")):
            return self.random.choice(NUMBERS)
        return self._word() if not self._is_odd(0.03) else self._scalar()

    def _scalar(self) -> Json:
        return self.random.choice(("a", "b", 1, 2, 0.5, True, False, None))

    def _word(self) -> str:
        return self.random.choice(WORDS)

    # Edits

    def _edited(self, value: Json, field: FieldType, depth: int) -> Json:
        if isinstance(value, dict):
            return self._edited_map(value, field, depth)
        if isinstance(value, list):
            return self._edited_list(value, field, depth)
        return self._value(field, depth) if self._is(0.3) else value

    def _edited_map(self, value: dict[str, Json], field: FieldType, depth: int) -> Json:
        edited: dict[str, Json] = {}
        for name, member in value.items():
            below = field.type.field(name) if field.type else field.of
            if not self._is(0.12):
                edited[name] = self._edited(member, below, depth + 1) if below and self._is(0.6) else member
        if field.type is not None:
            for name, below in self._fields(field.type):
                if name not in value and self._is(0.15):
                    edited[name] = self._value(below, depth + 1)
        elif field.of is not None and self._is(0.3):
            edited[self._word()] = self._value(field.of, depth + 1)
        return edited

    def _edited_list(self, value: list[Json], field: FieldType, depth: int) -> Json:
        if field.of is None:
            return value
        edited = []
        for element in value:
            if self._is(0.2):
                continue
            key = element.get(field.merge_key) if isinstance(element, dict) else None
            changed = self._edited(element, field.of, depth + 1) if self._is(0.5) else element
            if isinstance(changed, dict) and key is not None:
                changed[field.merge_key] = key
            edited.append(changed)
        if self._is(0.4):
            edited += self._list(field, depth + 1)[:2]
        if self._is(0.3):
            self.random.shuffle(edited)
        return edited

    # Strategic patches

    def _patch(self, original: dict[str, Json], struct: StructType, depth: int) -> dict[str, Json]:
        patch: dict[str, Json] = {}
        for name, field in self._fields(struct):
            if self._is(0.45):
                self._patch_member(patch, name, field, original.get(name), depth)
        if self._is(0.02):
            odd: tuple[Json, ...] = ({"a": 1}, ["a"], "a", None)
            patch["unknownField"] = self.random.choice(odd)
        if self._is(0.05):
            patch["$patch"] = self.random.choice(
                ("replace", "delete", "replace", "delete", "merge", "Replace", None, 1)
            )
        if self._is(0.07):
            patch["$retainKeys"] = self._retained(original, patch)
        return patch

    def _retained(self, original: dict[str, Json], patch: dict[str, Json]) -> Json:
        if self._is(0.05):
            return self.random.choice(("a", None, {}))
        plain: list[Json] = [key for key in patch if not key.startswith("$")]
        return plain[: -1 if self._is(0.1) else None] + [key for key in original if self._is(0.3)]

    def _patch_member(self, patch: dict[str, Json], name: str, field: FieldType, original: Json, depth: int) -> None:
        if self._is(0.08):
            patch[name] = None
        elif field.kind == "struct" and field.type is not None and depth < MAX_DEPTH:
            patch[name] = self._patch(original if isinstance(original, dict) else {}, field.type, depth + 1)
        elif field.kind == "map":
            patch[name] = self._patch_map(field, depth)
        elif field.kind == "list" and field.of is not None:
            self._patch_list(patch, name, field, original if isinstance(original, list) else [], depth)
        else:
            patch[name] = self._value(field, depth + 1)

    def _patch_map(self, field: FieldType, depth: int) -> Json:
        made = self._value(field, depth + 1)
        if isinstance(made, dict):
            made.update({self._word(): None for _ in range(self._is(0.3))})
            if self._is(0.05):
                made["$patch"] = self.random.choice(("replace", "delete"))
        return made

    def _patch_list(
        self, patch: dict[str, Json], name: str, field: FieldType, original: list[Json], depth: int
    ) -> None:
        if not self._is(0.1):
            patch[name] = self._patched_elements(field, original, depth)
        if self._is(0.1):
            patch[f"$deleteFromPrimitiveList/{name}"] = self._chosen(original) + [self._scalar() for _ in range(2)]
        if self._is(0.25):
            patch[f"$setElementOrder/{name}"] = self._order(field, original, patch.get(name))
        if self._is(0.01):
            patch[self.random.choice(("$setElementOrder", "$deleteFromPrimitiveList", "$setElementOrder/nothing"))] = []

    def _patched_elements(self, field: FieldType, original: list[Json], depth: int) -> Json:
        assert field.of is not None
        if not field.merge_key or field.of.type is None:
            made = self._list(field, depth + 1)
            return made + self._chosen([element for element in original if not isinstance(element, dict | list)])
        elements: list[Json] = []
        for element in [*self._chosen(original), *self._list(field, depth + 1)[:2]]:
            base = element if isinstance(element, dict) else {}
            change: dict[str, Json] = self._patch(base, field.of.type, depth + 1) if self._is(0.7) else {}
            if not self._is(0.02):
                change[field.merge_key] = base.get(field.merge_key, self._key(field))
            if self._is(0.15):
                change = {"$patch": "delete", field.merge_key: base.get(field.merge_key, "a")}
            elements.append(change)
        if self._is(0.04):
            elements.append({"$patch": self.random.choice(("replace", "replace", "merge", "delete"))})
        return elements

    def _order(self, field: FieldType, original: list[Json], wanted: Json) -> Json:
        if self._is(0.02):
            return self.random.choice(("a", None, {}))
        elements = [*(wanted if isinstance(wanted, list) else []), *self._chosen(original)]
        if self._is(0.15):
            self.random.shuffle(elements)
        if not field.merge_key:
            return elements
        keyed = [element for element in elements if isinstance(element, dict) and element.get("$patch") != "delete"]
        return [{field.merge_key: element[field.merge_key]} for element in keyed if field.merge_key in element]

    def _chosen(self, values: list[Json]) -> list[Json]:
        return [value for value in values if self._is(0.5)]

    # Merge and JSON patches

    def _merge(self, value: Json, depth: int) -> Json:
        if isinstance(value, dict) and not self._is(0.05):
            made = {key: self._merge(member, depth + 1) for key, member in value.items() if self._is(0.4)}
            return {**made, self._word(): self._anything(2)} if self._is(0.4) else made
        if isinstance(value, list) and self._is(0.5):
            return [*self._chosen(value), *([None] if self._is(0.1) else [])]
        return self._anything(2) if depth else {"a": self._anything(2)}

    def _anything(self, depth: int) -> Json:
        makers: tuple[Callable[[], Json], ...] = (
            lambda: {self._word(): self._anything(depth - 1) for _ in range(3)},
            lambda: [self._anything(depth - 1) for _ in range(self.random.randint(0, 3))],
        )
        return self.random.choice(makers)() if depth and self._is(0.5) else self._scalar()

    def _operation(self, document: Json) -> Json:
        name = self.random.choice(("add", "remove", "replace", "move", "copy", "test", "test", "add"))
        made: dict[str, Json] = {"op": name, "path": self._pointer(document)}
        if name in ("move", "copy"):
            made["from"] = self._pointer(document)
        elif name != "remove" and not self._is(0.03):
            found = _at(document, str(made["path"]))
            made["value"] = found if name == "test" and self._is(0.8) else self._anything(1)
        if self._is(0.03):
            made[self.random.choice(("op", "path", "from"))] = self.random.choice((None, "", 1, "x", "Add"))
        if self._is(0.02):
            del made[self.random.choice(list(made))]
        return made

    def _pointer(self, document: Json) -> str:
        tokens: list[str] = []
        while isinstance(document, dict | list) and document and not (tokens and self._is(0.2)):
            if isinstance(document, dict):
                name = self.random.choice(list(document))
                tokens.append(name.replace("~", "~0").replace("/", "~1"))
                document = document[name]
            else:
                index = self.random.randrange(len(document))
                tokens.append(str(index))
                document = document[index]
        if tokens and self._is(0.25):
            odd = ("-", "-1", "0", "01", "+1", "9", "a", "", "-9", "1.0", "~", "~01", "-2", "00", "٣")
            tokens[self.random.choice((-1, -1, 0))] = self.random.choice(odd)
        return "/" + "/".join(tokens) if not self._is(0.02) else self.random.choice(("", "/", "a", "a/b"))


def _at(document: Json, pointer: str) -> Json:
    for token in pointer.split("/")[1:]:
        if isinstance(document, dict):
            document = document.get(token.replace("~1", "/").replace("~0", "~"))
        elif isinstance(document, list) and token.isascii() and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        else:
            return None
    return document


def _tidied(value: Json, field: FieldType | None) -> Json:
    """Return the value without list elements that repeat a merge key, or a scalar of a merged list."""
    if field is None:
        return value
    if isinstance(value, dict):
        return {
            name: _tidied(member, field.type.field(name) if field.type else field.of) for name, member in value.items()
        }
    if not isinstance(value, list) or not field.strategy:
        return value
    kept: dict[str, Json] = {}
    for element in value:
        key = element.get(field.merge_key) if isinstance(element, dict) else element
        kept.setdefault(repr(key), _tidied(element, field.of))
    return list(kept.values())
