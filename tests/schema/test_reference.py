"""The shipped data and the round trip against the Go types themselves, built on first use."""

import copy
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import round_trip
from garboard.schema.catalog import read_data
from garboard.schema.scalars import READERS, Mismatch
from tests.equality import same_value
from tools.schema.generate import HERE, generate_types
from tools.schema.gomodule import kubernetes_module
from tools.schema.reference import build_reference, random_documents, scalar_documents, scalar_in

# A cold build of the programs takes minutes.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
VERSION = SUPPORTED_VERSIONS[-1]


def test_regenerating_the_types_gives_the_shipped_data(tmp_path: Path) -> None:
    assert generate_types(kubernetes_module(str(VERSION), HERE, tmp_path)) == read_data(
        VERSION.as_minor, "types.json.z"
    )


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_random_documents_and_scalars_come_out_as_from_go(version: KubernetesVersion, tmp_path: Path) -> None:
    reference = build_reference(version, tmp_path)
    documents = random_documents(version, seed=2, count=4000)
    answers = reference.round_trips(document for _, document in documents)
    for (kind, document), answer in zip(documents, answers, strict=True):
        rewritten = copy.deepcopy(document)
        try:
            round_trip(rewritten, kind.type)
        except BadDocument:
            assert "error" in answer, document
        else:
            assert same_value(rewritten, answer.get("output")), document
    scalars = scalar_documents(seed=2, count=2000)
    answers = reference.round_trips(document for _, _, document in scalars)
    for (scalar, value, _), answer in zip(scalars, answers, strict=True):
        assert written(scalar, value) == (None if "error" in answer else [scalar_in(answer["output"], scalar)]), value


def written(scalar: str, value: Json) -> list[Json] | None:
    try:
        return [READERS[scalar](value)]
    except Mismatch:
        return None
