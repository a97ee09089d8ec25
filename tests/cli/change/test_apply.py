"""The commands that change a cluster refuse what makes no sense, before anything is looked at."""

from pathlib import Path

import pytest

from garboard.change.snapshot import snapshot_text
from garboard.cli.main import run
from tests.support.change.snapshots import f1


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["apply"], 2, "say what to change: a PLAN, or the options"),
        (["apply", "plan.json", "--set", "clusterName=blue"], 2, "say what to change"),
        (["apply", "missing.json"], 1, "missing.json"),
        (["apply", "--set", "a=1", "--via", "ssh"], 2, "{node}"),
        (["apply", "--set", "scheduler.extraArgs[v]=1", "--lease", "x"], 2, "is no holder of a Lease"),
        (["rollback", "x"], 2, "'x' is not a valid integer"),
        (["node", "--lease", "x"], 2, "is no holder of a Lease"),
        (["history", "x"], 2, "'x' is not a valid integer"),
        (["restart"], 2, "Missing argument 'COMPONENT'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], status: int, told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["change", *words]) == status
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("command", ["confirm", "resume", "unlock", "restart", "rollback", "apply", "node"])
def test_what_writes_may_be_told_not_to_ask(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["change", command, "--help"]) == 0
    assert "-y, --yes" in capsys.readouterr().out


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(snapshot_text(f1()))
    assert run(["change", "apply", str(file)]) == 3
    assert "error[bad-plan]" in capsys.readouterr().err
