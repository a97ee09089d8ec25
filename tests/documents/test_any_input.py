"""Whatever the bytes, the answer is a document or a `BadDocument`, never a traceback."""

import contextlib
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import locate, read_json, read_stream, read_yaml, split_documents
from garboard.errors import BadDocument
from tests.support.documents.random_texts import damaged_text, json_text, stream_text, token_text


def _read_in_every_way(data: bytes | str) -> None:
    for read in (read_yaml, read_json, split_documents, lambda data, source: list(read_stream(data, source=source))):
        with contextlib.suppress(BadDocument):
            read(data, source="x")
    if isinstance(data, str):
        locate(data)


@given(st.binary(max_size=60))
@settings(max_examples=120)
def test_bytes(data: bytes) -> None:
    _read_in_every_way(data)


@given(st.text(max_size=60) | st.text(alphabet="\n\t :-?[]{},&*!|>'\"%@`#\\ab<~.019\ufeff\u2028\ud800", max_size=60))
@settings(max_examples=120)
def test_text(text: str) -> None:
    _read_in_every_way(text)


@pytest.mark.parametrize("make", [token_text, damaged_text, stream_text, json_text])
def test_nearly_documents(make: object) -> None:
    random = Random(1)
    for _ in range(200):
        _read_in_every_way(make(random))  # type: ignore[operator]


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[a:, " * 20_000 + "]" * 20_000, id="repairs without end"),
        pytest.param("[" + "a:, " * 20_000 + "]", id="a repair at every element"),
        pytest.param("a: &a [" + "*a, " * 50_000 + "]", id="aliases to what is open"),
        pytest.param("a: &a {b: 1}\nc:\n" + "  <<: *a\n" * 10_000, id="merges"),
        pytest.param("? " * 50_000, id="keys of keys"),
        pytest.param("- " * 50_000 + "a", id="lists of lists"),
        pytest.param("!" * 100_000, id="tags"),
        pytest.param('"' + "\\/" * 100_000 + '"', id="escaped slashes"),
        pytest.param("{" * 100_000, id="braces"),
        pytest.param("a" * 200_000 + ": 1", id="a long key"),
        pytest.param("\\" * 100_000 + "/", id="backslashes"),
        pytest.param("1" * 200_000, id="digits"),
        pytest.param("".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 2000)), id="unknown anchor"),
    ],
)
def test_hostile_text_is_answered_soon(text: str) -> None:
    _read_in_every_way(text)
