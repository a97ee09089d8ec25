"""An API server in memory that knows users by their tokens, and what they may list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from garboard.fleet.dashboard import SHOWN_KINDS
from garboard.kube import ObjectRef
from tests.support.kube.fake_cluster import FakeCluster

ALICE, BOB = "alice-token", "bob-token"
EVERYTHING_SHOWN = tuple(SHOWN_KINDS.values())


@dataclass
class ReviewingCluster(FakeCluster):
    """Answers TokenReviews and SubjectAccessReviews; `rights` are what each user may list, by the token."""

    rights: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {ALICE: EVERYTHING_SHOWN, BOB: ()})
    reviews: list[Any] = field(default_factory=list)

    async def create(self, ref: ObjectRef, content: Any, *, subresource: str = "") -> Any:
        if ref.kind not in ("TokenReview", "SubjectAccessReview"):
            return await super().create(ref, content, subresource=subresource)
        async with self._request("create", ref):
            self.reviews.append(content)
            spec = content["spec"]
            if ref.kind == "TokenReview":
                return {**content, "status": self._user(spec["token"])}
            attributes = spec["resourceAttributes"]
            assert attributes["verb"] == "list"
            assert attributes["namespace"] == ""
            may = self.rights[f"{spec['user']}-token"]
            return {**content, "status": {"allowed": attributes["resource"] in may}}

    def _user(self, token: str) -> dict[str, Any]:
        if token not in self.rights:
            return {"error": "invalid bearer token"}
        user = {"username": token.removesuffix("-token"), "groups": ["system:authenticated"], "uid": "1"}
        return {"authenticated": True, "user": {**user, "extra": {"scopes": ["a"]}}}
