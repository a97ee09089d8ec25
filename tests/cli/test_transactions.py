"""Runs that are cut short: what status says, what is refused, and how they end."""

import json
import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.reliability.killing import Points
from garboard.cli.main import run
from garboard.cli.workflow.hands import RunSettings
from garboard.cli.workflow.transactions import RunOptions, Transactions
from garboard.engine import Journal, MakeFolder, Plan, Step
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.host.runs import RunFolders

CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10}}
nodeRegistration: {{name: node-1, criSocket: unix:///run/none.sock}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
certificatesDir: {folder}/pki
"""


@pytest.fixture(autouse=True)
def is_journaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Journal whoever runs the tests: their journals are in a folder of their own."""
    for module in ("running", "transactions"):
        monkeypatch.setattr(f"garboard.cli.workflow.{module}.can_journal", lambda: True)


@pytest.fixture
def certs(tmp_path: Path) -> list[str]:
    """The command of a run that makes files only."""
    config = tmp_path / "kubeadm.yaml"
    config.write_text(CONFIG.format(folder=tmp_path))
    skipped = (
        "preflight,kubeconfig,etcd,control-plane,kubelet-start,wait-control-plane,upload-config,upload-certs,"
        "mark-control-plane,bootstrap-token,kubelet-finalize,addon,show-join-command"
    )
    return ["init", "--config", str(config), "--skip-phases", skipped]


def in_child(prepare: Callable[[], None], command: list[str]) -> int:
    """Run a command in a process that `prepare` changes; return its status, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        prepare()
        os._exit(run(command))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_at(point: str, command: list[str]) -> None:
    assert in_child(Points(point).watch, command) == -signal.SIGKILL


def inodes(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


def test_open_run_is_shown_and_stands_in_the_way_of_another(
    certs: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["status"]) == 0
    assert capsys.readouterr().out == "no run is open on this node\n"
    kill_at("3 begun", certs)
    assert run(["status", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert (found["command"], found["state"], found["finished"], found["next"]) == (
        "init",
        "open",
        3,
        "certs/front-proxy-ca",
    )
    for command in (certs, ["init", "phase", "certs", "ca", "--config", certs[2]]):
        assert run(command) == 4
        told = capsys.readouterr().err
        assert "error[run-open]" in told
        assert "garboard resume" in told
        assert "garboard undo" in told
    assert run([*certs, "--dry-run"]) == 0


def test_resume_keeps_what_is_finished_and_makes_the_rest(certs: list[str], tmp_path: Path) -> None:
    kill_at("4 begun, rename 1", certs)  # the key is in its place, the certificate is not
    killed = inodes(tmp_path / "pki")
    assert run(["resume"]) == 0
    after = inodes(tmp_path / "pki")
    made_again = {Path(path).name for path in killed if after.get(path) != killed[path]}
    assert {name for name in made_again if not name.startswith(".")} == {"front-proxy-client.key"}
    assert len(after) == 22
    assert not [path for path in after if Path(path).name.startswith(".")]
    assert run(["resume"]) == 4


def test_undo_leaves_nothing(certs: list[str], tmp_path: Path, state_dir: Path) -> None:
    before = inodes(tmp_path)
    kill_at("9 begun, rename 0", certs)
    assert run(["undo"]) == 0
    assert inodes(tmp_path) == before
    assert not (tmp_path / "pki").exists()
    assert not list(state_dir.glob("runs/*/kept"))
    assert run(["undo"]) == 4
    assert run(certs) == 0


def test_undo_that_was_killed_goes_on(certs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill_at("9 ended", certs)
    kill_at("4 begun", ["undo"])
    assert run(["status"]) == 0
    assert "it undoes" in capsys.readouterr().out
    assert run(["resume"]) == 0
    assert not (tmp_path / "pki").exists()


def test_journal_holds_the_plan_of_the_dry_run(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*certs, "--dry-run", "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert run(certs) == 0
    (journal,) = state_dir.glob("runs/*/journal.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[0]["plan"] == shown
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert "PRIVATE KEY" not in journal.read_text()


def test_single_phase_leaves_no_journal(certs: list[str], state_dir: Path) -> None:
    assert run(["init", "phase", "certs", "all", "--config", certs[2]]) == 0
    assert list((state_dir / "runs").iterdir()) == []


def _fail_at(index: int) -> None:
    begin = Journal.begin

    def failing(journal: Journal, number: int, step: Step) -> None:
        if number == index and step.phase.startswith("certs"):
            raise GarboardError("the disk is full", hint="free some space")
        begin(journal, number, step)

    setattr(Journal, "begin", failing)  # noqa: B010 - a method of a frozen class


@pytest.mark.parametrize("asked", ["--undo-on-failure", "phase"])
def test_failed_run_is_undone_where_that_was_asked_for(
    certs: list[str], asked: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    single = ["init", "phase", "certs", "all", "--config", certs[2]]
    assert in_child(lambda: _fail_at(3), single if asked == "phase" else [*certs, asked]) == 1
    told = capfd.readouterr().err
    assert "error[failed]: the disk is full" in told
    assert "what the run had done was undone" in told
    assert not (tmp_path / "pki").exists()
    assert run(["status"]) == 0
    assert "no run is open" in capfd.readouterr().out


def test_failed_run_says_how_to_go_on(certs: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert in_child(lambda: _fail_at(3), certs) == 1
    told = capfd.readouterr().err
    assert "hint: free some space; then garboard resume goes on from there, or garboard undo" in told
    assert run(["status"]) == 0
    assert "the disk is full" in capfd.readouterr().out
    assert run(["resume"]) == 0


def _interrupt_at(index: int) -> None:
    begin = Journal.begin

    def interrupted(journal: Journal, number: int, step: Step) -> None:
        begin(journal, number, step)
        if number == index:
            os.kill(os.getpid(), signal.SIGTERM)

    setattr(Journal, "begin", interrupted)  # noqa: B010 - a method of a frozen class


def test_signal_lets_the_step_end_and_leaves_the_run_open(
    certs: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert in_child(lambda: _interrupt_at(2), certs) == 130
    told = capfd.readouterr().err
    assert "error[interrupted]: interrupted before certs/front-proxy-ca" in told
    assert "garboard resume" in told
    assert (tmp_path / "pki/apiserver-kubelet-client.crt").exists()
    assert run(["resume"]) == 0


def test_timings_name_every_phase(certs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*certs, "--timings", "json"]) == 0
    told = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert told["phases"][0]["phase"] == "certs/ca"
    assert len(told["phases"]) == 11
    assert told["seconds"] >= max(each["seconds"] for each in told["phases"])


def test_run_that_is_at_work_is_named(certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill_at("3 begun", certs)
    pid = os.fork()
    if pid == 0:
        with RunFolders(state_dir).lock("garboard resume"):
            (state_dir / "held").touch()
            signal.pause()
    while not (state_dir / "held").exists():
        time.sleep(0.01)
    try:
        assert run(certs) == 1
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    told = capsys.readouterr().err
    assert f"error[locked]: garboard resume (process {pid}) is changing this node" in told


DAMAGES = {
    "a line that is no JSON": lambda lines: [*lines[:2], b"\0\0\0", *lines[3:]],
    "a line without its number": lambda lines: [*lines[:2], b'{"type":"end"}', *lines[3:]],
    "a line that is no mapping": lambda lines: [*lines[:2], b"7", *lines[3:]],
    "no plan before the first step": lambda lines: lines[1:],
    "another format": lambda lines: [lines[0].replace(b'"format":1', b'"format":9'), *lines[1:]],
}


def _damage(state_dir: Path, change: Callable[[list[bytes]], list[bytes]]) -> str:
    """Damage the only journal, and return the name of its run."""
    (journal,) = state_dir.glob("runs/*/journal.jsonl")
    journal.write_bytes(b"\n".join([*change(journal.read_bytes().splitlines()), b""]))
    return journal.parent.name


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_damaged_journal_is_named_with_the_way_out(
    certs: list[str],
    change: Callable[[list[bytes]], list[bytes]],
    state_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kill_at("3 begun", certs)
    name = _damage(state_dir, change)
    for command in (certs, ["resume"], ["undo"], ["undo", "--dry-run"]):
        assert run(command) == 4
        told = capsys.readouterr().err
        assert f"error[bad-journal]: the journal of run {name} is damaged" in told
        assert "garboard reset" in told
    assert run(["status"]) == 0
    told = capsys.readouterr().out
    assert f"{name}  its journal is damaged" in told
    assert "garboard reset" in told
    assert run(["status", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert (found["run"], found["state"]) == (name, "damaged")


def test_content_that_was_lost_is_named_with_the_way_out(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    for path in state_dir.glob("runs/*/kept/*"):
        path.write_bytes(b"")
    for command in (["resume"], ["undo"]):
        assert run(command) == 1
        told = capsys.readouterr().err
        assert "error[bad-journal]" in told
        assert "garboard reset" in told


def test_reset_is_the_way_out_of_a_damaged_journal(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    name = _damage(state_dir, DAMAGES["no plan before the first step"])
    transactions = Transactions(NodeMachine(None))
    transactions.carry_out(
        Plan((Step(MakeFolder(path=str(state_dir / "x"), mode=0o700), ""),)),
        RunSettings(),
        RunOptions(command="reset"),
        None,
    )
    assert f"the damaged journal of run {name} is removed" in capsys.readouterr().err
    assert transactions.damaged() == ()
    assert run(certs) == 0
