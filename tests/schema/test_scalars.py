import pytest

from garboard.documents import Json
from garboard.schema.scalars import READERS, Mismatch


@pytest.mark.parametrize(
    ("scalar", "value", "written"),
    [
        pytest.param("int32", 80.0, 80, id="an integral float is an integer"),
        pytest.param("float32", 0.1, 0.1, id="a single keeps its short form"),
        pytest.param("float32", 16777217, 16777216, id="a single has 24 bits"),
        pytest.param("float64", 2**53 + 1, 2**53, id="a double has 53 bits"),
        pytest.param("bytes", "QR==", "QQ==", id="spare bits are cleared"),
        pytest.param("bytes", "QU\nJD", "QUJD", id="line breaks in base64"),
        pytest.param("bytes", [65, None], "QQA=", id="bytes one by one"),
        pytest.param("quantity", 2, "2", id="a number is a quantity"),
        pytest.param("quantity", 1e-7, "100e-9", id="a tiny float has an exponent"),
        pytest.param("intOrString", "80", "80", id="a string stays a string"),
        pytest.param("durationOrNanoseconds", "60s", "1m0s", id="a length as text"),
        pytest.param("durationOrNanoseconds", 5000000000, 5000000000, id="a length in nanoseconds"),
        pytest.param("bootstrapToken", "abcdef.0123456789abcdef", "abcdef.0123456789abcdef", id="token"),
    ],
)
def test_value_is_rewritten(scalar: str, value: Json, written: Json) -> None:
    assert READERS[scalar](value) == written


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        pytest.param("string", 1, id="number for a string"),
        pytest.param("bool", "true", id="string for a boolean"),
        pytest.param("int32", True, id="boolean for a number"),
        pytest.param("int32", 2**31, id="32 bits exceeded"),
        pytest.param("int64", 1e19, id="64 bits exceeded"),
        pytest.param("int64", 1.5, id="fraction for a whole number"),
        pytest.param("uint32", -1, id="negative"),
        pytest.param("float32", 1e39, id="too large for a single"),
        pytest.param("bytes", "QUJD=", id="padding too many"),
        pytest.param("quantity", True, id="boolean for a quantity"),
        pytest.param("intOrString", [], id="list for an int or string"),
        pytest.param("duration", 5, id="number for a duration"),
    ],
)
def test_value_is_refused(scalar: str, value: Json) -> None:
    with pytest.raises(Mismatch):
        READERS[scalar](value)


@pytest.mark.parametrize(
    ("scalar", "secret"), [("bytes", "hunter2!"), ("bootstrapToken", "abcdef.short"), ("time", "x9")]
)
def test_refused_value_is_not_repeated(scalar: str, secret: str) -> None:
    with pytest.raises(Mismatch) as refused:
        READERS[scalar](secret)
    assert secret not in refused.value.reason
