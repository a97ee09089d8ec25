"""The commands that change a cluster refuse what makes no sense, before anything is looked at."""

from dataclasses import replace
from pathlib import Path

import pytest

from garboard.change.coordinated import handed_change
from garboard.change.snapshot import snapshot_text
from garboard.cli.main import run
from garboard.node.change_apply import ApplyRequest
from tests.support.change.requests import sets
from tests.support.change.rollouts import rollout
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


@pytest.mark.parametrize("is_wanted", [True, False])
def test_node_carries_out_what_a_coordinator_hands_it_as_that_would(
    is_wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ApplyRequest] = []

    def carry_out(given: ApplyRequest, _: object) -> int:
        asked.append(given)
        return 15

    request = sets("scheduler.extraArgs[v]=1")
    found = rollout(f1(), request)
    found = replace(found, intent=replace(found.intent, drains=is_wanted))
    handed = handed_change(found, request, found.plan, replaces_unfinished=is_wanted)
    monkeypatch.setattr("garboard.cli.change.apply.read_file", lambda _: handed)
    monkeypatch.setattr("garboard.cli.change.apply.apply_change", carry_out)
    assert run(["change", "apply", "-", "--coordinated", "--yes"]) == 15
    assert [(each.intent, each.replaces_unfinished) for each in asked] == [(found.intent, is_wanted)]
