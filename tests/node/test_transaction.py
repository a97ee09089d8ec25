"""Runs that are cut short: what status says, what is refused, and how they end."""

import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from garboard.cli.console import ConsoleReporter
from garboard.cli.main import run
from garboard.engine import (
    EmptyFolder,
    Journal,
    MakeFolder,
    Plan,
    ShowMessage,
    StalePlan,
    Step,
    WriteFile,
    with_preconditions,
)
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.host.runs import RunFolders
from garboard.node.observe import ObservedMachine
from garboard.node.runs import Runs
from garboard.node.transaction import RunOptions, RunPolicy, Transactions
from garboard.node.wiring import RunSettings
from tests.support.node.reporters import MemoryReporter
from tools.harness.killing import Points

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
    monkeypatch.setattr("garboard.node.workflow.can_journal", lambda: True)


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


@pytest.fixture
def at_work(state_dir: Path) -> Iterator[int]:
    """A process that holds the node lock."""

    def hold() -> int:
        with RunFolders(state_dir).lock("garboard resume"):
            (state_dir / "held").touch()
            signal.pause()
        return 0

    with _forked(hold) as pid:
        _wait_for(state_dir / "held")
        yield pid


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_run_that_is_at_work_is_named(certs: list[str], at_work: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(certs) == 1
    told = capsys.readouterr().err
    assert f"[init] waiting for the node lock: garboard resume (process {at_work}) is changing this node" in told
    assert f"error[locked]: garboard resume (process {at_work}) is changing this node" in told


def test_status_names_the_command_that_is_at_work(
    certs: list[str], at_work: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": [], "lockedBy": f"garboard resume (process {at_work})"}
    assert run(["status"]) == 0
    assert capsys.readouterr().out.startswith(f"garboard resume (process {at_work}) is at work on this node\n")
    os.kill(at_work, signal.SIGKILL)
    os.waitpid(at_work, 0)
    kill_at("3 begun", certs)
    assert run(["status", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["lockedBy"] == ""


def test_run_that_is_at_work_has_not_stopped(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    with RunFolders(state_dir).lock("garboard resume"):
        assert run(["status"]) == 0
    assert "stopped in" not in capsys.readouterr().out
    assert run(["status"]) == 0
    assert "stopped in certs/front-proxy-ca" in capsys.readouterr().out


def test_dry_run_takes_no_lock(certs: list[str], at_work: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*certs, "--dry-run"]) == 0
    assert run(["init", "phase", "certs", "ca", "--config", certs[2], "--dry-run"]) == 0
    assert "waiting" not in capsys.readouterr().err


DAMAGES = {
    "a line that is no JSON": lambda lines: [*lines[:2], b"\0\0\0", *lines[3:]],
    "a line without its number": lambda lines: [*lines[:2], b'{"type":"end"}', *lines[3:]],
    "a line that is no mapping": lambda lines: [*lines[:2], b"7", *lines[3:]],
    "no plan before the first step": lambda lines: lines[1:],
    "another format": lambda lines: [lines[0].replace(b'"format":2', b'"format":9'), *lines[1:]],
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
        assert run(command) == 4
        told = capsys.readouterr().err
        assert "error[bad-journal]" in told
        assert "garboard reset" in told


def test_reset_is_the_way_out_of_a_damaged_journal(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    name = _damage(state_dir, DAMAGES["no plan before the first step"])
    runs = Runs(NodeMachine(None))
    Transactions(runs, ConsoleReporter()).carry_out(
        Plan((Step(MakeFolder(path=str(state_dir / "x"), mode=0o700), ""),)),
        RunSettings(),
        RunOptions(command="reset", policy=RunPolicy(supersedes=True)),
    )
    assert f"the damaged journal of run {name} is removed" in capsys.readouterr().err
    assert runs.damaged() == ()
    assert run(certs) == 0


def _lose_output() -> None:
    """Make this process write to a pipe that nobody reads, as one does whose connection is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(writer), "w", buffering=1) for _ in range(2))


def test_run_whose_output_nobody_takes_is_carried_to_its_end(certs: list[str], tmp_path: Path) -> None:
    assert in_child(_lose_output, certs) == 0
    assert len(inodes(tmp_path / "pki")) == 22
    assert [each.record.state for each in Runs(NodeMachine(None)).all()] == ["committed"]


def test_failure_that_nobody_hears_of_keeps_its_status(certs: list[str]) -> None:
    kill_at("3 begun", certs)
    assert in_child(_lose_output, certs) == 4


class HangingUp(MemoryReporter):
    """Its terminal is gone with the first line: each further one fails, and comes with the signal."""

    def report(self, line: str, /) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        raise BrokenPipeError(line)

    def show(self, text: str, /) -> None:
        raise BrokenPipeError(text)


def test_hangup_stops_no_run_that_has_begun(state_dir: Path) -> None:
    made = [state_dir / name for name in ("one", "two")]
    shown = ShowMessage(text="what comes next", about="what comes next")
    plan = Plan((*(Step(MakeFolder(path=str(each), mode=0o700), "") for each in made), Step(shown, "")))

    def carry_out() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, and what runs under it, ignores it from the start
        runs = Runs(NodeMachine(None))
        Transactions(runs, HangingUp()).carry_out(plan, RunSettings(), RunOptions(command="init", timings="text"))
        # What it was before is what it is again.
        os.kill(os.getpid(), signal.SIGHUP)

    assert in_child(carry_out, []) == -signal.SIGHUP
    assert all(each.is_dir() for each in made)
    assert [each.record.state for each in Runs(NodeMachine(None)).all()] == ["committed"]


def test_phase_that_waited_for_another_one_plans_from_what_that_has_made(
    certs: list[str], tmp_path: Path, state_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two phases at once have issued two CAs, when both had planned before the first had the lock."""
    made = _made_elsewhere(tmp_path / "elsewhere")
    held, go = state_dir / "held", state_dir / "go"
    with _forked(lambda: _copy_under_lock(state_dir, made, tmp_path / "pki")):
        _wait_for(held)
        capfd.readouterr()
        with _forked(lambda: run(["init", "phase", "certs", "all", "--config", certs[2]])) as second:
            while "waiting for the node lock: garboard init phase certs" not in capfd.readouterr().err:
                assert os.waitpid(second, os.WNOHANG) == (0, 0), "it does not say that it waits"
            go.touch()
            assert os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]) == 0
    assert (tmp_path / "pki/ca.crt").read_bytes() == (made / "ca.crt").read_bytes()
    assert "issue" not in capfd.readouterr().err


def _copy_under_lock(state_dir: Path, made: Path, target: Path) -> int:
    with RunFolders(state_dir).lock("garboard init phase certs"):
        (state_dir / "held").touch()
        _wait_for(state_dir / "go")
        shutil.copytree(made, target)
    return 0


@contextmanager
def _forked(work: Callable[[], int]) -> Iterator[int]:
    """Let a child do the work, and end it if it has not ended by itself."""
    pid = os.fork()
    if pid == 0:
        os._exit(work())
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _made_elsewhere(folder: Path) -> Path:
    """Return a folder with all certificates of a node, made as on another machine."""
    folder.mkdir()
    (folder / "kubeadm.yaml").write_text(CONFIG.format(folder="/etc/kubernetes"))
    assert run(["init", "phase", "certs", "all", "--config", "/kubeadm.yaml", "--rootfs", str(folder)]) == 0
    return folder / "etc/kubernetes/pki"


def _runs() -> Runs:
    return Runs(NodeMachine(None))


CLOSED_AND_DAMAGED = {
    "a line that is no JSON": lambda lines: [*lines[:2], b"\0\0\0", *lines[3:]],
    "no plan before the first step": lambda lines: lines[1:],
    "another format": lambda lines: [lines[0].replace(b'"format":2', b'"format":9'), *lines[1:]],
    "another format that closes in another way": lambda lines: [
        lines[0].replace(b'"format":2', b'"format":9'),
        lines[-1].replace(b'"committed"', b'"archived"'),
    ],
    "another format with another header": lambda lines: [b'{"type":"run","format":9}', lines[-1]],
    "something behind its end": lambda lines: [*lines, b"\0\0"],
}


@pytest.mark.parametrize("change", CLOSED_AND_DAMAGED.values(), ids=CLOSED_AND_DAMAGED)
def test_closed_run_never_stands_in_the_way(
    certs: list[str],
    change: Callable[[list[bytes]], list[bytes]],
    state_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(certs) == 0
    name = _damage(state_dir, change)
    assert run(certs) == 0
    assert run(["resume"]) == 4
    assert "error[no-run]" in capsys.readouterr().err
    assert run(["status", "--all", "-o", "json"]) == 0
    states = {each["run"]: each["state"] for each in json.loads(capsys.readouterr().out)["runs"]}
    assert states[name] in ("committed", "closed")


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_damaged_run_is_forgotten_and_the_node_stays_as_it_is(
    certs: list[str],
    change: Callable[[list[bytes]], list[bytes]],
    tmp_path: Path,
    state_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kill_at("3 begun", certs)
    name = _damage(state_dir, change)
    before = inodes(tmp_path)
    capsys.readouterr()
    assert run(["runs", "forget", name]) == 0
    told = capsys.readouterr().out
    assert f"run {name} is forgotten" in told
    assert "unknown" in told
    assert inodes(tmp_path) == before
    # What it had kept may be the only copy of a key: it is not lost.
    aside = state_dir / "forgotten" / name
    assert str(aside) in told
    assert list((aside / "kept").iterdir())
    assert (run(["runs", "forget", name]), run(certs)) == (4, 0)


def _too_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(33 * 1024 * 1024)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, _too_large], ids=["a folder", "a pipe", "too large"])
def test_run_whose_journal_is_no_file_that_can_be_read_is_forgotten(
    certs: list[str], make: Callable[[Path], None], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    (journal,) = state_dir.glob("runs/*/journal.jsonl")
    journal.unlink()
    make(journal)
    name = journal.parent.name
    assert run(certs) == 4
    capsys.readouterr()
    assert run(["runs", "forget", name]) == 0
    assert "its plan cannot be read" in capsys.readouterr().out
    assert (state_dir / "forgotten" / name / "journal.jsonl").exists()
    assert run(["status"]) == 0


def test_forgetting_says_what_the_journal_cannot_tell(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    name = _damage(state_dir, DAMAGES["a line that is no JSON"])
    capsys.readouterr()
    assert run(["runs", "forget", name, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["command"], told["finished"], told["damagedLines"]) == ("init", 3, 1)
    assert "certs/ca: issue ca" not in told["unknown"][0]
    assert any(each.startswith("certs/front-proxy-ca: issue") for each in told["unknown"])


def test_run_whose_kept_contents_are_lost_can_be_forgotten(certs: list[str], state_dir: Path) -> None:
    kill_at("3 begun", certs)
    for path in state_dir.glob("runs/*/kept/*"):
        path.write_bytes(b"")
    (found,) = _runs().open()
    assert run(["runs", "forget", found.folder.name]) == 0
    assert run(certs) == 0


def test_run_that_can_be_resumed_is_not_forgotten(
    certs: list[str], state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    (found,) = _runs().open()
    assert run(["runs", "forget", found.folder.name]) == 4
    told = capsys.readouterr().err
    assert "error[run-open]" in told
    assert "garboard resume" in told
    assert run(["resume"]) == 0
    assert run(["runs", "forget", found.folder.name]) == 4


def test_what_else_lies_among_the_runs_is_left_alone(certs: list[str], state_dir: Path) -> None:
    runs = state_dir / "runs"
    (runs / "of-somebody").mkdir(parents=True)
    (runs / "of-somebody" / "notes").touch()
    (runs / "stray").write_text("a note")
    (runs / "link").symlink_to(runs / "of-somebody")
    assert run(certs) == 0
    assert run(["status", "--all"]) == 0
    assert {"of-somebody", "stray", "link"} <= {each.name for each in runs.iterdir()}


def test_runs_are_in_their_order_although_the_clock_was_set_back(
    certs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EarlierEachTime:
        """A clock that is set back by a year whenever it is read."""

        years = iter(range(2026, 2000, -1))

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(next(cls.years), 1, 1, tzinfo=tz)

    monkeypatch.setattr("garboard.node.transaction.datetime", EarlierEachTime)
    for _ in range(3):
        shutil.rmtree(tmp_path / "pki", ignore_errors=True)
        assert run(certs) == 0
    found = _runs().all()
    assert [each.header.number for each in found] == [1, 2, 3]
    assert found[0].header.started_at > found[1].header.started_at > found[2].header.started_at


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a machine of its own, for commands that would change this one."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "kubeadm.yaml").write_text(CONFIG.format(folder="/etc/kubernetes"))
    return folder


@pytest.fixture
def below(root: Path, certs: list[str]) -> list[str]:
    """The command of a run that makes files only, below that root."""
    return ["init", "--config", "/kubeadm.yaml", *certs[3:], "--rootfs", str(root)]


def test_run_below_another_root_is_shown_resumed_undone_and_forgotten(
    root: Path, below: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pki = root / "etc/kubernetes/pki"
    kill_at("3 begun", below)
    assert run(["status"]) == 0
    assert "no run is open" in capsys.readouterr().out
    assert run(["status", "--rootfs", str(root)]) == 0
    assert "stopped in certs/front-proxy-ca" in capsys.readouterr().out
    assert run(["undo", "--dry-run", f"--rootfs={root}"]) == 0
    assert (run(["undo"]), run(["undo", "--rootfs", str(root)])) == (4, 0)
    assert not pki.exists()
    kill_at("3 begun", below)
    assert run(["--rootfs", str(root), "resume"]) == 0
    assert len(inodes(pki)) == 22
    shutil.rmtree(pki)
    kill_at("3 begun", below)
    name = _damage_below(root)
    assert run(["runs", "forget", name, "--rootfs", str(root)]) == 0
    assert [path.parent.name for path in root.rglob("forgotten/*/journal.jsonl")] == [name]


def _damage_below(root: Path) -> str:
    """Damage the open journal below a root, and return the name of its run."""
    (journal,) = (path for path in root.rglob("journal.jsonl") if b'"closed"' not in path.read_bytes())
    journal.write_bytes(b"{}\n")
    return journal.parent.name


RESET = ["reset", "--force", "--cri-socket", "unix:///run/none.sock", "--rootfs"]


SKIPPING = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ResetConfiguration
criSocket: unix:///run/none.sock
force: true
skipPhases: [cleanup-node]
"""


@pytest.mark.read_only_machine
@pytest.mark.parametrize(
    "words",
    [
        pytest.param([*RESET[:-1], "--skip-phases", "cleanup-node"], id="flag"),
        pytest.param([*RESET[:-1], "--skip-phases", "preflight,cleanup-node"], id="flag with another phase"),
        pytest.param(["reset", "--config", "/reset.yaml"], id="file"),
        pytest.param(["reset", "phase", "remove-etcd-member"], id="another phase alone"),
        pytest.param(["reset", "phase", "cleanup-node"], id="the clean-up alone"),
    ],
)
def test_reset_that_is_not_whole_leaves_open_runs_alone(
    words: list[str], root: Path, below: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", below)
    (root / "reset.yaml").write_text(SKIPPING)
    files = {each: each.read_bytes() for name in ("kept/*", "journal.jsonl") for each in root.rglob(f"runs/*/{name}")}
    assert len(files) > 1, "there is a pre-image beside the journal"
    assert run([*words, "--rootfs", str(root)]) == 4
    assert "error[run-open]" in capsys.readouterr().err
    assert {each: each.read_bytes() for each in files} == files
    assert len(list(root.rglob("runs/*/journal.jsonl"))) == 1, "no other run has begun"
    assert run(["resume", "--rootfs", str(root)]) == 0


@pytest.mark.read_only_machine
def test_reset_with_nothing_to_remove_clears_a_damaged_journal(
    root: Path, below: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("0 before", below)
    name = _damage_below(root)
    assert run([*RESET, str(root)]) == 0
    told = capsys.readouterr().err
    assert f"the damaged journal of run {name} is removed" in told
    assert run(below) == 0


def test_file_that_was_made_between_a_kill_and_resume_is_not_replaced(
    certs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_at("3 begun", certs)
    mine = tmp_path / "pki/sa.key"
    mine.write_text("mine")
    assert run(["resume"]) == 1
    told = capsys.readouterr().err
    assert f"error[stale-plan]: the plan is stale: {mine} has been made since (phase certs/sa)" in told
    assert "garboard undo" in told
    assert run(["undo"]) == 0
    assert inodes(tmp_path / "pki").keys() == {str(mine)}
    assert mine.read_text() == "mine"


class Unconfirmed:
    """A run that replaces a file and makes a folder, and then waits to be confirmed."""

    def __init__(self, folder: Path) -> None:
        self.file, self.made = folder / "config.yaml", folder / "made"
        self.file.write_text("former")
        self.transactions = Transactions(Runs(NodeMachine(None)), MemoryReporter())
        self.plan = Plan(
            (
                Step(WriteFile(path=str(self.file), content=b"new", mode=0o600), "", "files"),
                Step(MakeFolder(path=str(self.made), mode=0o700), "", "files"),
            )
        )

    def carry_out(self, plan: Plan | None = None, policy: RunPolicy | None = None) -> str:
        options = RunOptions(command="change", confirm_within_s=600.0, policy=policy or RunPolicy())
        self.transactions.carry_out(plan or self.plan, RunSettings(), options)
        return self.transactions.runs.unconfirmed()[0].header.run

    @property
    def state(self) -> str:
        return self.transactions.runs.all()[0].record.state

    @property
    def is_new(self) -> bool:
        return (self.file.read_text(), self.made.exists()) == ("new", True)

    @property
    def is_former(self) -> bool:
        return (self.file.read_text(), self.made.exists()) == ("former", False)


@pytest.fixture
def waiting(tmp_path: Path) -> Unconfirmed:
    return Unconfirmed(tmp_path)


def test_unconfirmed_run_is_shown_and_stands_in_the_way_of_another(
    waiting: Unconfirmed, certs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = waiting.carry_out()
    assert waiting.is_new
    for command in (["status", "-o", "json"], ["runs", "list", "-o", "json"]):
        assert run(command) == 0
        (found,) = json.loads(capsys.readouterr().out)["runs"]
        assert (found["run"], found["state"], found["finished"]) == (name, "unconfirmed", 2)
        until = datetime.fromisoformat(found["until"])
        assert 590 < (until - datetime.now(UTC)).total_seconds() < 601
    for command in (["status"], ["runs", "list"]):
        assert run(command) == 0
        told = capsys.readouterr().out
        assert f"{name}  change  unconfirmed, 2 of 2 steps done" in told
        assert f"unconfirmed until {until:%Y-%m-%d %H:%M:%S} UTC" in told
        assert f"keep it with garboard runs confirm {name}, or take it back with garboard undo {name}" in told
    for command in (certs, ["resume"]):
        assert run(command) == 4
        told = capsys.readouterr().err
        assert f"error[run-unconfirmed]: run {name}" in told
        assert f"garboard runs confirm {name}" in told


def test_confirmed_run_is_kept_for_good(waiting: Unconfirmed, state_dir: Path) -> None:
    name = waiting.carry_out()
    assert list(state_dir.glob("runs/*/kept/*"))
    assert run(["runs", "confirm", name]) == 0
    assert (waiting.state, waiting.is_new) == ("confirmed", True)
    assert not list(state_dir.glob("runs/*/kept"))
    assert run(["undo", name]) == 4
    assert run(["runs", "confirm", name]) == 4
    waiting.transactions.runs.refuse_open()


@pytest.mark.parametrize("is_named", [True, False])
def test_unconfirmed_run_is_reverted_by_undo(waiting: Unconfirmed, is_named: bool, state_dir: Path) -> None:
    name = waiting.carry_out()
    assert run(["undo", "--dry-run", *[name] * is_named]) == 0
    assert waiting.is_new
    assert run(["undo", *[name] * is_named]) == 0
    assert (waiting.state, waiting.is_former) == ("reverted", True)
    assert not list(state_dir.glob("runs/*/kept"))
    waiting.transactions.runs.refuse_open()


def test_pre_images_of_an_unconfirmed_run_outlive_the_tidying(waiting: Unconfirmed) -> None:
    waiting.carry_out()
    waiting.transactions.runs.tidy()
    assert run(["undo"]) == 0
    assert waiting.is_former


def test_undo_of_an_unconfirmed_run_that_was_killed_goes_on_and_cannot_be_confirmed(
    waiting: Unconfirmed, capsys: pytest.CaptureFixture[str]
) -> None:
    name = waiting.carry_out()
    kill_at("1 begun", ["undo", name])
    assert run(["runs", "confirm", name]) == 4
    assert "error[run-open]" in capsys.readouterr().err
    assert run(["undo", name]) == 0
    assert (waiting.state, waiting.is_former) == ("reverted", True)


def test_run_that_was_killed_before_it_said_until_when_waits_once_it_is_resumed(waiting: Unconfirmed) -> None:
    def die(_journal: Journal, _until: datetime) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        setattr(Journal, "leave_unconfirmed", die)  # noqa: B010 - a method of a frozen class
        waiting.carry_out()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert waiting.state == "open"
    assert run(["resume"]) == 0
    assert waiting.state == "unconfirmed"


UNTIL = datetime(2031, 5, 4, 3, 0, tzinfo=UTC)


def test_run_of_several_nodes_waits_until_their_common_moment_and_until_a_later_one(waiting: Unconfirmed) -> None:
    waiting.transactions.carry_out(waiting.plan, RunSettings(), RunOptions(command="change", confirm_by=UNTIL))
    (found,) = waiting.transactions.runs.unconfirmed()
    assert (found.record.until, found.header.confirm_by) == (UNTIL, UNTIL)
    waiting.transactions.extend(found.header.run, UNTIL + timedelta(minutes=5))
    (found,) = waiting.transactions.runs.unconfirmed()
    assert found.record.until == UNTIL + timedelta(minutes=5)
    lines = found.folder.lines()
    waiting.transactions.extend(found.header.run, UNTIL + timedelta(minutes=5))
    assert found.folder.lines() == lines, "it says so already"
    assert waiting.transactions.confirm() == found.header.run


@pytest.mark.parametrize(
    ("text", "is_edited"),
    [
        pytest.param("new", False, id="as it was written"),
        pytest.param("former", False, id="somebody has put it back"),
        pytest.param("mine", True, id="edited since"),
        pytest.param(None, True, id="removed since"),
    ],
)
def test_only_what_is_as_the_run_wrote_it_is_taken_back(
    waiting: Unconfirmed, text: str | None, is_edited: bool
) -> None:
    name = waiting.carry_out()
    if text is None:
        waiting.file.unlink()
    else:
        waiting.file.write_text(text)
    options = RunOptions(command="undo")
    edited = waiting.transactions.take_back(options, name, reaches_cluster=False)
    assert edited == (frozenset([str(waiting.file)]) if is_edited else frozenset())
    found = waiting.file.read_text() if waiting.file.exists() else None
    assert found == (text if is_edited else "former")
    assert (waiting.state, waiting.made.exists()) == ("reverted", False)


def test_taking_back_that_was_cut_short_goes_on(waiting: Unconfirmed) -> None:
    name = waiting.carry_out()
    kill_at("1 begun", ["undo", name])
    waiting.transactions.take_back(RunOptions(command="undo"), name, reaches_cluster=True)
    assert (waiting.state, waiting.is_former) == ("reverted", True)


@pytest.fixture
def has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of whatever waits to be confirmed has passed."""
    found = Runs.overdue
    monkeypatch.setattr(Runs, "overdue", lambda runs, now: found(runs, now + timedelta(hours=1)))


@pytest.mark.usefixtures("has_passed")
def test_overdue_run_is_reverted_without_its_name(waiting: Unconfirmed, capsys: pytest.CaptureFixture[str]) -> None:
    name = waiting.carry_out()
    assert run(["undo", "--overdue"]) == 0
    assert f"nobody confirmed run {name} in time; it is undone" in capsys.readouterr().err
    assert (waiting.state, waiting.is_former) == ("reverted", True)
    assert run(["undo", "--overdue"]) == 0
    assert "no run is overdue" in capsys.readouterr().err


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_run_that_is_confirmed_or_has_time_left_is_not_overdue(
    waiting: Unconfirmed, is_confirmed: bool, request: pytest.FixtureRequest
) -> None:
    waiting.carry_out()
    if is_confirmed:
        request.getfixturevalue("has_passed")
        assert run(["runs", "confirm"]) == 0
    assert run(["undo", "--overdue"]) == 0
    assert (waiting.state, waiting.is_new) == ("confirmed" if is_confirmed else "unconfirmed", True)


@pytest.mark.usefixtures("has_passed")
def test_open_run_is_never_overdue(certs: list[str]) -> None:
    kill_at("3 begun", certs)
    assert run(["undo", "--overdue"]) == 0
    (opened,) = Runs(NodeMachine(None)).open()
    assert opened.record.state == "open"


@pytest.mark.usefixtures("has_passed")
def test_undo_of_an_overdue_run_that_was_killed_goes_on(waiting: Unconfirmed) -> None:
    waiting.carry_out()
    kill_at("1 begun", ["undo", "--overdue"])
    assert run(["undo", "--overdue"]) == 0
    assert (waiting.state, waiting.is_former) == ("reverted", True)


@pytest.mark.usefixtures("has_passed")
def test_damaged_run_may_be_the_overdue_one(
    waiting: Unconfirmed, state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting.carry_out()
    (journal,) = state_dir.glob("runs/*/journal.jsonl")
    journal.write_text("{" + journal.read_text())
    assert run(["undo", "--overdue"]) == 4
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["20260101T000000.000-0000-init"], ["--dry-run"]])
def test_overdue_run_is_not_named(more: list[str]) -> None:
    assert run(["undo", "--overdue", *more]) == 2


def test_run_without_a_way_back_cannot_wait_to_be_confirmed(waiting: Unconfirmed) -> None:
    lost = Plan((Step(EmptyFolder(path=str(waiting.made)), ""),))
    for plan, policy in ((lost, RunPolicy()), (waiting.plan, RunPolicy(is_undoable=False))):
        with pytest.raises(GarboardError, match="nobody can bring back"):
            waiting.carry_out(plan, policy)
    assert waiting.is_former
    assert waiting.transactions.runs.all() == ()


def test_reset_closes_an_unconfirmed_run(waiting: Unconfirmed) -> None:
    waiting.carry_out()
    options = RunOptions(command="reset", policy=RunPolicy(supersedes=True, is_undoable=False))
    waiting.transactions.carry_out(Plan((waiting.plan.steps[1],)), RunSettings(), options)
    assert waiting.state == "reset"


def test_run_is_resumed_and_undone_by_its_name(certs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    kill_at("3 begun", certs)
    (opened,) = Runs(NodeMachine(None)).open()
    for command in ("resume", "undo"):
        assert run([command, "20260101T000000.000-0000-init"]) == 4
        assert "error[no-run]: there is no run 20260101T000000.000-0000-init" in capsys.readouterr().err
    assert run(["resume", opened.header.run]) == 0
    for command in ("resume", "undo"):
        assert run([command, opened.header.run]) == 4
        assert "is closed: it was committed" in capsys.readouterr().err
    kill_at("0 begun", [*certs[:2], str(second_config(certs)), *certs[3:]])
    (other,) = Runs(NodeMachine(None)).open()
    assert run(["undo", opened.header.run]) == 4
    assert "is closed: it was committed" in capsys.readouterr().err
    assert run(["undo", other.header.run]) == 0


def second_config(certs: list[str]) -> Path:
    config = Path(certs[2]).with_name("other.yaml")
    config.write_text(CONFIG.format(folder=config.parent / "other"))
    return config


def test_committed_run_leaves_the_last_good_set_and_a_reverted_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.node.last_good._RENDERED", (str(tmp_path),))
    waiting = Unconfirmed(tmp_path)
    last_good = waiting.transactions.runs.last_good
    waiting.carry_out()
    assert last_good.read() is None
    assert run(["undo"]) == 0
    assert last_good.read() is None
    name = waiting.carry_out()
    assert run(["runs", "confirm"]) == 0
    found = last_good.read()
    assert found is not None
    assert (found.run, [each.path for each in found.files]) == (name, [str(waiting.file)])
    assert last_good.content(found.files[0]) == b"new"
    again = Plan((Step(WriteFile(path=str(waiting.file), content=b"newer", mode=0o600), ""),))
    waiting.transactions.carry_out(again, RunSettings(), RunOptions(command="change"))
    found = last_good.read()
    assert found is not None
    assert last_good.content(found.files[0]) == b"newer"
    reset = RunOptions(command="reset", policy=RunPolicy(supersedes=True, is_undoable=False))
    waiting.transactions.carry_out(Plan((waiting.plan.steps[1],)), RunSettings(), reset)
    assert last_good.read() is None


def saved(folder: Path) -> tuple[Plan, Path]:
    """Return a plan that was saved and loaded, and a file that planning has read and does not write."""
    source, target = folder / "patches.yaml", folder / "target.yaml"
    source.write_text("replicas: 1")
    machine = ObservedMachine(None)
    assert machine.read(str(source)) is not None
    plan = Plan((Step(WriteFile(path=str(target), content=b"new", mode=0o600), "", "files"),))
    plan = replace(with_preconditions(plan, machine.digest), observed=machine.observed())
    codec = Runs(NodeMachine(None)).codec
    assert codec.plan_from_bytes(codec.plan_to_bytes(plan)) == plan
    return plan, source


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        pytest.param(lambda path: path.write_text("replicas: 2"), "has changed", id="changed"),
        pytest.param(lambda path: path.unlink(), "has gone", id="gone"),
        pytest.param(lambda path: (path.parent / "target.yaml").write_text(""), "has been made", id="made"),
    ],
)
def test_saved_plan_is_refused_on_a_world_that_has_moved(
    tmp_path: Path, moves: Callable[[Path], object], told: str
) -> None:
    plan, source = saved(tmp_path)
    moves(source)
    transactions = Transactions(Runs(NodeMachine(None)), MemoryReporter())
    with pytest.raises(StalePlan, match=rf"file .*\.yaml {told} since the plan was made") as caught:
        transactions.carry_out(plan, RunSettings(), RunOptions(command="change", is_saved=True))
    assert "run the command again" in (caught.value.hint or "")
    assert transactions.runs.all() == ()


def test_saved_plan_is_carried_out_on_the_world_that_it_was_made_for(tmp_path: Path) -> None:
    plan, source = saved(tmp_path)
    transactions = Transactions(Runs(NodeMachine(None)), MemoryReporter())
    transactions.carry_out(plan, RunSettings(), RunOptions(command="change", is_saved=True))
    assert (tmp_path / "target.yaml").read_text() == "new"
    # A plan that is made and carried out under one lock looks at the files that it writes alone.
    source.write_text("replicas: 2")
    (tmp_path / "target.yaml").unlink()
    transactions.carry_out(plan, RunSettings(), RunOptions(command="change"))
