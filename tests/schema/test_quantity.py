import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.schema.quantity import canonical_quantity
from tests.support.schema.vectors import scalar_vectors

SUFFIXES = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"])
TEXTS = st.builds("{}{}{}".format, st.sampled_from(["", "-"]), st.integers(0, 10**20), SUFFIXES)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("0.5", "500m", id="no fractions are written"),
        pytest.param("1024Mi", "1Gi", id="binary shortened"),
        pytest.param("1.5Gi", "1536Mi", id="binary fraction"),
        pytest.param("1000k", "1M", id="decimal shortened"),
        pytest.param("1500", "1500", id="already canonical"),
        pytest.param("1e3", "1e3", id="exponent kept"),
        pytest.param("10e2", "1e3", id="exponent becomes a multiple of three"),
        pytest.param("0.0000000001", "1n", id="rounded up to nano"),
        pytest.param("1000Ei", "9223372036854775807", id="binary capped at 63 bits"),
        pytest.param("512Ki", "512Ki", id="below the next unit"),
        pytest.param("0.5Ki", "512", id="binary below 1024 is decimal"),
        pytest.param("0Gi", "0", id="zero has no unit"),
        pytest.param("1.500", "1.500", id="some texts come back as they were"),
    ],
)
def test_quantity_is_written_as_kubernetes_writes_it(text: str, written: str) -> None:
    assert canonical_quantity(text) == written


def test_recorded_quantities_are_written_as_go_writes_them() -> None:
    texts = [(value, written) for value, written in scalar_vectors("quantity") if isinstance(value, str)]
    assert len(texts) > 100
    for text, written in texts:
        if written is None:
            with pytest.raises(ValueError, match="quantity"):
                canonical_quantity(text.strip())
        else:
            assert [canonical_quantity(text.strip())] == written, text


def test_huge_exponents_cost_nothing() -> None:
    assert canonical_quantity("1e-2000000000") == "1e-9"
    assert canonical_quantity("1e2000000000") == "100e1999999998"


@given(TEXTS)
def test_canonical_form_is_stable(text: str) -> None:
    once = canonical_quantity(text)
    assert canonical_quantity(once) == once
