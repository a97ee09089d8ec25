"""The gate where agents show their tokens: reviews in threads, a bounded number at a time, no faster than allowed."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from garboard.errors import GarboardError
from garboard.rpc.metadata import Metadata
from garboard.tunnel.server.tokens import AgentRefused, TokenReviewer, TokenRules, bearer_token, check_review

AT_ONCE: Final = 8
MAX_WAITING: Final = 1000
REVIEW_TIMEOUT_S: Final = 15.0


class Pace:
    """How soon the next request may go: `qps` a second in the long run, `burst` of them at once."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1 / qps if qps > 0 else 0.0
        self._allowance_s = self._gap_s * max(burst - 1, 0)
        self._clock = clock
        self._due_at = 0.0

    def take_turn(self) -> float:
        """Book a turn and return how long it is until then."""
        now = self._clock()
        self._due_at = max(self._due_at, now - self._allowance_s) + self._gap_s
        return max(self._due_at - self._gap_s - now, 0.0)


class TokenGate:
    """Lets agents pass whose token the API server vouches for."""

    def __init__(self, rules: TokenRules, reviewer: TokenReviewer, pace: Pace) -> None:
        self._rules = rules
        self._reviewer = reviewer
        self._pace = pace
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def check(self, metadata: Metadata) -> None:
        """Raise `AgentRefused` unless the agent may pass."""
        token = bearer_token(metadata)
        if self._waiting >= MAX_WAITING:
            raise AgentRefused("too many agents wait for their tokens to be reviewed")
        self._waiting += 1
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S), self._slots:
                await asyncio.sleep(self._pace.take_turn())
                review = await asyncio.to_thread(self._reviewer.review, token, self._rules.audience)
        except TimeoutError:
            raise AgentRefused("the API server did not review the token in time") from None
        except GarboardError as error:
            raise AgentRefused(f"the token could not be reviewed: {error.message}") from error
        finally:
            self._waiting -= 1
        check_review(review, self._rules)
