"""`token delete` at a fake API server."""

import pytest

from garboard.cli.main import run
from tests.support.kube.api_server import FakeApi

SECRETS = "/api/v1/namespaces/kube-system/secrets"
TOKENS = ("abcdef.0123456789abcdef", "ghijkl.0123456789abcdef")


@pytest.fixture
def made(api: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> FakeApi:
    """An API server with two tokens."""
    for each in TOKENS:
        assert run(["token", "create", each, *admin]) == 0
    capsys.readouterr()
    api.asked.clear()
    return api


def left(api: FakeApi) -> list[str]:
    return sorted(path.rpartition("-")[2] for path in api.objects if path.startswith(SECRETS))


def test_tokens_are_deleted_by_id_or_as_a_whole(
    made: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "delete", "abcdef", TOKENS[1], *admin]) == 0
    captured = capsys.readouterr()
    assert captured.out == 'bootstrap token "abcdef" deleted\nbootstrap token "ghijkl" deleted\n'
    assert captured.err == ""
    assert left(made) == []


def test_dry_run_deletes_nothing(made: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "delete", "abcdef", "--dry-run", *admin]) == 0
    assert capsys.readouterr().out == 'bootstrap token "abcdef" would be deleted\n'
    assert left(made) == ["abcdef", "ghijkl"]
    assert made.asked == [("GET", f"{SECRETS}/bootstrap-token-abcdef")]


@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["deleting", "dry run"])
def test_token_that_is_not_there_is_a_failure_after_those_before_it(
    made: FakeApi, admin: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "delete", "abcdef", "zzzzzz", "ghijkl", *more, *admin]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [f'bootstrap token "abcdef" {"would be " * bool(more)}deleted']
    assert "bootstrap-token-zzzzzz" in captured.err
    assert left(made) == (["abcdef", "ghijkl"] if more else ["ghijkl"])


def test_what_is_no_token_is_refused_before_any_is_deleted(
    made: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "delete", "abcdef", "no-token", *admin]) == 2
    assert capsys.readouterr().out == ""
    assert made.asked == []
