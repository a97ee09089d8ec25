"""The packets of Konnectivity: its `Packet` message as bytes and as values.

DATA, which is nearly all of the traffic, has a path of its own: `peek_data` finds the connection and the payload in the
bytes as they came, and `data_header` makes what goes before a payload, so that no body is ever copied into a message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from garboard.rpc import wire
from garboard.rpc.message import Message, message, raw, repeated, signed, string
from garboard.rpc.wire import Buffer

STOPPING: Final = "the program is stopping"  # how the error of a dial ends that any other server may take


class PacketType(IntEnum):
    DIAL_REQ = 0
    DIAL_RSP = 1
    CLOSE_REQ = 2
    CLOSE_RSP = 3
    DATA = 4
    DIAL_CLS = 5
    DRAIN = 6
    # Beyond Konnectivity: sent only to peers that agreed to it (`capabilities`), far from numbers it may use one day.
    CREDIT = 1001
    SERVERS_REQ = 1002
    SERVERS_RSP = 1003


# Packets are never changed. These four are not frozen all the same: a connection makes a dozen of them, and the
# constructor of a frozen dataclass takes three times as long.


@dataclass(slots=True, unsafe_hash=True)
class DialRequest:
    """Open a connection; `random` is what the answer is recognised by.

    `client`, beyond Konnectivity, is who asked for it, as our agent tells our server; others skip the field.
    """

    protocol: str = ""
    address: str = ""
    random: int = 0
    client: str = ""


@dataclass(slots=True, unsafe_hash=True)
class DialResponse:
    """The result of a dial: an error, or the id that the connection has from here on."""

    error: str = ""
    connect_id: int = 0
    random: int = 0


@dataclass(slots=True, unsafe_hash=True)
class CloseRequest:
    connect_id: int = 0


@dataclass(slots=True, unsafe_hash=True)
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


@dataclass(frozen=True, slots=True)
class ServersRequest:
    """How many servers are there, and which of your workers?"""


@dataclass(frozen=True, slots=True)
class ServersResponse:
    """What a server announces: how many servers there are in all, its own name, its workers, and who of them runs."""

    server: str = ""
    count: int = 0
    workers: int = 0
    present: tuple[str, ...] = ()  # server ids, as they stand in the metadata of Connect


Packet = (
    DialRequest
    | DialResponse
    | CloseRequest
    | CloseResponse
    | Data
    | CloseDial
    | Drain
    | Credit
    | ServersRequest
    | ServersResponse
)


class _Kind(NamedTuple):
    type: PacketType
    number: int  # of the payload's field in Packet
    schema: Message[Any]


_KINDS: Final = (
    _Kind(
        PacketType.DIAL_REQ,
        2,
        message(DialRequest, protocol=string(1), address=string(2), random=signed(3), client=string(1001)),
    ),
    _Kind(PacketType.DIAL_RSP, 3, message(DialResponse, error=string(1), connect_id=signed(2), random=signed(3))),
    _Kind(PacketType.DATA, 4, message(Data, connect_id=signed(1), error=string(2), data=raw(3))),
    _Kind(PacketType.CLOSE_REQ, 5, message(CloseRequest, connect_id=signed(1))),
    _Kind(PacketType.CLOSE_RSP, 6, message(CloseResponse, error=string(1), connect_id=signed(2))),
    _Kind(PacketType.DIAL_CLS, 7, message(CloseDial, random=signed(1))),
    _Kind(PacketType.DRAIN, 8, message(Drain)),
    _Kind(PacketType.CREDIT, 1001, message(Credit, connect_id=signed(1), size=signed(2))),
    _Kind(PacketType.SERVERS_REQ, 1002, message(ServersRequest)),
    _Kind(
        PacketType.SERVERS_RSP,
        1003,
        message(ServersResponse, server=string(1), count=signed(2), workers=signed(3), present=repeated(string(4))),
    ),
)
_BY_CLASS: Final = {kind.schema.cls: kind for kind in _KINDS}
_BY_NUMBER: Final = {kind.number: kind for kind in _KINDS}

_TYPE: Final = wire.encode_tag(1, wire.VARINT)
_DATA_START: Final = b"\x08\x04\x22"  # the type DATA, and the tag of its payload
_CREDIT_START: Final = b"\x08\xe9\x07\xca\x3e"  # the same of CREDIT, whose numbers take two bytes each
# A DIAL_REQ begins with its payload, of a length that differs: one for every connection, and none of them long.
_STARTS: Final = {bytes((0x12, size)): PacketType.DIAL_REQ.name for size in range(128)} | {
    (_TYPE + wire.encode_varint(kind.type))[:2]: kind.type.name for kind in _KINDS
}


def type_of(packet: Packet) -> PacketType:
    return _BY_CLASS[type(packet)].type


def counted_type_of(data: bytes) -> str:
    """The name of the type as it stands first in the bytes; for counting, where a guess at odd packets will do."""
    return _STARTS.get(data[:2]) or (PacketType.DIAL_REQ.name if data[:1] != _TYPE else "Unknown")


def is_usual_start(start: bytes) -> bool:
    """Whether these two bytes alone tell the type, as every program writes it."""
    return start in _STARTS


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


# The packets that every connection is opened and closed with, and the credit that comes back for every few payloads, by
# hand: as they are nearly always written.


def _encode_dial_request(packet: DialRequest) -> bytes | None:
    protocol, address = packet.protocol.encode(), packet.address.encode()
    size = len(protocol) + len(address)
    if packet.random <= 0 or packet.client or not protocol or not address or size > _MOST_QUICK - 15:
        return None
    number = wire.encode_varint(packet.random)
    head = b"\x12%c\x0a%c%b\x12%c%b\x18%b"
    return head % (size + 5 + len(number), len(protocol), protocol, len(address), address, number)


def _encode_close_request(packet: CloseRequest) -> bytes | None:
    if packet.connect_id <= 0:
        return None
    number = wire.encode_varint(packet.connect_id)
    return b"\x08\x02\x2a%c\x08%b" % (len(number) + 1, number)


def _encode_close_response(packet: CloseResponse) -> bytes | None:
    if packet.error or packet.connect_id <= 0:
        return None
    number = wire.encode_varint(packet.connect_id)
    return b"\x08\x03\x32%c\x10%b" % (len(number) + 1, number)


def _encode_dial_response(packet: DialResponse) -> bytes | None:
    if packet.error or packet.connect_id <= 0 or packet.random <= 0:
        return None
    number, random = wire.encode_varint(packet.connect_id), wire.encode_varint(packet.random)
    return b"\x08\x01\x1a%c\x10%b\x18%b" % (len(number) + len(random) + 2, number, random)


def _encode_credit(packet: Credit) -> bytes | None:
    if packet.connect_id <= 0 or packet.size <= 0:
        return None
    number, size = wire.encode_varint(packet.connect_id), wire.encode_varint(packet.size)
    return b"%b%c\x08%b\x10%b" % (_CREDIT_START, len(number) + len(size) + 2, number, size)


_QUICK_ENCODERS: Final[dict[type, Callable[[Any], bytes | None]]] = {
    DialRequest: _encode_dial_request,
    CloseRequest: _encode_close_request,
    CloseResponse: _encode_close_response,
    DialResponse: _encode_dial_response,
    Credit: _encode_credit,
}
_MOST_QUICK: Final = 120  # bytes; below this every length is one byte


def _decode_quickly(data: bytes) -> Packet | None:
    """The packet, if it is one of a few and written as everybody does; None is for the careful reader."""
    if not 6 <= len(data) <= _MOST_QUICK:
        return None
    try:
        if data[0] == 0x12:
            return _read_dial_request(data)
        read = _QUICK_READERS.get(data[:3])
        if read is None:
            return _read_credit(data) if data.startswith(_CREDIT_START) else None
        return read(data) if data[3] == len(data) - 4 else None
    except IndexError:
        return None


def _read_dial_request(data: bytes) -> DialRequest | None:
    end = len(data)
    if data[1] != end - 2 or data[2] != 0x0A:
        return None
    second = 4 + data[3]
    third = second + 2 + data[second + 1]
    protocol, address = data[4:second], data[second + 2 : third]
    if data[second] != 0x12 or data[third] != 0x18 or not protocol.isascii() or not address.isascii():
        return None
    random, at = _short_varint(data, third + 1)
    return DialRequest(protocol.decode(), address.decode(), random) if at == end else None


def _read_dial_response(data: bytes) -> DialResponse | None:
    if data[4] != 0x10:
        return None
    connect_id, at = _short_varint(data, 5)
    if data[at] != 0x18:
        return None
    random, at = _short_varint(data, at + 1)
    return DialResponse("", connect_id, random) if at == len(data) else None


def _read_close_request(data: bytes) -> CloseRequest | None:
    connect_id, at = _short_varint(data, 5)
    return CloseRequest(connect_id) if data[4] == 0x08 and at == len(data) else None


def _read_close_response(data: bytes) -> CloseResponse | None:
    connect_id, at = _short_varint(data, 5)
    return CloseResponse("", connect_id) if data[4] == 0x10 and at == len(data) else None


def _read_credit(data: bytes) -> Credit | None:
    if data[5] != len(data) - 6 or data[6] != 0x08:
        return None
    connect_id, at = _short_varint(data, 7)
    if data[at] != 0x10:
        return None
    size, at = _short_varint(data, at + 1)
    return Credit(connect_id, size) if at == len(data) else None


_QUICK_READERS: Final[dict[bytes, Callable[[bytes], Packet | None]]] = {
    b"\x08\x01\x1a": _read_dial_response,
    b"\x08\x02\x2a": _read_close_request,
    b"\x08\x03\x32": _read_close_response,
}


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
    number, length = wire.encode_varint(connect_id), wire.encode_varint(size)
    whole = wire.encode_varint(len(number) + len(length) + 2 + size)
    return b"\x08\x04\x22%b\x08%b\x1a%b" % (whole, number, length)
