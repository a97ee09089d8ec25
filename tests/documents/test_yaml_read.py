from typing import Any

import pytest
from tests.documents.vectors import same, vectors

from garboard.documents import MAX_DEPTH, read_yaml
from garboard.errors import BadDocument


@pytest.mark.parametrize("vector", vectors("yaml-read"), ids=lambda each: each["name"])
def test_text_is_read_as_the_go_library_reads_it(vector: dict[str, Any]) -> None:
    if "error" in vector:
        with pytest.raises(BadDocument) as caught:
            read_yaml(vector["yaml"], source="a.yaml")
        assert caught.value.error_class == vector["error"]
    else:
        assert same(read_yaml(vector["yaml"], source="a.yaml"), vector["expected"])


def test_error_names_the_place_in_the_file() -> None:
    with pytest.raises(BadDocument, match=r"^p\.yaml:12:4: ") as caught:
        read_yaml("a: 1\nb: *x\n", source="p.yaml", line=11)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(BadDocument):
        read_yaml(text * 100_000, source="x")


def test_deepest_document_is_read() -> None:
    value = read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, source="x")
    for _ in range(MAX_DEPTH):
        assert isinstance(value, list)
        value = value[0] if value else None
    assert value is None


@pytest.mark.timeout(5)
def test_alias_bomb_is_refused_at_once() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(BadDocument, match="excessive aliasing"):
        read_yaml("\n".join(levels), source="x")
