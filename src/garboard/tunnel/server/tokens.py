"""Agents known by the tokens of their service account: what is asked of the API server, and what its answer means."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from garboard.errors import GarboardError

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


def bearer_token(metadata: Iterable[tuple[str, str | bytes]]) -> str:
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
