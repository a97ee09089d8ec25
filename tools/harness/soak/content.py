"""What the clients and endpoints of a soak say to each other: a header, then bytes that both can compute."""

import random
import struct
from enum import IntEnum
from typing import Final, NamedTuple

_BLOCK_BYTES: Final = 1 << 20
# Twice, so that a piece may begin anywhere in the first half.
_BLOCK: Final = random.Random(16).randbytes(_BLOCK_BYTES) * 2
_HEADER: Final = struct.Struct(">BIQ")
HEADER_BYTES: Final = _HEADER.size
WHOLE: Final = b"k"  # an endpoint's verdict on an upload
WRONG: Final = b"x"


class Kind(IntEnum):
    """What a connection is for."""

    ECHO = 0  # whatever is sent comes back
    DOWNLOAD = 1  # the endpoint sends so many bytes and closes
    UPLOAD = 2  # the client sends so many bytes, and the endpoint tells whether they were right


class Header(NamedTuple):
    """The first bytes of a client: where in the block its content begins, and how much of it there is."""

    kind: Kind
    offset: int
    size: int

    def encode(self) -> bytes:
        return _HEADER.pack(*self)

    @classmethod
    def decode(cls, data: bytes) -> "Header":
        kind, offset, size = _HEADER.unpack(data)
        return cls(Kind(kind), offset, size)


def piece(offset: int, at: int, size: int) -> bytes:
    """So many bytes of a content from `at` on; of one that begins elsewhere they are others."""
    start = (offset + at) % _BLOCK_BYTES
    whole, rest = divmod(size, _BLOCK_BYTES)
    return _BLOCK[start : start + _BLOCK_BYTES] * whole + _BLOCK[start : start + rest]


def address_of(agent: int) -> str:
    """The address of loopback that belongs to an agent, and to no other: who carries a connection is thus known."""
    return f"127.1.{agent // 250}.{agent % 250 + 1}"
