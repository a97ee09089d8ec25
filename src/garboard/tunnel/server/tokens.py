"""Agents known by the tokens of their service account, which the API server reviews.

Reviews run in threads, a bounded number at a time, and no faster than allowed. A token that was refused is not reviewed
again soon, and an address has a bounded share of the reviews.
"""

import asyncio
import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from garboard.errors import GarboardError
from garboard.rpc.metadata import Metadata
from garboard.tunnel.server.shares import share_of

AT_ONCE: Final = 8
MAX_WAITING: Final = 1000
MAX_WAITING_PER_ADDRESS: Final = 50
# Refused tokens of one address: so many at once, and one more for every second.
REFUSALS_PER_ADDRESS: Final = 20
REFUSED_S: Final = 10.0
MAX_REMEMBERED: Final = 10_000
REVIEW_TIMEOUT_S: Final = 15.0
MAX_TOKEN: Final = 16 * 1024
_TOKEN: Final = re.compile(r"Bearer ([A-Za-z0-9._~+/=-]+)")


class AgentRefused(GarboardError):
    """Why an agent is not let in; never says anything of its token."""

    default_class = "agent-refused"


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Whose tokens are taken, and for whom they must have been made."""

    namespace: str
    service_account: str
    audience: str

    @property
    def username(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReview:
    """What the API server says of a token."""

    is_authenticated: bool = False
    username: str = ""
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReviewer(Protocol):
    """The API server; blocks, and raises a `GarboardError` when there is no answer."""

    def review(self, token: str, audience: str) -> TokenReview: ...


def bearer_token(metadata: Metadata) -> str:
    """The one token of a call. Raises `AgentRefused`."""
    values = [value for name, value in metadata if name == "authorization"]
    if len(values) != 1:
        raise AgentRefused(f"one authorization is needed, not {len(values)}")
    found = _TOKEN.fullmatch(values[0]) if isinstance(values[0], str) else None
    if found is None or len(found[1]) > MAX_TOKEN:
        raise AgentRefused("the authorization is not `Bearer` and a token")
    return found[1]


def check_review(review: TokenReview, rules: TokenRules) -> None:
    """Raise `AgentRefused` unless the token is good, of the right account and made for us."""
    if review.error:
        raise AgentRefused(f"the token was not accepted: {review.error}")
    if not review.is_authenticated:
        raise AgentRefused("the token is not valid")
    if review.username != rules.username:
        raise AgentRefused(f"the token is of {review.username}, not of {rules.username}")
    # An API server that knows nothing of audiences names none: the token may have been made for anybody.
    if rules.audience not in review.audiences:
        raise AgentRefused(f"the token was not made for {rules.audience}")


class RateLimit:
    """How soon the next request may go: `qps` a second in the long run, `burst` of them at once."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1 / qps if qps > 0 else 0.0
        self._allowance_s = self._gap_s * max(burst - 1, 0)
        self._clock = clock
        self._due_at = 0.0

    def reserve(self) -> float:
        """Reserve the next slot; how many seconds it is until then is returned."""
        now = self._clock()
        self._due_at = max(self._due_at, now - self._allowance_s) + self._gap_s
        return max(self._due_at - self._gap_s - now, 0.0)


class Refusals:
    """What was refused lately: tokens, and how often at each address. The clock comes in."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most_per_address: int = REFUSALS_PER_ADDRESS
    ) -> None:
        self._clock = clock
        self._most_per_address = most_per_address
        self._tokens: dict[bytes, tuple[str, float]] = {}  # by digest: why, and until when it is remembered
        self._spent: dict[str, float] = {}  # by address: until when its refusals have all been paid for

    def check(self, token: str, address: str) -> None:
        """Raise `AgentRefused` for what need not be reviewed."""
        now = self._clock()
        reason, until = self._tokens.get(_digest(token), ("", 0.0))
        if now < until:
            raise AgentRefused(reason)
        if self._spent.get(address, 0.0) - now >= self._most_per_address:
            raise AgentRefused("too many tokens of its address were refused")

    def remember(self, token: str, address: str, reason: str) -> None:
        now = self._clock()
        if len(self._tokens) >= MAX_REMEMBERED:
            del self._tokens[next(iter(self._tokens))]  # the oldest
        if len(self._spent) >= MAX_REMEMBERED:
            del self._spent[next(iter(self._spent))]
        self._tokens[_digest(token)] = reason, now + REFUSED_S
        self._spent[address] = max(self._spent.pop(address, 0.0), now) + 1.0


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class TokenAuthenticator:
    """Lets in the agents whose token the API server confirms."""

    def __init__(
        self,
        rules: TokenRules,
        reviewer: TokenReviewer,
        rate_limit: RateLimit,
        clock: Callable[[], float] = time.monotonic,
        *,
        workers: int = 1,
    ) -> None:
        self._rules = rules
        self._reviewer = reviewer
        self._rate_limit = rate_limit
        self._refusals = Refusals(clock, share_of(REFUSALS_PER_ADDRESS, workers))
        self._slots = asyncio.Semaphore(share_of(AT_ONCE, workers))
        self._most_waiting = share_of(MAX_WAITING, workers)
        self._most_per_address = share_of(MAX_WAITING_PER_ADDRESS, workers)
        self._waiting: Counter[str] = Counter()

    async def check(self, metadata: Metadata, address: str) -> str:
        """The service account of an agent that is let in, and connects from this address. Raises `AgentRefused`."""
        token = bearer_token(metadata)
        self._refusals.check(token, address)
        if self._waiting.total() >= self._most_waiting or self._waiting[address] >= self._most_per_address:
            raise AgentRefused("too many agents wait for their tokens to be reviewed")
        self._waiting[address] += 1
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S), self._slots:
                await asyncio.sleep(self._rate_limit.reserve())
                review = await asyncio.to_thread(self._reviewer.review, token, self._rules.audience)
        except TimeoutError:
            raise AgentRefused("the API server did not review the token in time") from None
        except GarboardError as error:
            raise AgentRefused(f"the token could not be reviewed: {error.message}") from error
        finally:
            self._leave(address)
        try:
            check_review(review, self._rules)
        except AgentRefused as refused:
            self._refusals.remember(token, address, refused.message)
            raise
        return review.username

    def _leave(self, address: str) -> None:
        self._waiting[address] -= 1
        if not self._waiting[address]:
            del self._waiting[address]
