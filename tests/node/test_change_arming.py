"""What arming writes, what disarming removes, and how the run of a change is found again."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from garboard.change.confirming import Arming, read_arming
from garboard.engine import ControlTimer, MakeFolder, PatchObject, Plan, RemoveFile, Step, WriteFile
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.node.change_arming import ARM, phase_of, plan_arming, plan_disarming, settle_arming
from garboard.node.change_guard import ARMED
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode
from garboard.phases.revision import NodeReport
from tests.support.node.reporters import MemoryReporter

UNTIL = datetime(2031, 5, 4, 3, 0, tzinfo=UTC)
ARMING = Arming(revision=3, digest="d", node="cp1", nodes=["cp1", "cp2"], until=UNTIL, members={})
TIMER = "garboard-change-confirm"


def written(program: str = "/usr/bin/garboard") -> dict[str, bytes]:
    steps = plan_arming(ARMING, program)
    return {step.action.path: step.action.content for step in steps if isinstance(step.action, WriteFile)}


def test_node_is_armed_by_files_and_a_timer_that_outlives_a_reboot() -> None:
    actions = [step.action for step in plan_arming(ARMING, "/usr/bin/garboard")]
    assert actions[-1] == ControlTimer(timer=TIMER, verb="enable")
    assert read_arming(written()[ARMED], source=ARMED) == ARMING
    timer = written()[f"/etc/systemd/system/{TIMER}.timer"].decode()
    assert "OnCalendar=2031-05-04 03:00:00 UTC\nPersistent=true\nOnActiveSec=15\nOnUnitInactiveSec=15\n" in timer
    assert b"ExecStart=/usr/bin/garboard change watch\n" in written()[f"/etc/systemd/system/{TIMER}.service"]


def test_disarmed_node_says_so_once_its_timer_is_disabled_and_nothing_stays() -> None:
    report = NodeReport(revision=3, digest="d", result="confirmed", at="now")
    actions = [step.action for step in plan_disarming(ARMING, report, "it was kept")]
    assert actions[0] == ControlTimer(timer=TIMER, verb="disable")
    assert isinstance(actions[1], PatchObject)
    assert {each.path for each in actions if isinstance(each, RemoveFile)} == written().keys()
    assert actions[-1] == RemoveFile(path=ARMED), "as long as it is there, the watcher goes on"


@pytest.fixture
def node() -> LocalNode:
    return LocalNode(NodeMachine(None), MemoryReporter())


def begin(node: LocalNode, *steps: Step, command: str = "change node", is_whole: bool = True) -> None:
    confirm_by = UNTIL if is_whole else None
    options = RunOptions(command=command, confirm_by=confirm_by, is_whole=is_whole)
    Transactions(node.runs, node.reporter).carry_out(Plan(steps), RunSettings(), options)


def test_run_of_the_change_is_the_first_one_after_arming(node: LocalNode, tmp_path: Path) -> None:
    assert phase_of(node.runs, ARMING) == ("none", "")
    begin(node, Step(MakeFolder(path=str(tmp_path / "a"), mode=0o700), ""))
    (run,) = node.runs.all()
    assert phase_of(node.runs, ARMING) == ("unconfirmed", run.header.run)
    with node.runs.lock("change node"):
        assert phase_of(node.runs, ARMING)[0] == "running"
    Transactions(node.runs, node.reporter).undo(RunOptions(command="undo"))
    assert phase_of(node.runs, ARMING) == ("reverted", run.header.run)


def test_run_that_was_kept_by_hand_is_kept(node: LocalNode, tmp_path: Path) -> None:
    begin(node, Step(MakeFolder(path=str(tmp_path / "a"), mode=0o700), ""))
    Transactions(node.runs, node.reporter).confirm()
    assert phase_of(node.runs, ARMING)[0] == "kept"


def test_run_that_stopped_is_cut_short(node: LocalNode) -> None:
    with pytest.raises(GarboardError):
        begin(node, Step(MakeFolder(path="/proc/none", mode=0o700), ""))
    assert phase_of(node.runs, ARMING)[0] == "cut-short"


def test_arming_that_was_killed_is_ended_and_other_open_runs_are_not(node: LocalNode) -> None:
    settle_arming(node)
    with pytest.raises(GarboardError):
        begin(node, Step(MakeFolder(path="/proc/none", mode=0o700), ""))
    settle_arming(node)
    assert len(node.runs.open()) == 1
    assert node.runs.open()[0].header.command != ARM


@pytest.mark.real
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze, "systemd-analyze is missing: install the Debian package systemd"
    program = tmp_path / "garboard"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    files = []
    for path, data in written(str(program)).items():
        if path != ARMED:
            files.append(tmp_path / Path(path).name)
            files[-1].write_bytes(data)
    said = subprocess.run([analyze, "verify", *files], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert [line for line in said.stderr.splitlines() if TIMER in line] == []
