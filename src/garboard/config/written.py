"""A document with everything that Go prints of it: zero values included, what Go leaves out left out."""

from collections.abc import Mapping
from copy import deepcopy

from garboard.documents import Json
from garboard.model.minors import MinorFacts
from garboard.schema import load_schema
from garboard.schema.round_trip import round_trip


def printed_document(tree: Mapping[str, Json], api_version: str, kind: str, facts: MinorFacts) -> dict[str, Json]:
    """Return the document as kubeadm of the minor writes it."""
    type_ = load_schema(facts.reference).type_of(api_version, kind)
    assert type_ is not None, f"the schema has {api_version} {kind}"
    document: dict[str, Json] = deepcopy({**tree, "apiVersion": api_version, "kind": kind})
    round_trip(document, type_)
    return document
