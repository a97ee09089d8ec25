"""The documents of a request as they are written: split, read, and refused where a key stands twice."""

from collections.abc import Iterator

from garboard.change.request import GivenDocument
from garboard.config.reading import repeated_keys
from garboard.documents import cut_documents, read_yaml
from garboard.errors import BadDocument


def given_documents(data: bytes | str, *, source: str) -> tuple[GivenDocument, ...]:
    """Return the documents of a text, without those that say nothing."""
    found = tuple(_documents(data, source))
    if not found:
        raise BadDocument(f"{source} holds no document", hint="write the kind and the fields that are to change")
    return found


def _documents(data: bytes | str, source: str) -> Iterator[GivenDocument]:
    for piece in cut_documents(data, source=source):
        content = read_yaml(piece.text, source=source, line=piece.line)
        if content is None:
            continue
        if repeated := [*repeated_keys(piece.text)]:
            raise BadDocument(f"{source}: {repeated[0]}", hint="write each key once", error_class="repeated-key")
        yield GivenDocument(content=content, source=f"{source}:{piece.line}")
