import pytest

from garboard.documents import DocumentText, read_stream, split_documents
from garboard.errors import BadDocument


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("a: 1\n---\nb: 2\n", [("a: 1", 1), ("b: 2", 3)], id="two"),
        pytest.param("\n\n  a: 1\r\n--- # next\r\n\r\nb: 2", [("a: 1", 3), ("b: 2", 6)], id="space and comments"),
        pytest.param("---\na: 1\n---\n", [("---\na: 1", 1)], id="the first separator stays"),
        pytest.param("---\n---\na: 1", [("---", 1), ("a: 1", 3)], id="an empty document"),
        pytest.param("# head\n---\na: 1", [("# head", 1), ("a: 1", 3)], id="comment block"),
        pytest.param("a: |\n  ---\n ---\n", [("a: |\n  ---\n ---", 1)], id="only in the first column"),
        pytest.param(" \n\t\n", [], id="blank"),
        pytest.param("", [], id="empty"),
    ],
)
def test_patch_file_is_cut_at_its_separators(text: str, pieces: list[tuple[str, int]]) -> None:
    assert split_documents(text.encode(), source="p") == tuple(DocumentText(*piece) for piece in pieces)


def test_text_after_a_separator_is_refused() -> None:
    with pytest.raises(BadDocument, match=r"^p:2:1: "):
        split_documents("a: 1\n-----BEGIN CERTIFICATE\n", source="p")


@pytest.mark.parametrize(
    ("text", "manifests"),
    [
        pytest.param("a: 1\n---\n# none\n---\nb: 2\n", [({"a": 1}, 1), ({"b": 2}, 5)], id="yaml"),
        pytest.param('{"a": 1}\n\n{"b": 2}null{"c": 3}', [({"a": 1}, 1), ({"b": 2}, 3), ({"c": 3}, 3)], id="json"),
        pytest.param('{"a": 1}\n---\nb: 2\n', [({"a": 1}, 1), ({"b": 2}, 2)], id="json, then yaml"),
        pytest.param("{a: 1}\n", [({"a": 1}, 1)], id="braces that are yaml"),
        pytest.param("a: 18446744073709551615\n", [({"a": 18446744073709551615.0}, 1)], id="beyond int64"),
        pytest.param(" \n", [], id="blank"),
    ],
)
def test_stream_is_read_as_kubectl_reads_it(text: str, manifests: list[tuple[object, int]]) -> None:
    assert [(each.value, each.line) for each in read_stream(text, source="m")] == manifests


def test_what_began_as_json_is_explained_as_json() -> None:
    with pytest.raises(BadDocument, match=r"^m:1:2: expecting property name"):
        list(read_stream("{[}]", source="m"))
