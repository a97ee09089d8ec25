"""The protobuf wire format: numbers and fields as bytes, checked as strictly as the protobuf runtime does.

`garboard.rpc.message` describes whole messages on top of it; hot paths may use these directly.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from garboard.errors import BadDocument

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
START_GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

MAX_FIELD_NUMBER: Final = 2**29 - 1
MAX_GROUP_DEPTH: Final = 100
_FIXED_BYTES: Final = {FIXED64: 8, FIXED32: 4}
_ONE_BYTE: Final = {value: bytes((value,)) for value in range(0x80)}
_TWO_BYTES: Final = struct.Struct("<H")

Buffer = bytes | memoryview


class BadWire(BadDocument):
    """Bytes that are not a protobuf message."""

    default_class = "bad-protobuf"


class WireField(NamedTuple):
    """One field as it came: `value` is a number for VARINT and the raw bytes for every other type."""

    number: int
    wire_type: int
    value: int | memoryview


def encode_varint(value: int) -> bytes:
    """A number from 0 to 2^64 - 1."""
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return _TWO_BYTES.pack(value & 0x7F | 0x80 | value >> 7 << 8)
    if value < 0x20_0000:
        return _TWO_BYTES.pack(value & 0x7F | 0x80 | (value >> 7 & 0x7F | 0x80) << 8) + _ONE_BYTE[value >> 14]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: Buffer, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends; bits beyond 64 are cut off, an eleventh byte is refused."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise BadWire("a protobuf number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise BadWire("a protobuf number is longer than ten bytes")


def from_signed(value: int) -> int:
    return value & 0xFFFF_FFFF_FFFF_FFFF


def encode_tag(number: int, wire_type: int) -> bytes:
    return encode_varint(number << 3 | wire_type)


def encode_bytes(number: int, value: Buffer) -> bytes:
    """A length-delimited field."""
    return encode_tag(number, LENGTH) + encode_varint(len(value)) + value


def read_fields(data: Buffer) -> Iterator[WireField]:
    """Every field in order; groups, which nothing here uses, are skipped with all they hold."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        number, wire_type, at = _read_tag(view, at)
        if wire_type == START_GROUP:
            at = _skip_group(view, at, number)
        elif wire_type == END_GROUP:
            raise BadWire("a protobuf group ends that never began")
        elif wire_type == VARINT:
            value, at = decode_varint(view, at)
            yield WireField(number, VARINT, value)
        else:
            start, at = _span(view, at, wire_type)
            yield WireField(number, wire_type, view[start:at])


def _read_tag(view: memoryview, at: int) -> tuple[int, int, int]:
    start = at
    tag, at = decode_varint(view, at)
    if not 1 <= tag >> 3 <= MAX_FIELD_NUMBER or at - start > 5:
        raise BadWire(f"protobuf has no field {tag >> 3}")
    return tag >> 3, tag & 7, at


def _span(view: memoryview, at: int, wire_type: int) -> tuple[int, int]:
    """Where the value of a field that is not a number begins and ends."""
    if wire_type == LENGTH:
        size, at = decode_varint(view, at)
    elif wire_type in _FIXED_BYTES:
        size = _FIXED_BYTES[wire_type]
    else:
        raise BadWire(f"protobuf has no wire type {wire_type}")
    if at + size > len(view):
        raise BadWire("a protobuf field is cut off")
    return at, at + size


def _skip_group(view: memoryview, at: int, number: int) -> int:
    """The end of the group; a loop and not a recursion, and bounded, since a peer chooses the depth."""
    open_groups = [number]
    while open_groups:
        inner, wire_type, at = _read_tag(view, at)
        if wire_type == START_GROUP:
            open_groups.append(inner)
            if len(open_groups) > MAX_GROUP_DEPTH:
                raise BadWire("protobuf groups are nested too deeply")
        elif wire_type == END_GROUP:
            if open_groups.pop() != inner:
                raise BadWire("a protobuf group ends that never began")
        elif wire_type == VARINT:
            _, at = decode_varint(view, at)
        else:
            _, at = _span(view, at, wire_type)
    return at
