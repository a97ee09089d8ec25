import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.rpc import metadata
from garboard.rpc.metadata import BadText

keys = st.from_regex(r"[a-z][0-9a-z_.]{0,10}", fullmatch=True).filter(lambda key: key not in ("te", "grpc-"))
ascii_texts = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)


@given(st.lists(st.tuples(keys, ascii_texts) | st.tuples(keys.map(lambda key: key + "-bin"), st.binary(max_size=20))))
def test_metadata_survives_the_way_there(pairs: list[tuple[str, str | bytes]]) -> None:
    assert metadata.decode_metadata(metadata.encode_metadata(tuple(pairs))) == tuple(pairs)


@pytest.mark.parametrize(
    ("text", "value"),
    [("AQI", b"\x01\x02"), ("AQI=", b"\x01\x02"), ("", b"")],
    ids=["without padding", "with padding", "empty"],
)
def test_binary_metadata_is_read_as_peers_write_it(text: str, value: bytes) -> None:
    assert metadata.decode_metadata((("k-bin", text),)) == (("k-bin", value),)


def test_joined_binary_values_come_apart() -> None:
    assert metadata.decode_metadata((("k-bin", "AQ,Ag"),)) == (("k-bin", b"\x01"), ("k-bin", b"\x02"))


@pytest.mark.parametrize("text", ["a", "a*bc", "é"])
def test_broken_base64_is_refused(text: str) -> None:
    with pytest.raises(BadText):
        metadata.decode_metadata((("k-bin", text),))


@pytest.mark.parametrize(
    "pair",
    [("Upper", "x"), ("grpc-status", "0"), ("a b", "x"), ("k-bin", "text"), ("k", b"bytes"), ("k", "new\nline")],
    ids=str,
)
def test_metadata_that_cannot_travel_is_refused_without_its_value(pair: tuple[str, str | bytes]) -> None:
    with pytest.raises(BadText) as caught:
        metadata.encode_metadata((pair,))
    if pair[0] == "k":
        assert str(pair[1]) not in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.05, "50000000n"), (5.0, "5000000u"), (200.0, "200000m"), (1e6, "1000000S"), (0.0, "1n"), (1e12, "99999999H")],
)
def test_timeout_is_written_as_exactly_as_fits(seconds: float, text: str) -> None:
    assert metadata.encode_timeout(seconds) == text


@given(st.floats(1e-6, 1e8))
def test_timeout_survives_the_way_there(seconds: float) -> None:
    # The smallest unit on the wire is a nanosecond.
    assert metadata.decode_timeout(metadata.encode_timeout(seconds)) == pytest.approx(seconds, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("text", ["", "5", "S", "123456789S", "-1S", "5s", "1.5S"])
def test_broken_timeout_is_refused(text: str) -> None:
    with pytest.raises(BadText):
        metadata.decode_timeout(text)


@given(st.text())
def test_status_message_survives_the_way_there(text: str) -> None:
    assert metadata.decode_message(metadata.encode_message(text)) == text


@pytest.mark.parametrize("text", ["100%", "%zz", "%"])
def test_broken_status_message_is_kept(text: str) -> None:
    assert metadata.decode_message(text) == text


@pytest.mark.parametrize(
    ("value", "is_grpc"),
    [
        ("application/grpc", True),
        ("application/grpc+proto", True),
        ("application/grpc;x=y", True),
        ("application/grpc-web", False),
        ("application/json", False),
        (None, False),
    ],
)
def test_content_type_is_told_apart(value: str | None, is_grpc: bool) -> None:
    assert metadata.is_grpc_content_type(value) is is_grpc
