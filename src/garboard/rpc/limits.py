"""What a connection allows itself and its peer: windows, sizes, and budgets against hostile peers.

Time comes in through a clock, so every budget can be tested to the second.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from garboard.rpc.violations import ConnectionViolation, ErrorCode

Clock = Callable[[], float]

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many more per second after that."""

    burst: int
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a peer may cost us before the connection ends with ENHANCE_YOUR_CALM."""

    header_list_bytes: int = 64 * KIB
    header_fields: int = 256
    # Headers after decompression, as RFC 9113 §6.5.2 counts them: a byte of a request may stand for thousands.
    header_bytes: Rate = Rate(4 * MIB, 4 * MIB)
    continuation_frames: int = 16
    concurrent_streams: int = 1000
    # Acknowledgements and resets a peer can make us queue without reading them (CVE-2019-9512, -9514, -9515).
    queued_control_frames: int = 2000
    # Streams opened only to be reset, by the peer or by its mistakes (CVE-2023-44487, CVE-2025-8671).
    resets: Rate = Rate(1000, 33)
    settings: Rate = Rate(100, 5)
    # PINGs that come without our having sent anything; Go peers measure the round trip of our data with many more.
    pings: Rate = Rate(1000, 50)
    # Frames that carry nothing: empty DATA, PRIORITY, unknown types, headers for closed streams (CVE-2019-9518).
    idle_frames: Rate = Rate(2000, 200)
    # Frames for streams that are over, which a client may have sent before it knew; every stream adds a few.
    strays: Rate = Rate(2000, 100)
    # Window updates beyond one for every 512 bytes that we sent.
    window_updates: Rate = Rate(4000, 400)
    # A server's patience with keepalive pings: closer together than this (seconds), and the third is one too many.
    ping_interval_s: float = 0.0
    ping_strikes: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Http2Config:
    """How one end of a connection behaves; the defaults suit a few long streams on a fast network."""

    stream_window: int = 1 * MIB
    # Sixteen streams may stop reading before the others feel it.
    connection_window: int = 16 * MIB
    max_frame: int = 256 * KIB
    # What one stream may send before the next has its turn; a peer that takes only small frames shortens it.
    turn_bytes: int = 256 * KIB
    # A stream with this much waiting to be sent takes no more until half of it is gone.
    send_queue_bytes: int = 256 * KIB
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        # A peer may use what the RFC grants it before it has read our settings.
        if min(self.stream_window, self.connection_window) < 65_535 or self.max_frame < 16_384:
            raise ValueError("windows start at 65,535 bytes and frames at 16,384")


class Budget:
    """A token bucket that ends the connection when it is empty."""

    __slots__ = ("_clock", "_name", "_rate", "_tokens", "_updated_at")

    def __init__(self, name: str, rate: Rate, clock: Clock) -> None:
        self._name = name
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate.burst)
        self._updated_at = clock()

    def spend(self, amount: int = 1) -> None:
        if self._tokens < amount:
            self._refill()
        if self._tokens < amount:
            raise ConnectionViolation(ErrorCode.ENHANCE_YOUR_CALM, f"too many {self._name}")
        self._tokens -= amount

    def earn(self, amount: int) -> None:
        """The peer did what may be followed by so many more."""
        self._tokens = min(self._rate.burst, self._tokens + amount)

    def _refill(self) -> None:
        now = self._clock()
        earned = (now - self._updated_at) * self._rate.per_second
        self._tokens = min(self._rate.burst, self._tokens + earned)
        self._updated_at = now


class Budgets:
    """One budget for each kind of abuse."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.resets = Budget("stream resets", limits.resets, clock)
        self.settings = Budget("SETTINGS frames", limits.settings, clock)
        self.pings = Budget("PING frames", limits.pings, clock)
        self.idle_frames = Budget("frames without content", limits.idle_frames, clock)
        self.header_bytes = Budget("bytes of headers", limits.header_bytes, clock)
        self.strays = Budget("frames for streams that are over", limits.strays, clock)
        self.window_updates = Budget("window updates", limits.window_updates, clock)


class PingStrikes:
    """The server's side of keepalive: pings closer together than agreed earn a strike, unless we sent something."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._interval_s = limits.ping_interval_s
        self._allowed = limits.ping_strikes
        self._clock = clock
        self._last_at = float("-inf")
        self._strikes = 0

    def forgive(self) -> None:
        """Data went out since the last ping, which may be what the peer measures."""
        self._strikes = 0
        self._last_at = float("-inf")

    def ping(self) -> None:
        now = self._clock()
        self._strikes = self._strikes + 1 if now - self._last_at < self._interval_s else 0
        self._last_at = now
        if self._strikes > self._allowed:
            # The text is what gRPC clients look for before they slow down.
            raise ConnectionViolation(ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings")
