import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import MAX_DEPTH, Json, equal, read_json, write_json
from garboard.errors import BadDocument

DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("9223372036854775807", 2**63 - 1, id="largest int64"),
        pytest.param("9223372036854775808", 2.0**63, id="beyond int64"),
        pytest.param("1e2", 100.0, id="exponents make floats"),
        pytest.param("-0", 0, id="minus nothing"),
        pytest.param('{"a": 1, "a": 2}', {"a": 2}, id="last of two keys"),
        pytest.param('"\\ud800\\ud83d\\ude00"', "\ufffd\U0001f600", id="lone and paired surrogates"),
        pytest.param(b'"\xff\xe4\xb8"', "\ufffd\ufffd\ufffd", id="each stray byte by itself"),
        pytest.param("[" * MAX_DEPTH + "]" * MAX_DEPTH, None, id="deepest"),
    ],
)
def test_json_is_read_as_go_reads_it(text: bytes | str, value: Json) -> None:
    assert value is None or equal(read_json(text, source="x"), value)
    assert read_json(text, source="x") is not None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("", "1:1", id="nothing"),
        pytest.param('{"a": 1}\n x', "2:2", id="more text"),
        pytest.param("[1e400]", "1:1", id="number out of range"),
        pytest.param("[NaN]", "1:1", id="NaN"),
        pytest.param('\n["a\nb"]', "2:4", id="line break in a string"),
        pytest.param("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "1:1", id="too deep"),
        pytest.param("[" * 100_000, "1:1", id="far too deep"),
        pytest.param('{"a":' * 100_000, "1:1", id="far too deep in mappings"),
        pytest.param("1" * 5000, "1:1", id="thousands of digits"),
    ],
)
def test_what_is_no_json_is_refused_at_its_place(text: str, place: str) -> None:
    with pytest.raises(BadDocument, match=f"^p.json:{place}: ") as caught:
        read_json(text, source="p.json")
    assert caught.value.hint


def test_json_is_written_as_kubectl_prints_it() -> None:
    value: Json = {"b": [1, {}, []], "a": "<é\u2028\x7f\t>", "B": 1e21, "c": {"x": 1e-7, "y": 100000.0, "z": None}}
    assert write_json(value) == (
        '{\n    "B": 1e+21,\n    "a": "\\u003cé\\u2028\x7f\\t\\u003e",\n'
        '    "b": [\n        1,\n        {},\n        []\n    ],\n'
        '    "c": {\n        "x": 1e-7,\n        "y": 100000,\n        "z": null\n    }\n}\n'
    )


@given(DOCUMENTS)
def test_what_is_written_reads_back(document: Json) -> None:
    assert equal(read_json(write_json(document), source="x"), document)
