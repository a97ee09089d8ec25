"""Header blocks: assembled from HEADERS and CONTINUATION, (de)compressed by `hpack`, checked against RFC 9113 §8."""

import re
from collections.abc import Iterable

import hpack

from garboard.rpc.limits import Limits
from garboard.rpc.violations import ConnectionViolation, ErrorCode

Headers = tuple[tuple[str, str], ...]

REQUEST_PSEUDO = frozenset({":method", ":scheme", ":path", ":authority"})
REQUIRED_PSEUDO = frozenset({":method", ":scheme", ":path"})
RESPONSE_PSEUDO = frozenset({":status"})
CONNECTION_SPECIFIC = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})
# Compressed, these would let an attacker who can add headers guess them byte by byte (RFC 7541 §7.1).
SECRET_NAMES = frozenset({"authorization", "proxy-authorization", "cookie"})

_NAME = re.compile(r":?[!#$%&'*+\-.^_`|~0-9a-z]+")
_FORBIDDEN_IN_VALUE = re.compile(r"[\x00\r\n]")


class HeaderDecoder:
    """Turns the fragments of header blocks into headers, within limits.

    Every block must pass through here, also one of a refused or reset stream: the compression state is shared.
    """

    def __init__(self, limits: Limits) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=limits.header_list_bytes)
        self._limits = limits
        self._fragments: list[bytes] = []
        self._size = 0
        self.stream_id = 0
        self.flags = 0

    @property
    def is_open(self) -> bool:
        """Whether a block has begun and not ended: only CONTINUATION may come then."""
        return bool(self._fragments)

    def begin(self, stream_id: int, flags: int, fragment: memoryview) -> None:
        self.stream_id, self.flags = stream_id, flags
        self._fragments = []
        self._size = 0
        self.add(fragment)

    def add(self, fragment: memoryview) -> None:
        self._fragments.append(bytes(fragment))
        self._size += len(fragment)
        if self._size > self._limits.header_list_bytes or len(self._fragments) > self._limits.continuation_frames + 1:
            raise ConnectionViolation(ErrorCode.ENHANCE_YOUR_CALM, "a header block that does not end")

    def finish(self) -> Headers:
        block = b"".join(self._fragments)
        self._fragments = []
        try:
            decoded = list(self._decoder.decode(block, raw=True))
        except hpack.OversizedHeaderListError as error:
            raise ConnectionViolation(ErrorCode.ENHANCE_YOUR_CALM, "headers larger than allowed") from error
        except hpack.HPACKError as error:
            raise ConnectionViolation(ErrorCode.COMPRESSION_ERROR, "headers that do not decompress") from error
        if len(decoded) > self._limits.header_fields:
            raise ConnectionViolation(ErrorCode.ENHANCE_YOUR_CALM, "more header fields than allowed")
        return tuple((bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in decoded)


class HeaderEncoder:
    """Compresses headers in the order in which the frames are sent."""

    def __init__(self) -> None:
        self._encoder = hpack.Encoder()

    def set_table_size(self, size: int) -> None:
        # A peer may offer gigabytes; the default table is as much as we care to keep for it.
        self._encoder.header_table_size = min(size, 4096)

    def encode(self, headers: Iterable[tuple[str, str]]) -> bytes:
        fields = [
            (hpack.NeverIndexedHeaderTuple if name in SECRET_NAMES else hpack.HeaderTuple)(
                name.encode("latin-1"), value.encode("latin-1")
            )
            for name, value in headers
        ]
        return self._encoder.encode(fields)


def flaw_of_request(headers: Headers) -> str | None:
    """What makes these headers malformed as a request, or None."""
    seen, flaw = _check_fields(headers, REQUEST_PSEUDO)
    if flaw is None and not seen >= REQUIRED_PSEUDO:
        flaw = "a request without " + ", ".join(sorted(REQUIRED_PSEUDO - seen))
    return flaw


def flaw_of_response(headers: Headers) -> str | None:
    seen, flaw = _check_fields(headers, RESPONSE_PSEUDO)
    if flaw is None and ":status" not in seen:
        flaw = "a response without :status"
    return flaw


def flaw_of_trailers(headers: Headers) -> str | None:
    return _check_fields(headers, frozenset())[1]


def _check_fields(headers: Headers, pseudo: frozenset[str]) -> tuple[set[str], str | None]:
    seen: set[str] = set()
    past_pseudo = False
    for name, value in headers:
        if name.startswith(":"):
            if name not in pseudo or name in seen or past_pseudo:
                return seen, f"{name!r} where it may not be"
            seen.add(name)
        else:
            past_pseudo = True
        if name in CONNECTION_SPECIFIC or (name == "te" and value != "trailers"):
            return seen, f"the connection-specific header {name!r}"
        if not _NAME.fullmatch(name) or _FORBIDDEN_IN_VALUE.search(value):
            return seen, "a header with forbidden characters"
    return seen, None
