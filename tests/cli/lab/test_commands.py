import json
from pathlib import Path

import pytest

from garboard.cli.lab import COMMANDS
from garboard.cli.main import run


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GARBOARD_LAB_HOME", str(tmp_path / "labs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "binaries"])
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", name, "--help"]) == 0
    assert "Example: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["get", "list"])
def test_so_have_those_about_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "binaries", name, "--help"]) == 0
    assert "Example: " in capsys.readouterr().out


def test_without_labs_the_list_is_empty_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "list"]) == 0
    assert "garboard lab up" in capsys.readouterr().out
    assert run(["lab", "list", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run(["lab", "prune"]) == 0


@pytest.mark.parametrize(
    "command",
    [
        ["status"], ["down"], ["kubeconfig"], ["kubectl", "get", "nodes"], ["exec", "cp1", "--", "true"],
        ["shell", "cp1"], ["logs", "cp1"], ["add-node"], ["stop", "cp1"], ["start", "cp1"],
        ["partition", "cp1", "cp2"], ["heal"],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_lab_that_is_not_there_is_named_by_every_command(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", command[0], "--name", "gone", *command[1:]]) == 3
    assert "error[invalid-value]: there is no lab 'gone'" in capsys.readouterr().err


def test_what_is_no_number_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "up", "--control-planes", "many"]) == 2
    assert "error[usage]" in capsys.readouterr().err


def test_pinned_programs_are_listed_with_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "binaries", "list", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"program": "kubeadm", "version": "v1.36.4", "path": None} in rows


def test_a_given_folder_answers_without_any_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "kubectl").write_text("#!/bin/sh\n")
    (given / "kubectl").chmod(0o755)
    assert run(["lab", "binaries", "get", "kubectl", "--from", str(given), "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"program": "kubectl", "version": "v1.37.1", "path": str(given / "kubectl"), "origin": "given"}


def test_an_unknown_program_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "binaries", "get", "docker"]) == 3
    assert "the lab knows no program 'docker'" in capsys.readouterr().err
