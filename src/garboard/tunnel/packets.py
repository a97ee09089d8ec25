"""The packets of Konnectivity: what its `Packet` message can say, as bytes and as values.

DATA, which is nearly all of the traffic, has a path of its own: `peek_data` finds the connection and the payload in the
bytes as they came, and `data_header` makes what goes before a payload, so that no body is ever copied into a message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from garboard.rpc import wire
from garboard.rpc.message import Message, message, raw, signed, string
from garboard.rpc.wire import Buffer


class PacketType(IntEnum):
    DIAL_REQ = 0
    DIAL_RSP = 1
    CLOSE_REQ = 2
    CLOSE_RSP = 3
    DATA = 4
    DIAL_CLS = 5
    DRAIN = 6
    # Beyond Konnectivity: said only to peers that agreed to it (`capabilities`), far from numbers it may use one day.
    CREDIT = 1001


@dataclass(frozen=True, slots=True)
class DialRequest:
    """Open a connection; `random` is what the answer is recognised by."""

    protocol: str = ""
    address: str = ""
    random: int = 0


@dataclass(frozen=True, slots=True)
class DialResponse:
    """The result of a dial: an error, or the id that the connection has from here on."""

    error: str = ""
    connect_id: int = 0
    random: int = 0


@dataclass(frozen=True, slots=True)
class CloseRequest:
    connect_id: int = 0


@dataclass(frozen=True, slots=True)
class CloseResponse:
    """The connection is closed, whether somebody asked for it or not."""

    error: str = ""
    connect_id: int = 0


@dataclass(frozen=True, slots=True)
class Data:
    connect_id: int = 0
    error: str = ""
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class CloseDial:
    """Give up a dial that has not been answered."""

    random: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    """The sender is going away: prefer others."""


@dataclass(frozen=True, slots=True)
class Credit:
    """So many more bytes of DATA packets may come on the connection."""

    connect_id: int = 0
    size: int = 0


Packet = DialRequest | DialResponse | CloseRequest | CloseResponse | Data | CloseDial | Drain | Credit


class _Kind(NamedTuple):
    type: PacketType
    number: int  # of the payload's field in Packet
    schema: Message[Any]


_KINDS: Final = (
    _Kind(PacketType.DIAL_REQ, 2, message(DialRequest, protocol=string(1), address=string(2), random=signed(3))),
    _Kind(PacketType.DIAL_RSP, 3, message(DialResponse, error=string(1), connect_id=signed(2), random=signed(3))),
    _Kind(PacketType.DATA, 4, message(Data, connect_id=signed(1), error=string(2), data=raw(3))),
    _Kind(PacketType.CLOSE_REQ, 5, message(CloseRequest, connect_id=signed(1))),
    _Kind(PacketType.CLOSE_RSP, 6, message(CloseResponse, error=string(1), connect_id=signed(2))),
    _Kind(PacketType.DIAL_CLS, 7, message(CloseDial, random=signed(1))),
    _Kind(PacketType.DRAIN, 8, message(Drain)),
    _Kind(PacketType.CREDIT, 1001, message(Credit, connect_id=signed(1), size=signed(2))),
)
_BY_CLASS: Final = {kind.schema.cls: kind for kind in _KINDS}
_BY_NUMBER: Final = {kind.number: kind for kind in _KINDS}

_TYPE: Final = wire.encode_tag(1, wire.VARINT)
_DATA_START: Final = b"\x08\x04\x22"  # the type DATA, and the tag of its payload
_STARTS: Final = {(_TYPE + wire.encode_varint(kind.type))[:2]: kind.type.name for kind in _KINDS}


def type_of(packet: Packet) -> PacketType:
    return _BY_CLASS[type(packet)].type


def counted_type_of(data: bytes) -> str:
    """The name of the type as it stands first in the bytes; for counting, where a guess at odd packets will do."""
    return _STARTS.get(data[:2]) or (PacketType.DIAL_REQ.name if data[:1] != _TYPE else "Unknown")


def encode_packet(packet: Packet) -> bytes:
    """The packet as stock peers expect it: with its type, and always with the payload that belongs to the type."""
    quick = _QUICK_ENCODERS.get(type(packet))
    if quick is not None and (encoded := quick(packet)) is not None:
        return encoded
    kind = _BY_CLASS[type(packet)]
    start = _TYPE + wire.encode_varint(kind.type) if kind.type else b""
    return start + wire.encode_bytes(kind.number, kind.schema.encode(packet))


def decode_packet(data: Buffer) -> Packet | None:
    """The packet in these bytes; None for a type we do not know or without its payload. Raises `BadWire`."""
    if type(data) is bytes and (quick := _decode_quickly(data)) is not None:
        return quick
    packet_type = 0
    kind: _Kind | None = None
    body = b""
    value: Packet | None = None
    for field in wire.read_fields(data):
        if field.number == 1 and field.wire_type == wire.VARINT:
            assert isinstance(field.value, int)
            packet_type = field.value
        elif field.number in _BY_NUMBER and field.wire_type == wire.LENGTH:
            assert not isinstance(field.value, int)
            found = _BY_NUMBER[field.number]
            # Of the members of a oneof the last counts; the same one twice is merged.
            body = body + bytes(field.value) if found is kind else bytes(field.value)
            kind = found
            value = found.schema.decode(body)
    return value if kind is not None and kind.type == packet_type & 0xFFFF_FFFF else None


# The packets that every connection is opened and closed with, by hand: as they are nearly always written.


def _encode_close_request(packet: CloseRequest) -> bytes | None:
    inner = b"\x08" + wire.encode_varint(packet.connect_id) if packet.connect_id > 0 else b""
    return b"\x08\x02\x2a" + wire.encode_varint(len(inner)) + inner if packet.connect_id >= 0 else None


def _encode_close_response(packet: CloseResponse) -> bytes | None:
    if packet.error or packet.connect_id <= 0:
        return None
    inner = b"\x10" + wire.encode_varint(packet.connect_id)
    return b"\x08\x03\x32" + wire.encode_varint(len(inner)) + inner


def _encode_dial_response(packet: DialResponse) -> bytes | None:
    if packet.error or packet.connect_id <= 0 or packet.random <= 0:
        return None
    inner = b"\x10" + wire.encode_varint(packet.connect_id) + b"\x18" + wire.encode_varint(packet.random)
    return b"\x08\x01\x1a" + wire.encode_varint(len(inner)) + inner


_QUICK_ENCODERS: Final[dict[type, Callable[[Any], bytes | None]]] = {
    CloseRequest: _encode_close_request,
    CloseResponse: _encode_close_response,
    DialResponse: _encode_dial_response,
}
_MOST_QUICK: Final = 120  # bytes; below this every length is one byte
_INT_OR_BYTES = int | bytes


def _decode_quickly(data: bytes) -> Packet | None:
    """The packet, if it is one of a few and written as everybody does; None is for the careful reader."""
    end = len(data)
    if not 6 <= end <= _MOST_QUICK:
        return None
    kind, at = (0, 1) if data[0] == 0x12 else (data[1], 3)
    if at == 3 and (data[0] != 0x08 or _QUICK_TAGS.get(kind) != data[2]):
        return None
    if data[at] != end - at - 1:
        return None
    try:
        first, second, third = _three_fields(data, at + 1, end)
    except (IndexError, ValueError):
        return None
    return _quick_packet(kind, first, second, third)


_QUICK_TAGS: Final = {1: 0x1A, 2: 0x2A, 3: 0x32}  # the payload's tag by type


def _three_fields(data: bytes, at: int, end: int) -> tuple[_INT_OR_BYTES, _INT_OR_BYTES, _INT_OR_BYTES]:
    """Fields 1 to 3 of a short message, each at most once and in order; 0 for one that is not there."""
    found: list[_INT_OR_BYTES] = [0, 0, 0]
    last = 0
    while at < end:
        number, wire_type = data[at] >> 3, data[at] & 7
        if not last < number <= 3:
            raise ValueError
        last = number
        if wire_type == wire.VARINT:
            found[number - 1], at = _short_varint(data, at + 1)
        elif wire_type == wire.LENGTH and at + 2 + data[at + 1] <= end:
            start = at + 2
            at = start + data[at + 1]
            found[number - 1] = data[start:at]
        else:
            raise ValueError
    if at != end:
        raise ValueError
    return found[0], found[1], found[2]


def _quick_packet(kind: int, first: _INT_OR_BYTES, second: _INT_OR_BYTES, third: _INT_OR_BYTES) -> Packet | None:
    if kind == 0 and type(first) is bytes and type(second) is bytes and type(third) is int:
        if first.isascii() and second.isascii():
            return DialRequest(first.decode(), second.decode(), third)
    elif kind == 1 and first == 0 and type(second) is int and type(third) is int:
        return DialResponse("", second, third)
    elif kind == 2 and type(first) is int and second == third == 0:
        return CloseRequest(first)
    elif kind == 3 and first == third == 0 and type(second) is int:
        return CloseResponse("", second)
    return None


def peek_data(packet: bytes) -> tuple[int, int] | None:
    """The connection of a DATA packet and where its payload starts; it ends with the packet.

    None for any other packet, and for DATA that is written in an unusual way: `decode_packet` reads those.
    """
    if not packet.startswith(_DATA_START):
        return None
    end = len(packet)
    try:
        # Written out: this runs for every packet, and most numbers have one to three bytes.
        size, at = packet[3], 4
        if size >= 0x80:
            size, at = _short_varint(packet, 3)
        if at + size != end or packet[at] != 0x08:
            return None
        connect_id, at = packet[at + 1], at + 2
        if connect_id >= 0x80:
            connect_id, at = _short_varint(packet, at - 1)
        if packet[at] != 0x1A:
            return None
        size, at = packet[at + 1], at + 2
        if size >= 0x80:
            size, at = _short_varint(packet, at - 1)
    except IndexError:
        return None
    return (connect_id, at) if at + size == end else None


def _short_varint(packet: bytes, at: int) -> tuple[int, int]:
    """A number of at most 63 bits; anything longer is left to the careful reader."""
    byte = packet[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for shift in range(7, 63, 7):
        at += 1
        byte = packet[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise IndexError


def data_header(connect_id: int, size: int) -> bytes:
    """What goes before a payload of this size (not 0) to make it a DATA packet."""
    inner = b"\x08" + wire.encode_varint(connect_id) + b"\x1a" + wire.encode_varint(size)
    return _DATA_START + wire.encode_varint(len(inner) + size) + inner
