import json
from pathlib import Path

import pytest

from garboard.cli.lab import COMMANDS
from garboard.cli.main import run
from garboard.model import SUPPORTED_VERSIONS


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GARBOARD_LAB_HOME", str(tmp_path / "labs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))


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
        ["partition", "cp1", "cp2"], ["heal"], ["snapshot", "--as", "mine"],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_lab_that_is_not_there_is_named_by_every_command(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", command[0], "--name", "gone", *command[1:]]) == 2
    assert "error[usage]: there is no lab 'gone'" in capsys.readouterr().err


def test_prune_all_is_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (
        "labs/images/v1.0.0-1",
        "labs/failed/lab",
        "cache/garboard/binaries/etcd/v1",
        "cache/garboard/answers",
    ):
        (tmp_path / name).mkdir(parents=True)
    assert run(["lab", "prune", "--dry-run", "-o", "json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["v1.0.0-1"], "a release of long ago"
    assert run(["lab", "prune", "--all", "-o", "json"]) == 0
    found = [(each["kind"], each["name"]) for each in json.loads(capsys.readouterr().out)]
    assert found == [("images", "v1.0.0-1"), ("logs", "failed"), ("programs", "etcd"), ("programs", "answers")]


def test_what_is_no_number_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "up", "--control-planes", "many"]) == 2
    assert "error[usage]" in capsys.readouterr().err


def test_without_snapshots_the_list_is_empty_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "snapshots"]) == 0
    assert "garboard lab snapshot" in capsys.readouterr().out
    assert run(["lab", "snapshots", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        pytest.param(["snapshot", "lab"], 2, "pass either --as SNAPSHOT or --remove SNAPSHOT", id="neither"),
        pytest.param(["snapshot", "--as", "a", "--remove", "b"], 2, "pass either", id="both"),
        pytest.param(["snapshot", "a", "--name", "b", "--as", "c"], 2, "name one lab", id="two labs"),
        pytest.param(["snapshot", "--remove", "../labs"], 2, "'../labs' is no name for a snapshot", id="way out"),
        pytest.param(["snapshot", "--remove", "mine"], 2, "there is no snapshot 'mine'", id="not there"),
        pytest.param(["up", "--snapshot", "a/b"], 2, "'a/b' is no name for a snapshot", id="path"),
        pytest.param(["up", "--snapshot", "mine"], 2, "there is no snapshot 'mine'", id="nothing to start"),
        pytest.param(["up", "A", "--snapshot", "mine"], 2, "'A' is no name for a lab", id="name of the lab"),
        pytest.param(["up", "--snapshot", "mine", "--workers", "2"], 2, "--workers cannot be used", id="size"),
        pytest.param(["up", "--snapshot", "mine", "--from", "/"], 2, "--from cannot be used", id="programs"),
    ],
)
def test_what_makes_no_sense_with_snapshots_is_refused(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", *arguments]) == status
    assert said in capsys.readouterr().err


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


def test_all_stands_for_every_supported_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in SUPPORTED_VERSIONS:
        (tmp_path / str(version)).mkdir()
        (tmp_path / str(version) / "kubectl").write_text("#!/bin/sh\n")
        (tmp_path / str(version) / "kubectl").chmod(0o755)
    words = ["get", "kubectl", "--kubernetes-version", "all", "--from", str(tmp_path), "--output", "json"]
    assert run(["lab", "binaries", *words]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["version"] for row in rows] == [str(version) for version in reversed(SUPPORTED_VERSIONS)]


def test_an_unknown_program_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "binaries", "get", "docker"]) == 2
    assert "the lab knows no program 'docker'" in capsys.readouterr().err
