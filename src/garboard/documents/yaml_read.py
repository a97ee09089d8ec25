"""YAML to JSON trees with the semantics of sigs.k8s.io/yaml: go-yaml v2 reads, then everything becomes JSON."""

import codecs
import re
from collections.abc import Callable
from itertools import chain, islice
from typing import Any, Final, TypeVar

from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from garboard.documents.json_value import Json
from garboard.documents.place import TextPlace
from garboard.documents.yaml_tree import Refused, TreeBuilder

BuilderT = TypeVar("BuilderT", bound=TreeBuilder)

_BYTE_ORDER_MARK: Final = "\ufeff"
_SLASH_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*\\)/")
_PRIVATE_USE: Final = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
# A text is read again after each repair; together the readings stay below this many characters.
_REPAIR_BUDGET: Final = 8_000_000


def read_yaml(data: bytes | str, *, source: str, line: int = 1) -> Json:
    """Return the first document of `data` as Kubernetes reads it; no document at all reads as `None`.

    `line` is where the text starts in its file, so that errors name the place in the file.
    """
    return build_tree(data, TextPlace(source, line), TreeBuilder)[0]


def build_tree(data: bytes | str, place: TextPlace, builder: type[BuilderT]) -> tuple[Json, BuilderT]:
    """Return the first document of `data` with the builder it came from."""
    content = _encode(data, place) if isinstance(data, str) else _recode(data, place)
    try:
        return _first_document(content, builder)
    except Refused as error:
        place.refuse(str(error), error.line, error.column, error.hint)
    except ReaderError as error:
        before = content[: error.position].decode("utf-8", "replace")
        place.refuse_at(before, len(before), error.reason, _BYTES_HINT)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        hint = _TOKEN_HINT if error.problem and "cannot start any token" in error.problem else _SYNTAX_HINT
        place.refuse(_sentence(error), mark.line if mark else 0, mark.column if mark else 0, hint)
    except (YAMLError, UnicodeError) as error:
        place.refuse(str(error), 0, 0, _BYTES_HINT)


_BYTES_HINT: Final = "save the file as UTF-8 text without control characters"
_TOKEN_HINT: Final = "indent with spaces: YAML takes no tabs; quote a text that begins with @, ` or %"
_SYNTAX_HINT: Final = "check indentation, quotes and brackets around this place"


def _encode(text: str, place: TextPlace) -> bytes:
    try:
        return _recode(text.encode(), place)
    except UnicodeEncodeError as error:
        place.refuse_at(text, error.start, "a lone surrogate is no text", _BYTES_HINT)


def _recode(data: bytes, place: TextPlace) -> bytes:
    """Return the text as UTF-8 without a byte order mark; libyaml itself refuses what is no UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode().removeprefix(codecs.BOM_UTF8)
        except UnicodeDecodeError:
            place.refuse("this is not the UTF-16 text its first bytes promise", 0, 0, _BYTES_HINT)
    # go-yaml drops one mark when it looks for the encoding, and one more before the first token.
    return data.removeprefix(codecs.BOM_UTF8).removeprefix(codecs.BOM_UTF8)


def _sentence(error: MarkedYAMLError) -> str:
    return f"{error.problem or 'not YAML'} ({error.context})" if error.context else f"{error.problem or 'not YAML'}"


class AdaptedText:
    """A text changed so that libyaml reads what go-yaml v2 reads; its scalars are changed back afterwards.

    Stand-ins are private-use characters that the text does not hold. They are as wide as what they replace, so that
    every place in the text stays where it was.
    """

    def __init__(self, text: str) -> None:
        free = (chr(code) for code in chain(*_PRIVATE_USE) if chr(code) not in text)
        slash, colon, mark, self._gone = islice(chain(free, "/:\ufeff'"), 4)
        self._colon = colon
        self._original = {ord(slash): "/", ord(colon): ":", ord(mark): _BYTE_ORDER_MARK, ord(self._gone): None}
        # JSON's escape \/ is none to go-yaml, and a byte order mark is an ordinary character except at the very start.
        self.text = _SLASH_ESCAPE.sub(rf"\1{slash}", text).replace(_BYTE_ORDER_MARK, mark)
        self._budget = _REPAIR_BUDGET

    @staticmethod
    def is_needed(content: bytes) -> bool:
        """Say whether libyaml would take the text for something else without complaint."""
        return b"\\/" in content or _BYTE_ORDER_MARK.encode() in content

    def original(self, text: str) -> str:
        """Return a scalar as it was written."""
        return text.translate(self._original)

    def repair(self, error: MarkedYAMLError) -> bool:
        """Change the place of an error that go-yaml does not make; say whether the text is worth another reading."""
        mark = error.problem_mark
        self._budget -= len(self.text)
        if mark is None or self._budget < 0:
            return False
        stand_in = self._stand_in(error.problem or "", self.text[mark.index : mark.index + 2])
        if stand_in is None:
            return False
        self.text = self.text[: mark.index] + stand_in + self.text[mark.index + 1 :]
        return True

    def _stand_in(self, problem: str, found: str) -> str | None:
        if problem == "found unexpected ':'" and found[:1] == ":":
            return self._colon  # go-yaml lets a colon end a plain scalar in brackets
        if problem == "found unknown escape character" and found == "\\'":
            return self._gone
        if found[:1] in (",", "[", "]") and problem.endswith(("whitespace or line break", "tag URI")):
            return "_"  # part of a tag; no tag that means anything has one
        return None


def _first_document(content: bytes, builder: type[BuilderT]) -> tuple[Json, BuilderT]:
    if not AdaptedText.is_needed(content):
        try:
            return _parse(content, None, builder())
        except MarkedYAMLError as error:
            adapted = AdaptedText(content.decode())
            if not adapted.repair(error):
                raise
    else:
        adapted = AdaptedText(content.decode())
    while True:
        try:
            return _parse(adapted.text.encode(), adapted, builder())
        except MarkedYAMLError as error:
            if not adapted.repair(error):
                raise


def _parse(content: bytes, adapted: AdaptedText | None, tree: BuilderT) -> tuple[Json, BuilderT]:
    next_event = CParser(content).get_event
    next_event()
    start = next_event()
    if isinstance(start, StreamEndEvent):
        return None, tree
    _check_version(start)
    handlers = _handlers(tree, adapted)
    while not tree.is_complete and (event := next_event()) is not None:
        handlers[type(event)](event)
    # The end of the document is part of it: what follows must at least be a token.
    next_event()
    return tree.finish(), tree


def _handlers(tree: TreeBuilder, adapted: AdaptedText | None) -> dict[type[Event], Callable[[Any], None]]:
    def restored_scalar(event: ScalarEvent) -> None:
        event.value = adapted.original(event.value) if adapted else event.value
        tree.scalar(event)

    return {
        ScalarEvent: restored_scalar if adapted else tree.scalar,
        MappingStartEvent: tree.start,
        SequenceStartEvent: tree.start,
        MappingEndEvent: tree.end,
        SequenceEndEvent: tree.end,
        AliasEvent: tree.alias,
    }


def _check_version(start: Event | None) -> None:
    if isinstance(start, DocumentStartEvent) and start.version is not None and start.version != (1, 1):
        raise Refused("incompatible YAML document", start, "remove the %YAML line; Kubernetes reads YAML 1.1")
