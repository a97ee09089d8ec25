from typing import Any

import pytest

from garboard.documents import MAX_DEPTH, Json, equal, read_yaml
from garboard.errors import BadDocument
from tests.support.documents.vectors import vectors
from tests.support.equality import same_value


@pytest.mark.parametrize("vector", vectors("yaml-read"), ids=lambda each: each["name"])
def test_text_is_read_as_the_go_library_reads_it(vector: dict[str, Any]) -> None:
    if "error" in vector:
        with pytest.raises(BadDocument) as caught:
            read_yaml(vector["yaml"], source="a.yaml")
        assert caught.value.error_class == vector["error"]
    else:
        assert same_value(read_yaml(vector["yaml"], source="a.yaml"), vector["expected"])


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


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param(b"\xff\xfea\x00:\x00 \x001\x00", {"a": 1}, id="UTF-16"),
        pytest.param("a: 1\n\ufeffb: 2\n", {"a": 1, "\ufeffb": 2}, id="a byte order mark inside is a character"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfa: 1", {"a": 1}, id="two byte order marks"),
        pytest.param("[a:, b]", ["a:", "b"], id="colon before a comma"),
        pytest.param('a: "it\\\'s"', {"a": "it's"}, id="escaped single quote"),
        pytest.param("a: \\/ # \\/", {"a": "\\/"}, id="backslash and slash outside of quotes"),
        pytest.param("a: .inf\na: 1", {"a": 1}, id="infinity that a duplicate replaces"),
        pytest.param("{a: 1} garbage", {"a": 1}, id="text after the document"),
        pytest.param("a: 2500000.0\n2500000.0: b", {"a": 2500000, "2.5e+06": "b"}, id="a float as value and as key"),
        pytest.param("a: 9223372036854775808.0", {"a": 9223372036854776000}, id="digits as Go prints them"),
        pytest.param("a: !!binary //8=", {"a": "\ufffd\ufffd"}, id="bytes that are no text"),
        pytest.param("! 1", "1", id="non-specific tag"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_oddities_of_the_go_library_are_kept(text: bytes | str, document: Json) -> None:
    assert equal(read_yaml(text, source="x"), document)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[a?b]", id="question mark in brackets"),
        pytest.param('["\\/"]', id="escaped slash"),
        pytest.param("18446744073709551615: a", id="key beyond int64"),
        pytest.param("!!int 1.5", id="impossible tag"),
        pytest.param("!!float 18446744073709551615", id="tag on an unsigned number"),
        pytest.param("a: &b [1]\nc: {<<: *b}", id="merge of an alias to a list"),
        pytest.param("a: \x07", id="control character"),
        pytest.param("a: \ud800", id="lone surrogate"),
        pytest.param(b"a: \xff", id="not UTF-8"),
        pytest.param(b"\xff\xfea", id="half of a UTF-16 character"),
    ],
)
def test_what_the_go_library_refuses_is_refused(text: bytes | str) -> None:
    with pytest.raises(BadDocument, match=r"^x:[12]:\d+: "):
        read_yaml(text, source="x")


def test_aliases_do_not_share_what_they_copy() -> None:
    document = read_yaml("a: &a {b: [1]}\nc: *a", source="x")
    assert isinstance(document, dict)
    assert document["a"] == document["c"]
    assert document["a"] is not document["c"]
