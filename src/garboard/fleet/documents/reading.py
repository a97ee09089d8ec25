"""Files to JSON trees, document by document, within the size that an API server stores."""

from collections.abc import Iterator
from typing import Final

from garboard.documents import Json, cut_documents, read_stream, read_yaml
from garboard.errors import BadDocument
from garboard.fleet.documents.problems import DocumentProblem
from garboard.patches import SourceText, TextPart
from garboard.values import dataclass

# What etcd takes by default. A document that is larger could not be an object of a cluster.
MAX_OBJECT_BYTES: Final = 1_572_864


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """One object as it was read, and the text that it stands in."""

    value: Json
    source: SourceText


def read_documents(data: bytes, *, file: str) -> Iterator[ReadDocument | DocumentProblem]:
    """Yield the objects of a file: YAML documents, JSON values, the items of a List. Empty ones are left out.

    A document that cannot be parsed is a problem beside the others. One that is larger than an API server
    stores is refused before it is parsed.
    """
    if data.lstrip()[:1] == b"{":
        _refuse_large(len(data), file, 1)
        for read in read_stream(data, source=file):
            yield from _items(read.value, SourceText(file, read.text, read.line))
        return
    for number, piece in enumerate(cut_documents(data, source=file), start=1):
        _refuse_large(len(piece.text), file, piece.line)
        try:
            value = read_yaml(piece.text, source=file, line=piece.line)
        except BadDocument as error:
            yield DocumentProblem("", error.message, error.hint)
            continue
        if value is not None:
            yield from _items(value, SourceText(file, piece.text, piece.line, number))


def _items(value: Json, source: SourceText) -> Iterator[ReadDocument]:
    items = value.get("items") if isinstance(value, dict) and value.get("kind") == "List" else None
    if isinstance(items, list):
        for index, item in enumerate(items):
            yield ReadDocument(item, TextPart.of(source, ("items", index)))
    else:
        yield ReadDocument(value, source)


def _refuse_large(size: int, file: str, line: int) -> None:
    if size > MAX_OBJECT_BYTES:
        raise BadDocument(
            f"{file}:{line}: a document of {size / 2**20:.1f} MiB; an API server stores at most 1.5 MiB",
            hint="check that this is the file you meant, or divide the document",
            error_class="too-large",
        )
