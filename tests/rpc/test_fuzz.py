"""Whatever bytes arrive, an endpoint tells it in events: it never raises, and never answers with more than it got."""

import hpack
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.rpc import frames
from garboard.rpc.endpoint import ClientEndpoint, Endpoint, ServerEndpoint
from tests.support.rpc.peers import REQUEST
from tests.support.rpc.splitting import split_at

RESPONSE = ((":status", "200"), ("content-type", "application/grpc"))
blocks = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([REQUEST, RESPONSE, (("grpc-status", "0"),), ((":status", "103"),), ()]).map(
        lambda headers: bytes(hpack.Encoder().encode(headers))
    ),
)
payloads = st.one_of(
    blocks,
    st.sampled_from([b"\x00\x00\x00\x00\x02hi", b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x01", b"\x01\x00\x00\x00\x00"]),
    st.sampled_from([b"\x00\x00\x00\x01", b"\x7f\xff\xff\xff", b"12345678", b"\x00\x04\x00\x00\x00\x00"]),
)
any_frame = st.builds(
    frames.frame,
    st.integers(0, 10),
    st.sampled_from([0, 1, 4, 5, 8, 9, 0x20, 0x25, 0xFF]),
    st.sampled_from([0, 1, 1, 1, 2, 3, 5]),
    payloads,
)


@settings(max_examples=200, deadline=None)
@given(
    st.booleans(), st.lists(any_frame | st.binary(max_size=20), max_size=15), st.lists(st.integers(0, 500), max_size=4)
)
def test_no_bytes_make_an_endpoint_raise(is_client: bool, sent: list[bytes], cuts: list[int]) -> None:
    endpoint: Endpoint = ClientEndpoint(authority="x") if is_client else ServerEndpoint()
    if isinstance(endpoint, ClientEndpoint):
        call = endpoint.start_call("/S/M")
        call.send(b"question")
    greeting = frames.settings({}) if is_client else frames.PREFACE + frames.settings({})
    endpoint.receive_data(greeting)
    endpoint.data_to_send()
    data = b"".join(sent)
    answered = 0
    for piece in split_at(data, cuts):
        endpoint.receive_data(piece)
        answered += len(endpoint.data_to_send())
    # GOAWAY with its reason, and for each frame at most an answer with a reason in words.
    assert answered <= 300 + 400 * len(sent)
    endpoint.close("done")
    assert endpoint.calls == {}
