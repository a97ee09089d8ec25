"""Message framing of gRPC: a flag, a length, the message; cut out of DATA at any split."""

import struct
from typing import Final

from garboard.rpc.status import StatusCode

PREFIX_BYTES: Final = 5
DEFAULT_MAX_MESSAGE: Final = 4 * 1024 * 1024  # as grpc-go and gRPC core

_SMALL_BYTES: Final = 1024
_JOINED_BYTES: Final = 64 * 1024

_PREFIX = struct.Struct(">BI")
pack_prefix = _PREFIX.pack  # 0, as nothing is compressed, and the size


class BadMessage(Exception):
    """A message that ends its call, with this status."""

    def __init__(self, code: StatusCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Deframer:
    """Collects the messages of one stream.

    `held_bytes` is what it keeps of a message that is not complete. Such bytes cannot be consumed by anyone yet, so
    they must not hold back the window either: a message larger than the window would never end.
    """

    __slots__ = ("_max_message", "_missing_bytes", "_parts", "_start", "held_bytes")

    def __init__(self, max_message: int = DEFAULT_MAX_MESSAGE) -> None:
        self._max_message = max_message
        self._start = b""  # of a prefix
        self._parts: list[bytes | bytearray] = []  # of a message whose prefix is known
        self._missing_bytes = 0
        self.held_bytes = 0

    def feed(self, data: memoryview) -> list[bytes]:
        """The messages that are complete now."""
        messages: list[bytes] = []
        at = 0
        if not self.held_bytes and len(data) > PREFIX_BYTES:
            flag, size = _PREFIX.unpack_from(data)
            if size + PREFIX_BYTES == len(data) and not flag and size <= self._max_message:
                return [bytes(data[PREFIX_BYTES:])]  # one message and nothing else, as nearly always when it is quiet
        elif self.held_bytes:
            if self._start:
                data = memoryview(self._start + data)
                self._start = b""
            else:
                at = self._complete(data, messages)
        self._cut(data, at, messages)
        return messages

    def _complete(self, data: memoryview, messages: list[bytes]) -> int:
        part = bytes(data[: self._missing_bytes])
        self._keep(part)
        self._missing_bytes -= len(part)
        self.held_bytes += len(part)
        if not self._missing_bytes:
            messages.append(b"".join(self._parts))
            self._parts.clear()
        return len(part)

    def _keep(self, part: bytes) -> None:
        """Small parts are joined as they come: one by one, each would cost many times what it holds."""
        if len(part) >= _SMALL_BYTES:
            self._parts.append(part)
            return
        last = self._parts[-1]
        if isinstance(last, bytearray) and len(last) < _JOINED_BYTES:
            last += part
        else:
            self._parts.append(bytearray(part))

    def _cut(self, data: memoryview, at: int, messages: list[bytes]) -> None:
        end = len(data)
        if self._missing_bytes:
            return
        self.held_bytes = 0
        while end - at >= PREFIX_BYTES:
            flag, size = _PREFIX.unpack_from(data, at)
            if flag or size > self._max_message:
                raise self._refusal(flag, size)
            at += PREFIX_BYTES
            if at + size > end:
                self._parts.append(bytes(data[at:]))
                self._missing_bytes = size - (end - at)
                self.held_bytes = PREFIX_BYTES + end - at
                return
            messages.append(bytes(data[at : at + size]))
            at += size
        self._start = bytes(data[at:])
        self.held_bytes = end - at

    def _refusal(self, flag: int, size: int) -> BadMessage:
        if flag:
            return BadMessage(StatusCode.INTERNAL, "a compressed message, although no compression was agreed")
        reason = f"received a message of {size} bytes, more than the {self._max_message} allowed"
        return BadMessage(StatusCode.RESOURCE_EXHAUSTED, reason)
