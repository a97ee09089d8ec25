"""Who may see a dashboard: as the API server decides it, soon after it decides otherwise."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import pytest

from garboard.fleet.dashboard import SHOWN_KINDS
from garboard.node.fleet.dashboard.viewers import ALLOWED_S, REFUSED_S, Viewers
from tests.support.fleet.reviewing_cluster import ALICE, BOB, EVERYTHING_SHOWN, ReviewingCluster
from tests.support.kube.fake_cluster import busy
from tests.support.kube.manual_clock import ManualClock


def judged(story: Callable[[ReviewingCluster, Viewers, ManualClock], Awaitable[None]]) -> None:
    async def told() -> None:
        cluster, clock = ReviewingCluster(), ManualClock()
        await story(cluster, Viewers(cluster, clock), clock)

    asyncio.run(told())


@pytest.mark.parametrize(
    ("authorization", "status", "said"),
    [
        pytest.param("", 401, "a token is needed", id="none"),
        pytest.param("Basic YWxpY2U6eA==", 401, "not `Bearer`", id="a password"),
        pytest.param("Bearer ", 401, "not `Bearer`", id="an empty token"),
        pytest.param(f"Bearer {ALICE},Bearer {ALICE}", 401, "not `Bearer`", id="two tokens"),
        pytest.param(f"Bearer {ALICE} {BOB}", 401, "not `Bearer`", id="a token and more"),
        pytest.param("Bearer " + "a" * 20_000, 401, "not `Bearer`", id="a token without end"),
        pytest.param("Bearer unknown", 401, "does not accept the token", id="a token of nobody"),
        pytest.param(f"Bearer {BOB}", 403, "bob may not list clusterpools.hive.openshift.io in all", id="no rights"),
        pytest.param(f"Bearer {ALICE}", 200, "", id="all rights"),
        pytest.param(f"bearer  {ALICE}", 200, "", id="another spelling"),
    ],
)
def test_verdict(authorization: str, status: int, said: str) -> None:
    async def story(_cluster: ReviewingCluster, viewers: Viewers, _clock: ManualClock) -> None:
        verdict = await viewers.check(authorization)
        assert verdict.status == status
        assert said in verdict.reason

    judged(story)


@pytest.mark.parametrize("missing", SHOWN_KINDS.values())
def test_every_kind_that_is_shown_has_to_be_allowed(missing: str) -> None:
    async def story(cluster: ReviewingCluster, viewers: Viewers, _clock: ManualClock) -> None:
        cluster.rights = {ALICE: tuple(each for each in EVERYTHING_SHOWN if each != missing)}
        verdict = await viewers.check(f"Bearer {ALICE}")
        assert verdict.status == HTTPStatus.FORBIDDEN
        assert f"alice may not list {missing}.hive.openshift.io" in verdict.reason

    judged(story)


def test_user_is_asked_about_as_the_token_says() -> None:
    async def story(cluster: ReviewingCluster, viewers: Viewers, _clock: ManualClock) -> None:
        assert (await viewers.check(f"Bearer {ALICE}")).is_allowed
        token, *access = cluster.reviews
        assert token["spec"] == {"token": ALICE}
        assert len(access) == len(SHOWN_KINDS)
        assert access[0]["spec"] == {
            "user": "alice", "uid": "1", "groups": ["system:authenticated"], "extra": {"scopes": ["a"]},
            "resourceAttributes": {
                "verb": "list", "group": "hive.openshift.io", "resource": "clusterpools", "namespace": "",
            },
        }  # fmt: skip

    judged(story)


@pytest.mark.parametrize(("token", "kept_s"), [(ALICE, ALLOWED_S), (BOB, REFUSED_S)])
def test_verdicts_are_kept_for_some_seconds_and_no_longer(token: str, kept_s: float) -> None:
    async def story(cluster: ReviewingCluster, viewers: Viewers, clock: ManualClock) -> None:
        first = await viewers.check(f"Bearer {token}")
        cluster.rights = {ALICE: (), BOB: EVERYTHING_SHOWN}
        asked = len(cluster.reviews)
        await clock.advance(kept_s - 1)
        assert await viewers.check(f"Bearer {token}") == first
        assert len(cluster.reviews) == asked
        await clock.advance(2)
        assert (await viewers.check(f"Bearer {token}")).is_allowed != first.is_allowed

    judged(story)


def test_api_server_that_does_not_answer_lets_nobody_in_and_nothing_is_kept() -> None:
    async def story(cluster: ReviewingCluster, viewers: Viewers, _clock: ManualClock) -> None:
        for kind in ("TokenReview", "SubjectAccessReview"):
            cluster.fail(busy, kind=kind)
            verdict = await viewers.check(f"Bearer {ALICE}")
            assert verdict.status == HTTPStatus.SERVICE_UNAVAILABLE
            assert "could not be reviewed" in verdict.reason
            assert ALICE not in verdict.reason
        assert (await viewers.check(f"Bearer {ALICE}")).is_allowed

    judged(story)


def test_number_of_verdicts_that_are_kept_and_of_reviews_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.node.fleet.dashboard.viewers._MOST_KEPT", 5)
    monkeypatch.setattr("garboard.node.fleet.dashboard.viewers._MOST_WAITING", 10)

    async def story(cluster: ReviewingCluster, viewers: Viewers, _clock: ManualClock) -> None:
        for number in range(20):
            await viewers.check(f"Bearer token-{number}")
        assert len(viewers._kept) == 5
        found = await asyncio.gather(*(viewers.check(f"Bearer more-{number}") for number in range(30)))
        statuses = [each.status for each in found]
        assert statuses.count(HTTPStatus.SERVICE_UNAVAILABLE) == 20
        assert statuses.count(HTTPStatus.UNAUTHORIZED) == 10

    judged(story)
