from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json, equal, json_to_yaml, marshal_yaml, read_yaml, write_json, write_yaml
from garboard.documents.yaml_write import sort_keys
from garboard.errors import BadDocument
from tests.support.documents.vectors import vectors

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["yes", "n", "0600", "1e3", "2001-01-01", "a: b", "- a", "x\n", " x\ny", "long " * 30, "a\u2028b", "\ufeffa"]
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT
DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=15
)


@pytest.mark.parametrize("vector", vectors("yaml-write"), ids=lambda each: each["name"])
def test_text_is_written_as_the_go_library_writes_it(vector: dict[str, Any]) -> None:
    assert write_yaml(read_yaml(vector["json"], source="x")) == vector["expectedYAML"]


@given(DOCUMENTS)
def test_what_is_written_reads_back(document: Json) -> None:
    assert equal(read_yaml(write_yaml(document), source="x"), document)


def test_fold_happens_at_the_first_blank_past_the_width() -> None:
    assert write_yaml({"k": "x" * 77 + " y z"}) == f"k: {'x' * 77} y\n  z\n"
    assert write_yaml({"k": "x" * 78 + " y z"}) == f"k: {'x' * 78}\n  y z\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e6, "1000000\n"),
        (1e20, "1e+20\n"),
        (0.5, "0.5\n"),
        (-0.0, "0\n"),
        (2000000.5, "2.0000005e+06\n"),
        (10**20, "1e+20\n"),
    ],
)
def test_float_takes_the_detour_over_json(value: float, text: str) -> None:
    assert write_yaml(value) == text


@pytest.mark.parametrize("write", [write_yaml, write_json])
def test_what_has_no_text_is_refused(write: Callable[[Json], str]) -> None:
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    refused: list[Json] = [deep, {"a": float("inf")}, [float("nan")]]
    for value in refused:
        with pytest.raises(BadDocument):
            write(value)


@pytest.mark.parametrize("vector", vectors("yaml-write"), ids=lambda each: str(each["name"]))
def test_text_is_converted_as_the_go_library_converts_it(vector: dict[str, str]) -> None:
    assert json_to_yaml(vector["json"], source="x") == vector["expectedYAML"]


def test_number_keeps_the_kind_it_is_spelled_in() -> None:
    assert json_to_yaml("[1e6, 1000000, -0.0, -0, 1.0]", source="x") == "- 1e+06\n- 1000000\n- -0\n- 0\n- 1\n"


@pytest.mark.parametrize("text", ['"\\/"', '"\\ud83d\\ude00"', '"\x7f"', "[1,"])
def test_what_the_yaml_reader_refuses_is_refused(text: str) -> None:
    with pytest.raises(BadDocument):
        json_to_yaml(text, source="x")


def test_a_next_line_is_folded_on_its_way_through_json() -> None:
    assert marshal_yaml({"a": "b\x85c"}, source="x") == "a: b c\n"


def test_text_that_only_looks_odd_stays() -> None:
    assert marshal_yaml({"a": "\\N \\x7f"}, source="x") == "a: \\N \\x7f\n"


@pytest.mark.parametrize("character", ["\x7f", "\x80", "\x9f", "\ufffe"])
def test_control_characters_are_refused(character: str) -> None:
    with pytest.raises(BadDocument, match="control characters are not allowed"):
        marshal_yaml({"a": character}, source="x")


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["-x", "_", "1", "2", "10", "A", "Z", "a", "a-b", "a_b", "a1"], id="letters last"),
        pytest.param(["a", "a1", "a2", "a10", "a10b", "ab"], id="digit runs by value"),
        pytest.param(["a1", "a01", "a2", "a02"], id="equal values by length"),
        pytest.param(["_", "~", "A", "a", "é", "中"], id="by code point"),
    ],
)
def test_keys_are_ordered_naturally(keys: list[str]) -> None:
    for shuffled in permutations(keys[:7]):
        assert sort_keys(shuffled) == keys[:7]
    assert sort_keys(reversed(keys)) == keys
