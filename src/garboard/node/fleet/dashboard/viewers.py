"""Who may see a dashboard: everybody who may list what it shows, in all namespaces, as the API server decides it."""

import asyncio
import hashlib
import re
from http import HTTPStatus
from typing import Final

from garboard.errors import GarboardError
from garboard.fleet.controllers.marks import GROUP
from garboard.fleet.dashboard import SHOWN_KINDS
from garboard.kube import ReviewedUser, access_review, read_access_review, read_token_review, token_review
from garboard.kube.aio import LOOP_CLOCK, AioClock, KubeApi
from garboard.kube.reviews import ACCESS_REVIEW, TOKEN_REVIEW
from garboard.values import dataclass

# So long a right that was taken away still counts, and a token that was refused is not asked about again.
ALLOWED_S: Final = 30.0
REFUSED_S: Final = 10.0
_REVIEW_S: Final = 15.0
_AT_ONCE, _MOST_WAITING, _MOST_KEPT = 4, 100, 1000
_LONGEST_TOKEN: Final = 16 * 1024
_TOKEN: Final = re.compile(r"Bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether somebody is let in, as the status of the answer, and why not."""

    status: HTTPStatus
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.status is HTTPStatus.OK


_ALLOWED: Final = Verdict(HTTPStatus.OK)


class Viewers:
    """Has the API server review tokens, and what their users may; its verdicts are kept for some seconds."""

    def __init__(self, api: KubeApi, clock: AioClock = LOOP_CLOCK) -> None:
        self._api, self._clock = api, clock
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0
        self._kept: dict[bytes, tuple[Verdict, float]] = {}  # by the digest of the token, with its end

    async def check(self, authorization: str) -> Verdict:
        """Return the verdict about the value of an `Authorization` field, empty where there is none."""
        if not authorization:
            return Verdict(HTTPStatus.UNAUTHORIZED, "a token is needed")
        found = _TOKEN.fullmatch(authorization)
        if found is None or len(found[1]) > _LONGEST_TOKEN:
            return Verdict(HTTPStatus.UNAUTHORIZED, "the authorization is not `Bearer` and a token")
        key = hashlib.sha256(found[1].encode()).digest()
        verdict, until_s = self._kept.get(key, (_ALLOWED, 0.0))
        if self._clock.now_s() < until_s:
            return verdict
        return await self._reviewed(found[1], key)

    async def _reviewed(self, token: str, key: bytes) -> Verdict:
        if self._waiting >= _MOST_WAITING:
            return Verdict(HTTPStatus.SERVICE_UNAVAILABLE, "too many tokens wait to be reviewed; try again")
        self._waiting += 1
        try:
            async with asyncio.timeout(_REVIEW_S), self._slots:
                verdict = await self._ask(token)
        except TimeoutError:
            return Verdict(HTTPStatus.SERVICE_UNAVAILABLE, "the API server did not review the token in time")
        except GarboardError as error:
            return Verdict(HTTPStatus.SERVICE_UNAVAILABLE, f"the token could not be reviewed: {error.message}")
        finally:
            self._waiting -= 1
        self._kept.pop(key, None)
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = verdict, self._clock.now_s() + (ALLOWED_S if verdict.is_allowed else REFUSED_S)
        return verdict

    async def _ask(self, token: str) -> Verdict:
        user = read_token_review(await self._api.create(TOKEN_REVIEW, token_review(token)))
        if not user.is_authenticated or not user.name:
            return Verdict(HTTPStatus.UNAUTHORIZED, "the API server does not accept the token")
        for resource in SHOWN_KINDS.values():
            if not await self._may_list(user, resource):
                reason = f"{user.name} may not list {resource}.{GROUP} in all namespaces"
                return Verdict(HTTPStatus.FORBIDDEN, reason)
        return _ALLOWED

    async def _may_list(self, user: ReviewedUser, resource: str) -> bool:
        asked = access_review(user, "list", resource, GROUP)
        return read_access_review(await self._api.create(ACCESS_REVIEW, asked))
