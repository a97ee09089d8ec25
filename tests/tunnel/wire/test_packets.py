import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.rpc.wire import BadWire
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet
from tests.support.tunnel.runtime import MEMBERS, RuntimePacket, to_runtime

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)
TEXT = st.text(max_size=20)
PACKETS: st.SearchStrategy[Packet] = st.one_of(
    st.builds(packets.DialRequest, TEXT, TEXT, INT64),
    st.builds(packets.DialResponse, TEXT, INT64, INT64),
    st.builds(packets.CloseRequest, INT64),
    st.builds(packets.CloseResponse, TEXT, INT64),
    st.builds(packets.Data, INT64, TEXT, st.binary(max_size=300)),
    st.builds(packets.CloseDial, INT64),
    st.just(packets.Drain()),
)


@pytest.mark.parametrize(
    ("packet", "encoded"),
    [
        (packets.DialRequest("tcp", "127.0.0.1:80", 1), "12150a03746370120c3132372e302e302e313a38301801"),
        (packets.DialResponse("", 1, 1), "08011a0410011801"),
        (
            packets.DialResponse("No agent available", 0, 1),
            "08011a160a124e6f206167656e7420617661696c61626c651801",
        ),
        (packets.CloseRequest(1), "08022a020801"),
        (packets.CloseResponse("", 1), "080332021001"),
        (packets.Data(1, "", b"hi"), "0804220608011a026869"),
        (packets.CloseDial(1), "08053a020801"),
        (packets.Drain(), "08064200"),
        (packets.Credit(1, 300), "08e907ca3e05080110ac02"),
        (packets.Credit(1, 0), "08e907ca3e020801"),
        (packets.ServersRequest(), "08ea07d23e00"),
        (packets.ServersResponse("s", 4, 2, ("s-0", "s-1")), "08eb07da3e110a0173100418022203732d302203732d31"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_packet_has_the_bytes_of_the_published_table(packet: Packet, encoded: str) -> None:
    assert packets.encode_packet(packet).hex() == encoded
    assert packets.decode_packet(bytes.fromhex(encoded)) == packet


@given(PACKETS)
def test_the_protobuf_runtime_writes_the_same_bytes_and_we_read_them(packet: Packet) -> None:
    encoded = to_runtime(packet).SerializeToString()
    assert packets.encode_packet(packet) == encoded
    assert packets.decode_packet(encoded) == packet


@given(
    st.binary(max_size=60)
    | st.lists(PACKETS, min_size=2, max_size=3).map(lambda all_: b"".join(map(packets.encode_packet, all_)))
)
@settings(max_examples=300)
def test_any_bytes_are_read_as_the_protobuf_runtime_reads_them(data: bytes) -> None:
    try:
        expected = RuntimePacket.FromString(data)
    except DecodeError:
        with pytest.raises(BadWire):
            packets.decode_packet(data)
        return
    known = expected.type in MEMBERS and expected.WhichOneof("payload") == MEMBERS[expected.type]
    found = packets.decode_packet(data)
    assert (found is not None) == known
    if found is not None:
        assert to_runtime(found).SerializeToString() == _without_unknown(expected)


def _without_unknown(packet: object) -> bytes:
    packet.DiscardUnknownFields()  # type: ignore[attr-defined]
    return bytes(packet.SerializeToString())  # type: ignore[attr-defined]


@given(st.integers(1, 2**63 - 1), st.binary(min_size=1, max_size=40_000))
@settings(max_examples=50)
def test_data_is_found_without_decoding_and_built_without_encoding(connect_id: int, payload: bytes) -> None:
    encoded = packets.encode_packet(packets.Data(connect_id, "", payload))
    assert packets.data_header(connect_id, len(payload)) + payload == encoded
    found = packets.peek_data(encoded)
    assert found is not None
    assert (found[0], encoded[found[1] :]) == (connect_id, payload)


@given(st.binary(max_size=40).map(lambda tail: b"\x08\x04\x22" + tail) | PACKETS.map(packets.encode_packet))
@settings(max_examples=300)
def test_the_quick_look_never_contradicts_the_careful_one(data: bytes) -> None:
    quick = packets.peek_data(data)
    if quick is None:
        return
    careful = packets.decode_packet(data)
    assert isinstance(careful, packets.Data)
    assert (careful.connect_id, careful.data) == (quick[0], data[quick[1] :])


@pytest.mark.parametrize("encoded", ["", "0804", "08011a00" + "2a00", "0807", "10"], ids=repr)
def test_packet_without_the_payload_of_its_type_is_none_or_refused(encoded: str) -> None:
    try:
        assert packets.decode_packet(bytes.fromhex(encoded)) is None
    except BadWire:
        assert encoded == "10"


@given(INT64, INT64)
def test_credit_reads_alike_by_hand_and_field_by_field(connect_id: int, size: int) -> None:
    credit = packets.Credit(connect_id, size)
    encoded = packets.encode_packet(credit)
    assert packets.decode_packet(encoded) == credit
    assert packets.decode_packet(memoryview(encoded)) == credit  # of a view, every field is looked at


@given(st.binary(max_size=24) | st.binary(max_size=8).map(lambda fields: bytes((len(fields),)) + fields))
@settings(max_examples=300)
def test_what_is_nearly_a_credit_reads_alike_by_hand_and_field_by_field(tail: bytes) -> None:
    data = b"\x08\xe9\x07\xca\x3e" + tail
    assert _read(data) == _read(memoryview(data))


def _read(data: bytes | memoryview) -> Packet | str | None:
    try:
        return packets.decode_packet(data)
    except BadWire as refused:
        return refused.message
