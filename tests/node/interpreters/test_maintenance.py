"""Snapshots of etcd as files: whole or not there, resumed after a kill, and removed by undo."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from garboard.engine import (
    Executor,
    MoveLeader,
    Observers,
    Plan,
    RemoveFile,
    RemoveFolder,
    SaveSnapshot,
    Step,
    StepContext,
    plan_undo,
)
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.leases import NodeLeases
from garboard.node.interpreters.maintenance import MaintenanceInterpreter, outdated
from garboard.node.interpreters.members import EtcdMembership, EtcdPaths
from tests.support.engine.actions import MemoryFiles
from tests.support.engine.runs import begin, carried_out, cut
from tests.support.etcd.cluster import etcd_cluster
from tools.harness.certificates import Certificates

URL = "https://192.0.2.1:2379"


@dataclass
class FakeEtcd:
    parts: tuple[bytes, ...] = (b"one", b"two")
    failure: Exception | None = None
    led_by: list[str] = field(default_factory=list)

    def save_snapshot(self, client_url: str, write: Callable[[bytes], object]) -> str:
        assert client_url == URL
        for part in self.parts:
            write(part)
        if self.failure:
            raise self.failure
        return "digest"

    def move_leader(self, peer_url: str, timeout_s: float) -> None:
        self.led_by.append(f"not {peer_url} within {timeout_s:.0f} s")


def plan_of(path: Path) -> Plan:
    return Plan((Step(SaveSnapshot(path=str(path), client_url=URL), "before it changes"),))


def run_on(etcd: FakeEtcd) -> Executor:
    machine = NodeMachine(None)
    return Executor(interpreters_over(files=machine, maintenance=etcd), observers=Observers(files=machine))


def test_snapshot_is_a_file_for_root_alone_in_a_folder_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "new" / "etcd.db"
    run_on(FakeEtcd()).execute(plan_of(path))
    assert path.read_bytes() == b"onetwo"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "etcd.db"
    path.write_bytes(b"former")
    with pytest.raises(GarboardError, match="is there already") as caught:
        run_on(FakeEtcd()).execute(plan_of(path))
    assert caught.value.error_class == "exists"
    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(path, b"former")]


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        pytest.param(GarboardError("the connection broke"), "the connection broke", id="cut stream"),
        pytest.param(OSError(28, "No space left on device"), "cannot write .*: No space left", id="full disk"),
    ],
)
def test_failure_in_the_middle_leaves_nothing(tmp_path: Path, failure: Exception, message: str) -> None:
    with pytest.raises(GarboardError, match=message):
        run_on(FakeEtcd(failure=failure)).execute(plan_of(tmp_path / "etcd.db"))
    assert list(tmp_path.iterdir()) == []


def test_disk_that_is_full_when_the_data_are_flushed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("garboard.host.files.os.fsync", full)
    with pytest.raises(GarboardError, match="No space left"):
        run_on(FakeEtcd()).execute(plan_of(tmp_path / "etcd.db"))
    assert list(tmp_path.iterdir()) == []


def test_undo_removes_the_snapshot_what_a_kill_left_of_it_and_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "etcd.db"
    machine = NodeMachine(None)
    observers = Observers(files=machine)
    run = carried_out(plan_of(path), interpreters_over(files=machine, maintenance=FakeEtcd()), observers)
    path.with_name(".etcd.db.partial").write_bytes(b"on")
    back = plan_undo(plan_of(path), run.record, observers, run.kept)
    assert {type(step.action) for step in back.steps} == {RemoveFile, RemoveFolder}
    run_on(FakeEtcd()).execute(back)
    assert list(tmp_path.iterdir()) == []


def test_undo_leaves_a_file_that_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "etcd.db"
    path.write_bytes(b"former")
    observers = Observers(files=NodeMachine(None))
    store, journal = begin(plan_of(path), observers)
    journal.begin(0, plan_of(path).steps[0])
    assert plan_undo(plan_of(path), store.record, observers, store.kept).steps == ()


@pytest.mark.parametrize(("lines", "is_saved_again"), [(2, True), (3, False)], ids=["begun", "complete"])
def test_step_that_was_killed_is_repeated_unless_the_file_is_complete(
    tmp_path: Path, lines: int, is_saved_again: bool
) -> None:
    path = tmp_path / "etcd.db"
    machine = NodeMachine(None)
    observers = Observers(files=machine)
    run = carried_out(plan_of(path), interpreters_over(files=machine, maintenance=FakeEtcd()), observers)
    cut(run, lines)
    if is_saved_again:
        path.rename(tmp_path / ".etcd.db.partial")
    run_on(FakeEtcd((b"again",))).execute(plan_of(path), run.record.progress)
    assert path.read_bytes() == (b"again" if is_saved_again else b"onetwo")
    assert list(tmp_path.iterdir()) == [path]


def test_leader_is_moved_away() -> None:
    etcd = FakeEtcd()
    action = MoveLeader(peer_url="https://192.0.2.1:2380", timeout_s=10.0)
    run = StepContext({}, print, lambda _facts: None)
    MaintenanceInterpreter(etcd, MemoryFiles()).move_leader(action, run)
    assert etcd.led_by == ["not https://192.0.2.1:2380 within 10 s"]


def _unused() -> KubeClient:
    raise AssertionError("etcd is known")


@pytest.mark.real
def test_run_saves_a_snapshot_of_a_real_member_and_has_another_one_lead(
    binaries: Binaries, certificates: Certificates, tmp_path: Path
) -> None:
    program = binaries.locate_for("etcd", str(DEFAULT_VERSION))
    (tmp_path / "pki/etcd").mkdir(parents=True)
    of = certificates
    for name, source in (
        ("ca.crt", of.ca), ("healthcheck-client.crt", of.client), ("healthcheck-client.key", of.client_key)
    ):  # fmt: skip
        (tmp_path / "pki/etcd" / name).write_bytes(source.read_bytes())
    with etcd_cluster(program, certificates, tmp_path, "a", "b", "c") as cluster:
        client = cluster.client()
        urls = tuple(each.client_url for each in cluster.members.values())
        place = EtcdPaths(certificates_dir=str(tmp_path / "pki"), endpoints=urls)
        machine = NodeMachine(None)
        membership = EtcdMembership(machine, place, _unused, print, tuple, NodeLeases(_unused, print))
        leader = client.status(urls[0]).leader
        led = next(each for each in client.members() if each.id == leader)
        path = tmp_path / "snapshots/etcd.db"
        steps = (
            Step(SaveSnapshot(path=str(path), client_url=led.client_urls[0]), ""),
            Step(MoveLeader(peer_url=led.peer_urls[0], timeout_s=10.0), ""),
        )
        Executor(interpreters_over(files=machine, maintenance=membership)).execute(Plan(steps))
        assert path.stat().st_size % 512 == 32
        assert client.status(urls[0]).leader not in (0, leader)


@pytest.mark.parametrize(
    ("keeps", "removed"),
    [(0, []), (2, ["v1.35.1-20260101T000000Z.db", "v1.36.0-20260201T000000Z.db"]), (9, [])],
)
def test_newest_snapshots_stay_by_their_age(keeps: int, removed: list[str]) -> None:
    action = SaveSnapshot(path="/snapshots/v1.36.4-20261118T000000Z.db", client_url=URL, keeps=keeps)
    names = [
        "v1.36.4-20261118T000000Z.db",
        "v1.36.0-20260201T000000Z.db",
        "v1.9.0-20260301T000000Z.db",
        "v1.35.1-20260101T000000Z.db",
        ".v1.36.4-20261118T000000Z.db.abcdefgh",
        "notes.txt",
    ]
    assert outdated(action, names) == [f"/snapshots/{each}" for each in removed]
