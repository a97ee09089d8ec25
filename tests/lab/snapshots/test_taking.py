"""Snapshots of labs that run, and everything that can come between: a kill, a second process, a full disk."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from garboard.lab.layout import lab_home, snapshots_folder
from tests.support.lab.clusters import Bare
from tools.harness.lab import GARBOARD, RUN, LabUnderTest, garboard

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]
NAME = f"t{RUN}-taken"


@pytest.fixture
def snapshot() -> Iterator[str]:
    """The name of a snapshot that is free, and will be again."""
    yield NAME
    garboard("lab", "snapshot", "--remove", NAME, check=False)


def snapshots() -> dict[str, str]:
    return {each["name"]: each["state"] for each in json.loads(garboard("lab", "snapshots", "-o", "json").stdout)}


def write(lab: LabUnderTest, text: str) -> None:
    lab.exec("cp1", "sh", "-c", f"echo {text} | tee /etc/mark /var/lib/mark >/dev/null")


def read(lab: LabUnderTest) -> str:
    return lab.exec("cp1", "cat", "/etc/mark", "/var/lib/mark").stdout


def test_labs_of_a_snapshot_have_its_files_and_share_none_that_can_change(
    bare: Bare, labs_made: list[LabUnderTest], snapshot: str
) -> None:
    original = bare()
    write(original, "kept")
    original.exec("cp1", "rm", "/usr/bin/journalctl")
    original.lab("snapshot", "--as", snapshot)
    write(original, "later")
    copies = [LabUnderTest(f"t{RUN}-copy{number}") for number in (1, 2)]
    labs_made.extend(copies)
    for copy in copies:
        copy.lab("up", "--snapshot", snapshot)
        assert read(copy) == "kept\nkept\n"
        assert copy.exec("cp1", "test", "-e", "/usr/bin/journalctl", check=False).returncode == 1, (
            "a removed file came back"
        )
    write(copies[0], "mine")
    assert [read(lab) for lab in (original, *copies)] == ["later\n" * 2, "mine\n" * 2, "kept\n" * 2]
    garboard("lab", "snapshot", "--remove", snapshot)
    assert "pause" in copies[1].exec("cp1", "ctr", "-n", "k8s.io", "images", "ls").stdout
    assert read(copies[1]) == "kept\nkept\n"
    assert copies[1].exec("cp1", "garboard", "version").returncode == 0


@pytest.mark.parametrize(
    ("begins", "is_there"),
    [
        pytest.param("stopping", False, id="while it stops"),
        pytest.param("keeping", False, id="while files are kept"),
        pytest.param("starting", True, id="after that"),
    ],
)
def test_killed_on_the_way_it_leaves_all_or_nothing_and_the_lab_can_be_started(
    begins: str, is_there: bool, bare: Bare, snapshot: str
) -> None:
    lab = bare()
    write(lab, "kept")
    command = [GARBOARD, "lab", "snapshot", lab.name, "--as", snapshot]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert any(line.startswith(begins) for line in process.stderr)
        process.kill()
    assert snapshots().get(snapshot) == ("ok" if is_there else None)
    lab.lab("start")
    assert read(lab) == "kept\nkept\n"
    if not is_there:
        pruned = json.loads(garboard("lab", "prune", "-o", "json").stdout)
        left = [each for each in pruned if each["kind"] == "snapshot"]
        assert [each["name"] for each in left] == [f".incoming-{snapshot}"]
        lab.lab("snapshot", "--as", snapshot)
        assert snapshots()[snapshot] == "ok"


def test_of_two_processes_that_make_the_same_snapshot_one_is_refused(bare: Bare, snapshot: str) -> None:
    labs = [bare(), bare()]
    commands = [[GARBOARD, "lab", "snapshot", lab.name, "--as", snapshot] for lab in labs]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    said = [process.communicate()[1] for process in started]
    assert sorted(process.returncode != 0 for process in started) == [False, True], said
    (refusal,) = [text for process, text in zip(started, said, strict=True) if process.returncode != 0]
    assert "error[snapshot-busy]" in refusal or "error[snapshot-exists]" in refusal
    assert snapshots()[snapshot] == "ok"
    for lab in labs:
        assert lab.exec("cp1", "true").returncode == 0


def test_lab_of_which_not_all_runs_is_refused_and_left_alone(bare: Bare, snapshot: str) -> None:
    lab = bare(control_planes=1, workers=1)
    lab.lab("stop", "worker1")
    ended = lab.lab("snapshot", "--as", snapshot, check=False)
    assert ended.returncode == 2
    assert "error[lab-not-whole]" in ended.stderr
    assert "node worker1 is stopped" in ended.stderr
    assert f"garboard lab start --name {lab.name} worker1" in ended.stderr
    assert {node["name"]: node["state"] for node in lab.status()["nodes"]} == {"cp1": "running", "worker1": "stopped"}
    assert snapshot not in snapshots()


def test_lab_whose_supervisor_died_is_refused(bare: Bare, snapshot: str) -> None:
    lab = bare()
    os.kill(json.loads(lab.files.record.read_text())["supervisor"]["pid"], signal.SIGKILL)
    ended = lab.lab("snapshot", "--as", snapshot, check=False)
    assert "error[lab-not-running]" in ended.stderr
    assert "garboard lab prune" in ended.stderr


def test_container_that_kubernetes_does_not_know_is_named_and_the_lab_runs_on(bare: Bare, snapshot: str) -> None:
    lab = bare()
    images = lab.exec("cp1", "ctr", "-n", "k8s.io", "images", "ls", "--quiet").stdout.split()
    (pause,) = [image for image in images if "/pause:" in image]
    lab.exec("cp1", "ctr", "-n", "k8s.io", "containers", "create", pause, "mine")
    ended = lab.lab("snapshot", "--as", snapshot, check=False)
    assert "error[foreign-containers]: node cp1 has containers that Kubernetes does not know" in ended.stderr
    assert snapshot not in snapshots()
    lab.exec("cp1", "ctr", "-n", "k8s.io", "containers", "delete", "mine")
    lab.lab("snapshot", "--as", snapshot)


def test_full_disk_leaves_no_snapshot_and_a_lab_that_runs(bare: Bare, snapshot: str) -> None:
    lab = bare()
    folder = snapshots_folder(lab_home())
    folder.mkdir(exist_ok=True)
    # Only this command sees the small disk in place of the snapshots' folder.
    take = f"mount -t tmpfs -o size=64k tmpfs {folder} && {GARBOARD} lab snapshot {lab.name} --as {snapshot}"
    command = ["unshare", "--mount", "sh", "-c", f"{take}; status=$?; ls -A {folder}; exit $status"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "error[snapshot-copy]: cannot copy node cp1" in ended.stderr
    assert "No space left on device" in ended.stderr
    assert ended.stdout.split() == [".lock"]
    assert lab.exec("cp1", "ctr", "version").returncode == 0
