import hpack
import pytest

from garboard.rpc import headers
from garboard.rpc.headers import HeaderDecoder, HeaderEncoder
from garboard.rpc.limits import Limits
from garboard.rpc.violations import ConnectionViolation, ErrorCode

REQUEST = ((":method", "POST"), (":scheme", "http"), (":path", "/a/b"), ("x", "y"))


def decode(decoder: HeaderDecoder, block: bytes) -> headers.Headers:
    decoder.begin(1, 0, memoryview(block))
    return decoder.finish()


def test_headers_survive_the_way_there() -> None:
    encoder, decoder = HeaderEncoder(), HeaderDecoder(Limits())
    for _ in range(3):  # the second time they come from the dynamic table
        assert decode(decoder, encoder.encode(REQUEST)) == REQUEST


def test_secrets_are_never_indexed() -> None:
    encoded = HeaderEncoder().encode([("authorization", "Bearer abc")])
    [found] = hpack.Decoder().decode(encoded)
    assert isinstance(found, hpack.NeverIndexedHeaderTuple)


def test_peer_cannot_make_us_keep_a_large_table() -> None:
    encoder = HeaderEncoder()
    encoder.set_table_size(2**31)
    assert encoder._encoder.header_table_size == 4096


def test_garbage_is_a_compression_error() -> None:
    with pytest.raises(ConnectionViolation) as caught:
        decode(HeaderDecoder(Limits()), b"\xff\xff\xff\xff\xff\xff\xff\xff")
    assert caught.value.code is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param((*REQUEST, (":path", "/late")), id="pseudo-header behind a header"),
        pytest.param(((":method", "POST"), *REQUEST), id="pseudo-header twice"),
        pytest.param(REQUEST[1:], id="no method"),
        pytest.param((*REQUEST[:3], ("Upper", "x")), id="upper case"),
        pytest.param((*REQUEST, ("connection", "close")), id="connection-specific"),
        pytest.param((*REQUEST, ("te", "gzip")), id="te other than trailers"),
        pytest.param((*REQUEST, ("x", "a\r\nb")), id="line break in a value"),
        pytest.param((*REQUEST, ("", "a")), id="empty name"),
        pytest.param(((":status", "200"), *REQUEST), id="pseudo-header of a response"),
    ],
)
def test_malformed_request_is_found(bad: headers.Headers) -> None:
    assert headers.flaw_of_request(bad) is not None


def test_good_headers_have_no_flaw() -> None:
    assert headers.flaw_of_request((*REQUEST, ("te", "trailers"))) is None
    assert headers.flaw_of_response(((":status", "200"), ("x-bin", "aa"))) is None
    assert headers.flaw_of_trailers((("grpc-status", "0"),)) is None


def test_trailers_carry_no_pseudo_headers() -> None:
    assert headers.flaw_of_trailers(((":status", "200"),)) is not None


def test_response_needs_a_status() -> None:
    assert headers.flaw_of_response((("x", "y"),)) is not None
