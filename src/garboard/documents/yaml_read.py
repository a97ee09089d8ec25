"""YAML to JSON trees with the semantics of sigs.k8s.io/yaml: go-yaml v2 reads, then everything becomes JSON."""

import codecs
from collections.abc import Callable
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
from garboard.documents.place import Place
from garboard.documents.yaml_dialect import Disguise
from garboard.documents.yaml_tree import Refused, TreeBuilder

BuilderT = TypeVar("BuilderT", bound=TreeBuilder)


def read_yaml(data: bytes | str, *, source: str, line: int = 1) -> Json:
    """Return the first document of `data` as Kubernetes reads it; no document at all reads as `None`.

    `line` is where the text starts in its file, so that errors name the place in the file.
    """
    return build_tree(data, Place(source, line), TreeBuilder)[0]


def build_tree(data: bytes | str, place: Place, builder: type[BuilderT]) -> tuple[Json, BuilderT]:
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


def _encode(text: str, place: Place) -> bytes:
    try:
        return _recode(text.encode(), place)
    except UnicodeEncodeError as error:
        place.refuse_at(text, error.start, "a lone surrogate is no text", _BYTES_HINT)


def _recode(data: bytes, place: Place) -> bytes:
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


def _first_document(content: bytes, builder: type[BuilderT]) -> tuple[Json, BuilderT]:
    if not Disguise.is_needed(content):
        try:
            return _parse(content, None, builder())
        except MarkedYAMLError as error:
            disguise = Disguise(content.decode())
            if not disguise.repair(error):
                raise
    else:
        disguise = Disguise(content.decode())
    while True:
        try:
            return _parse(disguise.text.encode(), disguise, builder())
        except MarkedYAMLError as error:
            if not disguise.repair(error):
                raise


def _parse(content: bytes, disguise: Disguise | None, tree: BuilderT) -> tuple[Json, BuilderT]:
    next_event = CParser(content).get_event
    next_event()
    start = next_event()
    if isinstance(start, StreamEndEvent):
        return None, tree
    _check_version(start)
    handlers = _handlers(tree, disguise)
    while not tree.is_complete and (event := next_event()) is not None:
        handlers[type(event)](event)
    # The end of the document is part of it: what follows must at least be a token.
    next_event()
    return tree.finish(), tree


def _handlers(tree: TreeBuilder, disguise: Disguise | None) -> dict[type[Event], Callable[[Any], None]]:
    def disguised_scalar(event: ScalarEvent) -> None:
        event.value = disguise.original(event.value) if disguise else event.value
        tree.scalar(event)

    return {
        ScalarEvent: disguised_scalar if disguise else tree.scalar,
        MappingStartEvent: tree.start,
        SequenceStartEvent: tree.start,
        MappingEndEvent: tree.end,
        SequenceEndEvent: tree.end,
        AliasEvent: tree.alias,
    }


def _check_version(start: Event | None) -> None:
    if isinstance(start, DocumentStartEvent) and start.version is not None and start.version != (1, 1):
        raise Refused("incompatible YAML document", start, "remove the %YAML line; Kubernetes reads YAML 1.1")
