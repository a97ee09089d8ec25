import pytest

from garboard.documents import json_to_yaml, marshal_yaml
from garboard.errors import BadDocument
from tests.documents.vectors import vectors


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
