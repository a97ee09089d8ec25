from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.vectors import vectors

from garboard.documents import Json, equal, read_yaml, write_yaml

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
