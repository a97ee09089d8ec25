"""One patch as a value: what it says, of which type it is, and where it was written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from textwrap import dedent
from typing import Self

from garboard.documents import DocumentPath, Json, Position, Positions, locate, read_json, read_yaml
from garboard.patches.json_values import as_decoded


class PatchType(StrEnum):
    """The three patch languages, by the words that kubeadm's file names and kubectl's `--type` use, and our own."""

    STRATEGIC = "strategic"
    MERGE = "merge"
    JSON = "json"
    ARGS = "args"  # a mapping of flag to value, which compiles to a JSON patch


@dataclass(frozen=True)
class SourceText:
    """A text and where it stands: a file (or stdin), and the line and number of the document in it."""

    name: str
    text: str
    line: int = 1
    document: int = 1

    @cached_property
    def _positions(self) -> Positions:
        return locate(self.text, line=self.line)

    def position(self, at: DocumentPath) -> Position:
        """Return the line and column of `at`, or of the nearest thing around it that has one."""
        for end in range(len(at), -1, -1):
            found = self._positions.key(at[:end]) or self._positions.value(at[:end])
            if found is not None:
                return found
        return Position(self.line, 1)

    def is_in_text(self, position: Position) -> bool:
        """Tell whether a place of the file is inside the text of a value, and so no comment."""
        return self._positions.is_in_text(position)

    def value_position(self, at: DocumentPath) -> Position:
        """Return the line and column of the value at `at`, which need not be where its key stands."""
        return self._positions.value(at) or self.position(at)

    @property
    def repeated_keys(self) -> Sequence[tuple[str, Position]]:
        """The keys that stand a second time in one mapping, where only the last one counts."""
        return self._positions.repeated_keys()

    def where(self, at: DocumentPath = ()) -> str:
        position = self.position(at)
        return f"{self.name}:{position.line}:{position.column}"

    def block(self, at: DocumentPath, value: str) -> "SourceText":
        """Return the text that is the value at `at` as it stands here, so that places in it are places in the file."""
        start = self.value_position(at).line
        lines = self.text.splitlines()
        first = start - self.line + 1
        block = "\n".join(lines[first : first + value.rstrip("\n").count("\n") + 1]) + "\n"
        if dedent(block).rstrip("\n") == value.rstrip("\n"):
            return SourceText(self.name, block, start + 1)
        return SourceText(self.name, value, start)  # on one line, or folded: columns are those of the text by itself


@dataclass(frozen=True)
class TextPart(SourceText):
    """A part of a document that is read as a document of its own, such as a list of operations in an object."""

    whole: SourceText = field(kw_only=True)
    at: DocumentPath = field(kw_only=True)

    @classmethod
    def of(cls, whole: SourceText, at: DocumentPath) -> Self:
        return cls(whole.name, whole.text, whole.line, whole.document, whole=whole, at=at)

    def position(self, at: DocumentPath) -> Position:
        return self.whole.position((*self.at, *at))

    def value_position(self, at: DocumentPath) -> Position:
        return self.whole.value_position((*self.at, *at))

    def block(self, at: DocumentPath, value: str) -> SourceText:
        return self.whole.block((*self.at, *at), value)


@dataclass(frozen=True)
class Patch:
    """A patch document; `value` is never changed by applying it."""

    source: SourceText
    type: PatchType
    value: Json
    owner: str = ""  # the object that it is a part of, if there is one

    @classmethod
    def from_yaml(cls, source: SourceText, type_: PatchType) -> Self:
        """Read a patch as kubeadm does: everything, JSON too, passes the YAML reader."""
        value = read_yaml(source.text, source=source.name, line=source.line)
        return cls(source, type_, as_decoded(value) if type_ is PatchType.STRATEGIC else value)

    @classmethod
    def from_kubectl(cls, source: SourceText, type_: PatchType) -> Self:
        """Read a patch as `kubectl patch` does: text that begins with a brace is JSON, anything else YAML."""
        if source.text.lstrip(" \t\r\n").startswith("{"):
            return cls(source, type_, read_json(source.text, source=source.name))
        return cls.from_yaml(source, type_)

    def where(self, at: DocumentPath = ()) -> str:
        return self.source.where(at)

    @property
    def label(self) -> str:
        """A short name for listings: its owner, or the file, with the document's number where the file has several."""
        if self.owner:
            return self.owner
        return self.source.name if self.source.document == 1 else f"{self.source.name}#{self.source.document}"
