"""What kubeadm calls strict decoding: unknown fields and repeated keys, all of them, and what to do about them."""

from collections.abc import Iterator

from garboard.config.decoding import Decoded, decode, path_text
from garboard.config.problems import InvalidConfiguration, Notes
from garboard.config.sources import ConfigDocument
from garboard.documents import DocumentPath, Json, locate
from garboard.model.go_text import go_quote
from garboard.schema import StructType


def decode_strictly(document: ConfigDocument, type_: StructType, notes: Notes, *, is_fatal: bool) -> dict[str, Json]:
    """Decode a document. Values of a wrong type are always refused, other findings only where they are fatal."""
    decoded = decode(document.tree, type_)
    prefix = f"error unmarshaling configuration {document.gvk.as_go_literal}: "
    file = document.source.file
    if decoded.mismatches:
        raise InvalidConfiguration(file, (prefix + mismatch for mismatch in decoded.mismatches))
    findings = [*_findings(document, decoded)]
    if findings and is_fatal:
        raise InvalidConfiguration(
            file,
            (f"{prefix}strict decoding error: {text}{document.source.where(path)}" for text, path in findings),
            hint=f"did you mean {' and '.join(map(repr, decoded.meant))}?" if decoded.meant else None,
        )
    if findings:
        notes.warn(f"{prefix}strict decoding error: {', '.join(text for text, _ in findings)}")
    return decoded.tree


def _findings(document: ConfigDocument, decoded: Decoded) -> Iterator[tuple[str, DocumentPath]]:
    repeated = [*repeated_keys(document.source.text)]
    if repeated:
        yield "yaml: unmarshal errors:" + "".join(f"\n  {line}" for line in repeated), ()
    for path in decoded.unknown:
        yield f"unknown field {go_quote(path_text(path))}", path


def repeated_keys(text: str) -> Iterator[str]:
    """Tell every key that a mapping sets more than once, with the line in its document, as go-yaml does."""
    for name, at in locate(text).keys_set_again():
        yield f"line {at.line}: key {go_quote(name)} already set in map"
