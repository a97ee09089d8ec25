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
from tests.support.equality import same_value
from tests.support.schema.kept_programs import KeptModule, round_trips
from tools.harness.answers import Answers
from tools.schema.generate import generate_types
from tools.schema.reference import random_documents, scalar_documents, scalar_in

# A cold build of the programs takes minutes.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
VERSION = SUPPORTED_VERSIONS[-1]


every_version = pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)


def test_regenerating_the_types_gives_the_shipped_data(answers: Answers, tmp_path: Path) -> None:
    assert generate_types(KeptModule(tmp_path, VERSION, answers)) == read_data(VERSION.as_minor, "types.json.z")


@every_version
def test_random_documents_and_scalars_come_out_as_from_go(answers: Answers, version: KubernetesVersion) -> None:
    compare(answers, version, seed=2, count=1000)


@pytest.mark.verify
@every_version
def test_other_documents_every_day_come_out_as_from_go(answers: Answers, version: KubernetesVersion, seed: int) -> None:
    compare(answers, version, seed=seed, count=6000)


def compare(answers: Answers, version: KubernetesVersion, seed: int, count: int) -> None:
    documents = random_documents(version, seed=seed, count=count)
    scalars = scalar_documents(seed=seed, count=count // 2)
    asked: list[Json] = [*(document for _, document in documents), *(document for _, _, document in scalars)]
    told = round_trips(answers, version, asked)
    for (kind, document), answer in zip(documents, told[: len(documents)], strict=True):
        rewritten = copy.deepcopy(document)
        try:
            round_trip(rewritten, kind.type)
        except BadDocument:
            assert "error" in answer, document
        else:
            assert same_value(rewritten, answer.get("output")), document
    for (scalar, value, _), answer in zip(scalars, told[len(documents) :], strict=True):
        assert written(scalar, value) == (None if "error" in answer else [scalar_in(answer["output"], scalar)]), value


def written(scalar: str, value: Json) -> list[Json] | None:
    try:
        return [READERS[scalar](value)]
    except Mismatch:
        return None
