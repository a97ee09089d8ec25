"""Questions about tokens and rights, and what is made of the answers."""

import pytest

from garboard.documents import Json
from garboard.kube import ReviewedUser, access_review, read_access_review, read_token_review, token_review


def test_token_review_asks_for_the_api_servers_own_audience_unless_another_is_named() -> None:
    assert token_review("t")["spec"] == {"token": "t"}
    assert token_review("t", ["a"])["spec"] == {"token": "t", "audiences": ["a"]}


def test_user_of_a_token_is_read_whole() -> None:
    user: Json = {"username": "u", "uid": "1", "groups": ["a", "b"], "extra": {"scopes": ["x"]}}
    status: Json = {"authenticated": True, "user": user, "audiences": ["z"]}
    assert read_token_review({"status": status}) == ReviewedUser(
        is_authenticated=True, name="u", uid="1", groups=("a", "b"), extra={"scopes": ("x",)}, audiences=("z",)
    )


@pytest.mark.parametrize(
    "answer", [{}, {"status": None}, {"status": {"authenticated": "true"}}, {"status": {"user": []}}, {"status": []}]
)
def test_answer_that_does_not_say_so_authenticates_nobody(answer: dict[str, Json]) -> None:
    assert not read_token_review(answer).is_authenticated


@pytest.mark.parametrize(
    ("status", "may"),
    [
        pytest.param({"allowed": True}, True, id="allowed"),
        pytest.param({"allowed": False}, False, id="not allowed"),
        pytest.param({"allowed": True, "denied": True}, False, id="denied"),
        pytest.param({"allowed": "true"}, False, id="a text"),
        pytest.param({}, False, id="nothing"),
        pytest.param(None, False, id="no status"),
    ],
)
def test_access_is_what_is_said_to_be_allowed(status: Json, may: bool) -> None:
    assert read_access_review({"status": status}) is may


def test_access_is_asked_about_with_all_that_a_token_says_of_its_user() -> None:
    user = ReviewedUser(is_authenticated=True, name="u", uid="1", groups=("g",), extra={"k": ("v",)})
    assert access_review(user, "list", "clusterpools", "hive.openshift.io", "ns")["spec"] == {
        "user": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "list", "group": "hive.openshift.io", "resource": "clusterpools", "namespace": "ns",
        },
    }  # fmt: skip
