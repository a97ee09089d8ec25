"""Bytes to JSON trees and back, exactly as Kubernetes reads and writes YAML, with positions on demand.

What the trees mean is left to `config`, `patches` and `schema`.
"""

from garboard.documents.json_text import read_json, write_json
from garboard.documents.json_value import MAX_DEPTH, DocumentPath, Json, equal
from garboard.documents.passwords import HIDDEN, URL_USERINFO, document_without_passwords, without_passwords
from garboard.documents.positions import Position, Positions, locate
from garboard.documents.streams import (
    DocumentText,
    Manifest,
    cut_documents,
    read_stream,
    refuse_second_document,
    split_documents,
)
from garboard.documents.yaml_read import read_yaml
from garboard.documents.yaml_write import json_to_yaml, marshal_yaml, write_yaml

__all__ = [
    "HIDDEN",
    "MAX_DEPTH",
    "URL_USERINFO",
    "DocumentPath",
    "DocumentText",
    "Json",
    "Manifest",
    "Position",
    "Positions",
    "cut_documents",
    "document_without_passwords",
    "equal",
    "json_to_yaml",
    "locate",
    "marshal_yaml",
    "read_json",
    "read_stream",
    "read_yaml",
    "refuse_second_document",
    "split_documents",
    "without_passwords",
    "write_json",
    "write_yaml",
]
