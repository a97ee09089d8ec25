"""Files with several documents: cut as kubeadm cuts patch files, and read as kubectl reads manifests."""

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from garboard.documents.json_text import decode_json, skip_blanks
from garboard.documents.json_value import Json
from garboard.documents.numbers import INT64
from garboard.documents.place import TextPlace
from garboard.documents.yaml_read import read_yaml
from garboard.errors import BadDocument

_SEPARATOR: Final = "---"
# What Go calls space; str.strip() takes the ASCII separators 1C to 1F as well.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
# Digits enough for 2**63 in some base, or an exponent that reaches it. A false alarm costs one walk over the tree.
_MAY_EXCEED_INT64: Final = re.compile(r"[0-9a-fA-F_]{16}|[0-9.][eE]\+?1[89]")


@dataclass(frozen=True, slots=True)
class DocumentText:
    """One document of a file, not yet parsed; `line` is where its text begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a stream, with the text it was read from."""

    value: Json
    text: str
    line: int


def split_documents(data: bytes | str, *, source: str) -> tuple[DocumentText, ...]:
    """Cut a file at its `---` lines as kubeadm does: pieces without surrounding space, blank ones left out.

    A separator with nothing before it stays part of the piece it opens, so `---` alone is a (null) document.
    """
    pieces = []
    for piece in cut_documents(data, source=source):
        trimmed = piece.text.strip(_SPACE)
        if trimmed:
            skipped = piece.text[: piece.text.index(trimmed[0])]
            pieces.append(DocumentText(trimmed, piece.line + skipped.count("\n")))
    return tuple(pieces)


def cut_documents(data: bytes | str, *, source: str) -> tuple[DocumentText, ...]:
    """Cut a file at its `---` lines and leave nothing out, as kubeadm cuts its configuration files."""
    return tuple(_pieces(_text(data, source), TextPlace(source)))


def refuse_second_document(text: str, *, source: str) -> None:
    """Refuse a YAML text with more than one document that says something; its readers would drop all but the first."""
    if f"\n{_SEPARATOR}" not in text:
        return
    documents = [each for each in split_documents(text, source=source) if not _says_nothing(each.text)]
    if len(documents) > 1:
        hint = "give each document a file of its own"
        TextPlace(source, documents[1].line).refuse("a second document begins here, and one is expected", 0, 0, hint)


def _says_nothing(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines()]
    return all(line in ("", _SEPARATOR, "...") or line.startswith(("#", "%")) for line in lines)


def read_stream(data: bytes | str, *, source: str) -> Iterator[Manifest]:
    """Read the documents of a manifest file as kubectl does; those that are empty or null are left out.

    YAML documents stand between `---` lines. A text that begins with a brace holds JSON values one after the other,
    until something else follows the first. Integers beyond 64 bits with a sign become floats.
    """
    text = _text(data, source)
    start = 0
    first_problem: BadDocument | None = None
    if text.lstrip(_SPACE).startswith("{"):
        start, first_problem = yield from _json_values(text, source)
        if first_problem is None:
            return
    rest = DocumentText(text[start:], 1 + text.count("\n", 0, start))
    for piece in _pieces(rest.text, TextPlace(source, rest.line)):
        try:
            value = _as_int64(read_yaml(piece.text, source=source, line=piece.line), piece.text)
        except BadDocument as problem:
            # Neither JSON nor YAML: what began as JSON is explained as JSON.
            raise first_problem or problem from None
        first_problem = None
        if value is not None:
            yield Manifest(value, piece.text, piece.line)


def _json_values(text: str, source: str) -> Generator[Manifest, None, tuple[int, BadDocument | None]]:
    """Yield JSON values until they end; return where YAML goes on instead, and why the text there is no JSON."""
    place = TextPlace(source)
    end = 0
    count = 0
    while (begin := skip_blanks(text, end)) < len(text):
        try:
            value, after = decode_json(text, begin, place)
        except BadDocument as problem:
            resume = _yaml_start(text, end)
            if count > 1 or resume is None:
                raise
            return resume, problem
        if value is not None:
            yield Manifest(value, text[begin:after], 1 + text.count("\n", 0, begin))
        end = after
        count += 1
    return end, None


def _yaml_start(text: str, start: int) -> int | None:
    """Return where YAML goes on after JSON: behind the rest of the line if that is blank.

    Kubernetes looks at four bytes at a time there, and gives up where fewer are left.
    """
    place = start
    while len(text[place : place + 4].encode("utf-8", "surrogatepass")) >= 4:
        if text[place] not in _SPACE:
            return place
        place += 1
        if text[place - 1] == "\n":
            return place
    return None


def _as_int64(value: Json, text: str) -> Json:
    return _with_int64(value) if _MAY_EXCEED_INT64.search(text) else value


def _with_int64(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _with_int64(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_int64(member) for member in value]
    if isinstance(value, int) and value not in INT64:
        return float(value)
    return value


def _text(data: bytes | str, source: str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        TextPlace(source).refuse_at(before, len(before), "not UTF-8 text", "save the file as UTF-8")


def _pieces(text: str, place: TextPlace) -> Iterator[DocumentText]:
    """Yield the texts between separators, with the lines they begin on."""
    kept: list[str] = []
    begin = 0
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, raw in enumerate(lines):
        line = raw.removesuffix("\r")
        if line.startswith(_SEPARATOR):
            _check_separator(line, number, place)
            if kept:
                yield DocumentText("\n".join(kept) + "\n", place.line + begin)
                kept, begin = [], number + 1
                continue
        kept.append(line)
    if kept:
        yield DocumentText("\n".join(kept) + "\n", place.line + begin)


def _check_separator(line: str, number: int, place: TextPlace) -> None:
    rest = line[len(_SEPARATOR) :].strip(_SPACE)
    if rest and not rest.startswith("#"):
        place.refuse(
            "only a comment may follow the --- that separates documents", number, 0, "put the text on the next line"
        )
