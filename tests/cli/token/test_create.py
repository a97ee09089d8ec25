"""`token create` at a fake API server; the real one, and kubeadm beside it, are in tests/parity."""

import base64
import os
import re
from pathlib import Path

import pytest

from garboard.cli.main import run
from tests.support.kube.api_server import FakeApi

SECRETS = "/api/v1/namespaces/kube-system/secrets"
TOKEN = "abcdef.0123456789abcdef"
CONFIG = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- {token: abcdef.0123456789abcdef, ttl: 0s}
- {token: ghijkl.0123456789abcdef, description: the other}
"""


def decoded(api: FakeApi, name: str) -> dict[str, str]:
    data = api.objects[f"{SECRETS}/bootstrap-token-{name}"]["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def test_token_is_made_and_printed(api: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "create", TOKEN, "--description", "for a rack", *admin]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"{TOKEN}\n", "")
    data = decoded(api, "abcdef")
    assert (data["token-secret"], data["description"]) == ("0123456789abcdef", "for a rack")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", data["expiration"])
    assert api.asked == [("POST", SECRETS)]


def test_dry_run_makes_nothing(api: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "create", TOKEN, "--dry-run", *admin]) == 0
    assert capsys.readouterr().out == f"{TOKEN}\n"
    assert api.asked == []


def test_id_that_is_taken_is_refused(api: FakeApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "create", TOKEN, *admin]) == 0
    assert run(["token", "create", "abcdef.ffffffffffffffff", *admin]) == 1
    told = capsys.readouterr().err
    assert 'a token with id "abcdef" already exists' in told
    assert "garboard token delete abcdef" in told
    assert decoded(api, "abcdef")["token-secret"] == "0123456789abcdef"


def test_every_token_of_a_file_is_made(
    api: FakeApi, admin: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kubeadm.yaml").write_text(CONFIG)
    assert run(["token", "create", "--config", str(tmp_path / "kubeadm.yaml"), *admin]) == 0
    assert capsys.readouterr().out == f"{TOKEN}\n"
    assert "expiration" not in decoded(api, "abcdef")
    assert decoded(api, "ghijkl")["description"] == "the other"


def test_neither_root_nor_a_journal_is_needed(
    api: FakeApi, admin: list[str], state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(["token", "create", TOKEN, *admin]) == 0
    assert not list(state_dir.iterdir())
    assert decoded(api, "abcdef")


def test_token_that_is_generated_is_new_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["token", "generate"]) == 0
    first, second = capsys.readouterr().out.split()
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", first)
    assert first != second
