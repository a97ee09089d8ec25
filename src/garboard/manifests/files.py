"""A file that a node needs, as a value, and documents as the text that kubeadm writes into files."""

import re
from dataclasses import dataclass

from garboard.documents import Json, json_to_yaml, write_json, write_yaml

# How the YAML writer spells what JSON text may hold as it is and the YAML reader then stumbles over.
_ODD_CHARACTER = re.compile(r"\\(?:N|x[789]|uFFF)")


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file to write; `directory_mode` is for its folder, should that have to be made."""

    path: str
    content: bytes
    mode: int
    directory_mode: int = 0o700


def document_text(document: Json, name: str) -> str:
    """Return a document as YAML by way of JSON text, as kubeadm does it: next lines become spaces, DEL is refused."""
    text = write_yaml(document)
    return json_to_yaml(write_json(document), source=name) if _ODD_CHARACTER.search(text) else text
