"""Bootstrap tokens as their Secrets have them; the real table is compared with kubeadm's elsewhere."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from garboard.engine import DeleteObject, Executor, PatchObject, PutObject, plan_as_text
from garboard.errors import BadUsage
from garboard.manifests.bootstrap_token import token_secret
from garboard.model.duration import Duration
from garboard.model.lifecycle import BootstrapToken
from garboard.node.interpreters import interpreters_over
from garboard.phases.tokens import plan_tokens, planned_token, stored_tokens, token_id_of, tokens_as_text
from tests.support.phases.machines import MemoryMachine

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


class Objects:
    """A cluster that remembers what was put into it."""

    def __init__(self) -> None:
        self.put_there: list[PutObject] = []

    def put(self, action: PutObject) -> None:
        self.put_there.append(action)

    def patch(self, action: PatchObject) -> None:
        raise AssertionError(action)

    def delete(self, action: DeleteObject) -> None:
        raise AssertionError(action)


def secret(**data: str) -> dict[str, Any]:
    encoded = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": f"bootstrap-token-{data.get('token_id')}"}, "data": encoded}


def test_token_that_was_planned_and_made_is_read_back() -> None:
    made = Objects()
    began = datetime.now(UTC)
    token = BootstrapToken(token="abcdef.0123456789abcdef", description="for me")
    Executor(interpreters_over(files=MemoryMachine(), objects=made)).execute(plan_tokens([token]))
    (action,) = made.put_there
    assert action.is_secret
    assert isinstance(action.content, dict)
    (found,), warnings = stored_tokens([action.content])
    assert warnings == ()
    assert found.token == "abcdef.0123456789abcdef"
    assert found.description == "for me"
    assert abs(datetime.fromisoformat(found.expires) - began - timedelta(hours=24)) < timedelta(minutes=1)
    assert found.usages == ("authentication", "signing")
    assert "0123456789abcdef" not in repr(found)


def test_plan_of_tokens_shows_no_secret() -> None:
    tokens = [BootstrapToken(token=f"abcde{number}.0123456789abcdef") for number in range(3)]
    text = plan_as_text(plan_tokens(tokens))
    assert text.count("Secret kube-system/bootstrap-token-abcde") == 3
    assert "0123456789abcdef" not in text
    assert base64.b64encode(b"0123456789abcdef").decode() not in text


def test_end_of_a_planned_token_is_counted_from_when_it_is_put() -> None:
    """So equal inputs give equal plans, whenever they are made."""
    planned = planned_token(BootstrapToken(token="abcdef.0123456789abcdef", ttl=Duration.of(hours=2)))
    (ending,) = planned.endings
    assert ending.after == timedelta(hours=2)
    assert isinstance(planned.content, dict)
    assert planned.content["data"]["expiration"] == ending.placeholder  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "token",
    [
        BootstrapToken(token="abcdef.0123456789abcdef", ttl=Duration()),
        BootstrapToken(token="abcdef.0123456789abcdef", expires="2030-01-01T00:00:00Z"),
    ],
    ids=["for ever", "until a moment"],
)
def test_token_whose_end_is_known_is_planned_with_it(token: BootstrapToken) -> None:
    assert planned_token(token) == PutObject.of(token_secret(token, NOW).content)


@pytest.mark.parametrize(
    "broken",
    [
        secret(token_id="abcdef", token_secret="short"),
        {
            "metadata": {"name": "bootstrap-token-zzzzzz"},
            "data": secret(token_id="abcdef", token_secret="0" * 16)["data"],
        },
        {"metadata": {"name": "bootstrap-token-x"}},
    ],
    ids=["no secret half", "another name", "no data"],
)
def test_secret_that_holds_no_token_is_told_and_left_out(broken: dict[str, Any]) -> None:
    tokens, warnings = stored_tokens([broken])
    assert tokens == ()
    assert "is no bootstrap token" in warnings[0]


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (timedelta(seconds=59), "59s"),
        (timedelta(seconds=60), "1m"),
        (timedelta(hours=23, minutes=59), "23h"),
        (timedelta(hours=24), "1d"),
        (timedelta(days=364), "364d"),
        (timedelta(days=800), "2y"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=-5), "<invalid>"),
    ],
    ids=str,
)
def test_time_that_is_left_is_shown_in_its_largest_unit(left: timedelta, shown: str) -> None:
    expires = (NOW + left).strftime("%Y-%m-%dT%H:%M:%SZ")
    tokens, _ = stored_tokens([secret(token_id="abcdef", token_secret="0" * 16, expiration=expires)])
    assert tokens_as_text(tokens, NOW).splitlines()[1].split()[1] == shown


def test_no_tokens_give_no_table() -> None:
    assert tokens_as_text((), NOW) == ""


def test_token_is_named_by_its_id_or_as_a_whole() -> None:
    assert token_id_of("abcdef") == token_id_of("abcdef.0123456789abcdef") == "abcdef"


@pytest.mark.parametrize("text", ["", "abc", "ABCDEF", "abcdef.0123"], ids=repr)
def test_what_is_no_token_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(BadUsage) as caught:
        token_id_of(text)
    assert not text or text not in caught.value.message
