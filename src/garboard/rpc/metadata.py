"""Texts in gRPC headers: metadata with its `-bin` form, timeouts, percent-encoded messages."""

import base64
import binascii
import re
from typing import Final

from garboard.rpc.headers import Headers

# Keys that end in `-bin` carry bytes, all others printable ASCII.
Metadata = tuple[tuple[str, str | bytes], ...]

# Of one request; a value that carries bytes may stand for thousands of empty ones.
MAX_VALUES: Final = 256

_KEY = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
# In rising order, so that the first unit that fits in eight digits is the most exact one.
_UNITS: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "S": 1.0, "M": 60.0, "H": 3600.0}
_NOT_METADATA: Final = frozenset({"content-type", "te"})


class BadText(ValueError):
    """A header that cannot be read, or metadata that cannot be sent."""


def encode_metadata(metadata: Metadata) -> Headers:
    return tuple((key, _encode_value(key, value)) for key, value in metadata)


def _encode_value(key: str, value: str | bytes) -> str:
    if not _KEY.fullmatch(key) or key.startswith("grpc-") or key in _NOT_METADATA:
        raise BadText(f"{key!r} is not a metadata key")
    if key.endswith("-bin"):
        if not isinstance(value, bytes):
            raise BadText(f"the metadata {key!r} takes bytes")
        return base64.b64encode(value).rstrip(b"=").decode("ascii")
    # The value stays out of the message: it may be a token.
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise BadText(f"the metadata {key!r} takes printable ASCII")
    return value


def decode_metadata(headers: Headers) -> Metadata:
    """The headers that belong to the application, in order."""
    found: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        if name.startswith((":", "grpc-")) or name in _NOT_METADATA:
            continue
        if name.endswith("-bin"):
            if len(found) + value.count(",") >= MAX_VALUES:
                raise BadText(f"the header {name!r} has more values than a call may have")
            found += [(name, _decode_bytes(name, part)) for part in value.split(",")]
        else:
            found.append((name, value))
    return tuple(found)


def _decode_bytes(name: str, text: str) -> bytes:
    stripped = text.strip().rstrip("=")
    try:
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadText(f"the header {name!r} is not base64") from error


def header(headers: Headers, name: str) -> str | None:
    """The first value under this name."""
    return next((value for key, value in headers if key == name), None)


def is_grpc_content_type(value: str | None) -> bool:
    """`application/grpc`, with an optional `+codec` or `;parameters` behind it."""
    prefix = "application/grpc"
    return value is not None and value.lower().startswith(prefix) and value[len(prefix) :][:1] in ("", "+", ";")


def encode_timeout(seconds: float) -> str:
    """The most exact `grpc-timeout` that fits; never shorter than one unit."""
    for unit, size in _UNITS.items():
        count = int(seconds / size + 0.5)
        if count <= 99_999_999:
            return f"{max(count, 1)}{unit}"
    return "99999999H"


def decode_timeout(text: str) -> float:
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise BadText("the header 'grpc-timeout' is not a timeout")
    return int(match[1]) * _UNITS[match[2]]


def encode_message(text: str) -> str:
    """A status message as `grpc-message` wants it: UTF-8, percent-encoded outside printable ASCII."""
    return "".join(
        chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}" for byte in text.encode("utf-8")
    )


def decode_message(text: str) -> str:
    """The message of a peer; what is broken in it is kept as it came."""
    raw = re.sub(rb"%([0-9a-fA-F]{2})", lambda match: bytes([int(match[1], 16)]), text.encode("latin-1"))
    return raw.decode("utf-8", "replace")
