"""Printing documents: JSON as kubectl does, YAML as kubeadm and kubectl do."""

import sys

from garboard.documents import Json, write_json, write_yaml


def document_text(document: Json, output: str) -> str:
    """Return a document as text that ends with a newline."""
    if output == "yaml":
        return write_yaml(document)
    text = write_json(document)
    return text if text.endswith("\n") else text + "\n"


def write_document(document: Json, output: str) -> None:
    sys.stdout.write(document_text(document, output))
