import pytest

from garboard.errors import BadDocument
from garboard.manifests.files import document_text


def test_a_next_line_is_folded_on_its_way_through_json() -> None:
    assert document_text({"a": "b\x85c"}, "x") == "a: b c\n"


def test_text_that_only_looks_odd_stays() -> None:
    assert document_text({"a": "\\N \\x7f"}, "x") == "a: \\N \\x7f\n"


@pytest.mark.parametrize("character", ["\x7f", "\x80", "\x9f", "\ufffe"])
def test_control_characters_are_refused(character: str) -> None:
    with pytest.raises(BadDocument, match="control characters are not allowed"):
        document_text({"a": character}, "x")
