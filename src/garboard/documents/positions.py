"""Where in a text each part of a document stands, found by reading the text once more on demand."""

import re
from dataclasses import dataclass
from typing import Final

from yaml.events import CollectionStartEvent, Event, ScalarEvent

from garboard.documents.json_value import DocumentPath, Json
from garboard.documents.place import TextPlace
from garboard.documents.yaml_read import build_tree
from garboard.documents.yaml_tree import MERGE, TreeBuilder
from garboard.errors import BadDocument

# Escapes of JSON that YAML 1.1 does not have.
_JSON_ESCAPE: Final = re.compile(r"\\(?:/|u[dD][89a-fA-F][0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file, counted from one."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member of a mapping or list: where its key and its value begin."""

    key: Position | None
    position: Position
    value: Json


class _PositionBuilder(TreeBuilder):
    """Builds the tree and notes where everything came from, by the identity of the mapping or list that holds it."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[int, dict[str | int, _Entry]] = {}
        self.root: Position | None = None
        self.texts: list[tuple[tuple[int, int], tuple[int, int]]] = []  # lines and columns of scalars
        self.repeated: list[tuple[str, Position]] = []
        self.set_again: list[tuple[str, Position]] = []
        self._set_again_before: dict[int, int] = {}
        self._set_again_in: dict[int, list[tuple[str, Position]]] = {}
        self._written: set[tuple[int, str]] = set()
        self._kept: list[Json] = []  # an identity must not be used twice

    def start(self, event: CollectionStartEvent) -> None:
        super().start(event)
        self._kept.append(self._node.container)
        self._set_again_before[id(self._node.container)] = len(self.set_again)

    def end(self, event: Event) -> None:
        container = id(self._node.container)
        self._set_again_in[container] = self.set_again[self._set_again_before[container] :]
        super().end(event)

    def _expanded(self, value: Json) -> Json:
        self.set_again += self._set_again_in[id(value)]  # go-yaml reads the mapping once more
        return value

    def _attach(self, value: Json, event: Event) -> None:
        node = self._node
        if isinstance(event, ScalarEvent):
            self.texts.append(_extent(event))
        if not self._open:
            self.root = _position(event)
        elif node.key is not MERGE:
            key = _position(node.key_event) if node.is_map and node.key_event else None
            name = node.key if node.is_map else len(node.container)
            if isinstance(name, str) and key is not None:
                self._note_name(id(node.container), name, key)
                if name in node.container:
                    self.set_again.append((name, _position(event)))
            self._entries_of(node.container)[name] = _Entry(key, _position(event), value)
        super()._attach(value, event)

    def _note_name(self, container: int, name: str, key: Position) -> None:
        """Note a key that the mapping itself spells out; one that came by `<<` may be overridden and is not noted."""
        if (container, name) in self._written:
            self.repeated.append((name, key))
        self._written.add((container, name))

    def _merge_one(self, member: dict[str, Json]) -> None:
        entries, container = self._entries_of(member), self._node.container
        self.set_again += [(str(name), entry.position) for name, entry in entries.items() if name in container]
        super()._merge_one(member)
        self._entries_of(container).update(entries)

    def _entries_of(self, container: Json) -> dict[str | int, _Entry]:
        return self.entries.setdefault(id(container), {})


class Positions:
    """The places of a document; a part that came by an alias or a merge stands where it was written."""

    def __init__(self, document: Json, builder: _PositionBuilder, first_line: int) -> None:
        self._document = document
        self._builder = builder
        self._lines_before = first_line - 1

    def value(self, path: DocumentPath) -> Position | None:
        """Return where the value at `path` begins, or nothing if the document has no such value."""
        if not path:
            return self._in_file(self._builder.root)
        entry = self._find(path)
        return self._in_file(entry.position) if entry else None

    def key(self, path: DocumentPath) -> Position | None:
        """Return where the last key of `path` stands; list elements have none."""
        entry = self._find(path)
        return self._in_file(entry.key) if entry else None

    def is_in_text(self, position: Position) -> bool:
        """Tell whether a place is inside the text of a value, where `#` begins no comment."""
        at = (position.line - self._lines_before, position.column)
        return any(start <= at < end for start, end in self._builder.texts)

    def repeated_keys(self) -> tuple[tuple[str, Position], ...]:
        """Return the keys that a mapping spells out again, with the place of each repetition."""
        return tuple((name, Position(at.line + self._lines_before, at.column)) for name, at in self._builder.repeated)

    def keys_set_again(self) -> tuple[tuple[str, Position], ...]:
        """Return the keys that a mapping sets again, also by `<<`, each with the place of its value.

        This is what go-yaml complains of where it is strict: an alias is read again, and reported again.
        """
        return tuple((name, Position(at.line + self._lines_before, at.column)) for name, at in self._builder.set_again)

    def _find(self, path: DocumentPath) -> _Entry | None:
        entry = None
        container = self._document
        for part in path:
            entry = self._builder.entries.get(id(container), {}).get(part)
            if entry is None:
                return None
            container = entry.value
        return entry

    def _in_file(self, position: Position | None) -> Position | None:
        return Position(position.line + self._lines_before, position.column) if position else None


def _extent(event: ScalarEvent) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where a scalar begins and ends; the text of a block begins below its first line."""
    start, end = event.start_mark, event.end_mark
    assert start is not None
    assert end is not None
    first = (start.line + 2, 1) if event.style in ("|", ">") else (start.line + 1, start.column + 1)
    return first, (end.line + 1, end.column + 1)


def locate(data: str, *, line: int = 1) -> Positions:
    """Return the places in a text that `read_yaml` or `read_json` has accepted; `line` is where it starts in its file.

    A text that cannot be read has no places, and neither have JSON keys spelled with escapes that YAML lacks.
    """
    for text in (data, _JSON_ESCAPE.sub(lambda found: "x" * len(found[0]), data)):
        try:
            document, builder = build_tree(text, TextPlace("document"), _PositionBuilder)
        except BadDocument:
            continue
        return Positions(document, builder, line)
    return Positions(None, _PositionBuilder(), line)


def _position(event: Event) -> Position:
    mark = event.start_mark
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
