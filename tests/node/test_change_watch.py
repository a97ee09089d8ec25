"""The watcher of a node that is armed, over real journals: what becomes of the run, the record and the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from garboard.change.confirming import Arming, arming_text
from garboard.engine import MakeFolder, Plan, Step, WriteFile
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.node import change_arming, change_watch
from garboard.node.change_cluster import StoredTarget
from garboard.node.change_confirm import confirm_change
from garboard.node.change_watch import ChangeWatcher, WatchEdges
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode
from garboard.phases.revision import ChangeState, ChangeTarget, NodeReport, moment
from tests.support.node.reporters import MemoryReporter

NOW = datetime(2031, 5, 4, 3, 0, tzinfo=UTC)
ARMED_UNTIL = NOW + timedelta(hours=1)
TARGET = ChangeTarget(
    revision=3, digest="d", state="rolling", parent=2, canary="cp1", nodes=["cp1", "cp2"],
    confirm_within_seconds=300, armed_until=moment(ARMED_UNTIL), revert_slot_seconds=120,
)  # fmt: skip


@dataclass
class FakeChangeCluster:
    """The record in memory; `is_away` answers nobody, and `edited` are ConfigMaps that somebody has written since."""

    record: ChangeTarget | None = TARGET
    said: dict[str, NodeReport] = field(default_factory=dict)
    is_away: bool = False
    edited: tuple[str, ...] = ()
    restored: list[int] = field(default_factory=list)
    version: int = 1

    def _answer(self) -> None:
        if self.is_away:
            raise ClusterUnreachable("the API server does not answer")

    def target(self) -> StoredTarget | None:
        self._answer()
        return StoredTarget(self.record, str(self.version)) if self.record else None

    def replace(self, stored: StoredTarget, moved: ChangeTarget) -> bool:
        self._answer()
        if stored.version != str(self.version):
            return False
        self.record, self.version = moved, self.version + 1
        return True

    def change(self, **fields: Any) -> None:
        assert self.record is not None
        self.record, self.version = msgspec.structs.replace(self.record, **fields), self.version + 1

    def reports(self, _target: ChangeTarget) -> Mapping[str, NodeReport]:
        self._answer()
        return self.said

    def control_planes_left(self, _target: ChangeTarget) -> tuple[str, ...]:
        return tuple(name for name, report in self.said.items() if report.result in ("done", "confirmed"))

    def says(self, **results: Any) -> None:
        for node, result in results.items():
            self.said[node] = NodeReport(revision=3, digest="d", result=result, at=moment(NOW))

    def restore_documents(self, target: ChangeTarget) -> tuple[str, ...]:
        self._answer()
        self.restored.append(target.parent)
        return self.edited


class Members:
    def __init__(self) -> None:
        self.down: set[str] = set()

    def is_serving(self, client_url: str) -> bool:
        return client_url not in self.down


class Watched:
    """A node with a run that waits to be confirmed; `at` says what happens at a moment, in seconds after `NOW`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file, self.armed = folder / "config.yaml", folder / "armed.json"
        self.file.write_text("former")
        self.now_s, self.at, self.reporter = 0.0, dict[float, Any](), MemoryReporter()
        self.cluster, self.members = FakeChangeCluster(), Members()
        self.node = LocalNode(NodeMachine(None), self.reporter)
        self.transactions = Transactions(self.node.runs, self.reporter)
        self.reports: list[str] = []
        monkeypatch.setattr(change_arming, "ARMED", str(self.armed))
        monkeypatch.setattr(change_watch, "disarm", self._disarm)

    def _disarm(self, _node: LocalNode, arming: Arming, report: NodeReport | None, _why: str) -> None:
        self.cluster._answer()
        if report:
            self.reports.append(report.result)
            self.cluster.said[arming.node] = report
        self.armed.unlink()

    def arm(self, node: str = "cp1", **fields: Any) -> None:
        members = {each: f"https://{each}:2379" for each in TARGET.nodes}
        arming = Arming(
            revision=3, digest="d", node=node, nodes=TARGET.nodes, until=ARMED_UNTIL, members=members, **fields
        )
        self.armed.write_bytes(arming_text(arming))

    def begin(self, *steps: Step) -> None:
        plan = Plan(
            (Step(WriteFile(path=str(self.file), content=b"new", mode=0o600), "", "files"), *steps)
        )  # fmt: skip
        self.transactions.carry_out(plan, RunSettings(), RunOptions(command="change node", confirm_by=ARMED_UNTIL))

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.now_s)

    def sleep(self, seconds: float) -> None:
        assert self.now_s < 24 * 3600, self.reporter.lines[-5:]
        self.now_s += seconds
        for moment_s in sorted(each for each in self.at if each <= self.now_s):
            self.at.pop(moment_s)()

    def watch(self, *, is_administrator: bool = True) -> int:
        cluster: Any = self.cluster
        edges = WatchEdges(
            cluster=cluster, members=self.members, is_administrator=is_administrator, now=self.now, sleep=self.sleep
        )
        return ChangeWatcher(self.node, edges).watch()

    @property
    def state(self) -> tuple[str, str]:
        (run,) = (each for each in self.node.runs.all() if not each.header.undoes)
        return run.record.state, self.file.read_text()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def both_done(watched: Watched) -> None:
    watched.cluster.says(cp1="done", cp2="done")


def test_confirmed_change_is_kept_and_said_so(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    both_done(watched)
    watched.at[100.0] = lambda: watched.cluster.change(confirmed=True)
    assert watched.watch() == 0
    assert (watched.state, watched.reports) == (("confirmed", "new"), ["confirmed"])
    assert watched.now_s <= 115.0, "it looks every 15 s"


def test_deadline_begins_when_all_nodes_are_done_and_the_change_is_taken_back_after_it(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    watched.cluster.says(cp1="done")
    watched.at[200.0] = lambda: both_done(watched)
    watched.at[505.0] = lambda: watched.cluster.says(cp2="reverted")
    assert watched.watch() == 13
    assert watched.state == ("reverted", "former")
    assert 500.0 <= watched.now_s <= 530.0
    target = watched.cluster.record
    assert target is not None
    assert (target.state, watched.reports, watched.cluster.restored) == ("reverted", ["reverted"], [2])


def test_node_whose_others_are_not_done_is_taken_back_when_its_arming_ends(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    watched.cluster.says(cp1="done", cp2="done")
    watched.cluster.change(state="canary")
    assert watched.watch() == 13
    assert watched.state == ("reverted", "former")
    assert 3600.0 <= watched.now_s <= 3615.0
    assert watched.cluster.record is not None
    assert watched.cluster.record.state == "reverting", "cp2 has not said yet that it is back"


def test_change_is_taken_back_without_an_api_server_and_told_when_there_is_one_again(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    watched.cluster.is_away = True
    watched.at[9000.0] = lambda: setattr(watched.cluster, "is_away", False)
    states: list[tuple[str, str]] = []
    watched.at[3700.0] = lambda: states.append(watched.state)
    assert watched.watch() == 13
    assert states == [("reverted", "former")]
    assert watched.reports == ["reverted"]
    assert watched.cluster.restored == [2], "whoever reaches the API again puts the maps back"


def test_deadline_that_was_seen_counts_when_the_api_server_has_gone(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    watched.cluster.change(state="committed", confirm_by=moment(NOW + timedelta(seconds=300)))
    watched.at[60.0] = lambda: setattr(watched.cluster, "is_away", True)
    states: list[tuple[str, str]] = []
    watched.at[330.0] = lambda: states.append(watched.state)
    watched.at[400.0] = lambda: setattr(watched.cluster, "is_away", False)
    assert watched.watch() == 13
    assert states == [("reverted", "former")]


def test_second_node_goes_a_slot_later_and_waits_for_the_member_of_the_first(watched: Watched) -> None:
    watched.arm("cp2", restarts_members=True)
    watched.begin()
    watched.cluster.is_away = True
    watched.members.down = {"https://cp1:2379"}
    watched.at[3600.0 + 120.0 + 10.0] = watched.members.down.clear
    states: list[tuple[str, str]] = []
    watched.at[3600.0 + 120.0 + 8.0] = lambda: states.append(watched.state)

    def answer_again() -> None:
        states.append(watched.state)
        watched.cluster.is_away = False

    watched.at[3600.0 + 120.0 + 30.0] = answer_again
    watched.watch()
    assert states == [("unconfirmed", "new"), ("reverted", "former")]


def test_worker_reads_the_record_and_leaves_it_alone(watched: Watched) -> None:
    watched.arm("cp2")
    watched.begin()
    both_done(watched)
    watched.cluster.change(confirm_by=moment(NOW + timedelta(seconds=300)))
    assert watched.cluster.record is not None
    former = watched.cluster.version
    watched.at[200.0] = lambda: watched.cluster.change(state="reverting")
    assert watched.watch(is_administrator=False) == 13
    assert (watched.state, watched.reports) == (("reverted", "former"), ["reverted"])
    assert (watched.cluster.version, watched.cluster.restored) == (former + 1, [])
    assert watched.now_s >= 300.0 + 120.0


def test_file_that_somebody_has_edited_stays_and_needs_help(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    watched.file.write_text("mine")
    assert watched.watch() == 14
    assert (watched.state, watched.reports) == (("reverted", "mine"), ["failed"])
    assert any(str(watched.file) in line for line in watched.reporter.lines)


def test_config_map_that_somebody_has_edited_needs_help_too(watched: Watched) -> None:
    watched.arm()
    watched.begin()
    watched.cluster.edited = ("kubeadm-config",)
    assert watched.watch() == 14
    assert (watched.state, watched.reports) == (("reverted", "former"), ["failed"])


def test_run_that_was_killed_is_taken_back_when_its_arming_ends(watched: Watched) -> None:
    watched.arm()
    with pytest.raises(GarboardError):
        watched.begin(Step(MakeFolder(path="/proc/none", mode=0o700), "it fails", "files"))
    assert watched.state == ("open", "new")
    assert watched.watch() == 13
    assert watched.state == ("undone", "former")
    assert watched.now_s >= 3600.0


def test_run_that_its_own_command_has_taken_back_is_disarmed_without_a_word(watched: Watched) -> None:
    watched.arm()
    with pytest.raises(GarboardError):
        watched.begin(Step(MakeFolder(path="/proc/none", mode=0o700), "it fails", "files"))
    watched.transactions.undo(RunOptions(command="undo"))
    assert watched.watch() == 0
    assert (watched.reports, watched.cluster.restored, watched.now_s) == ([], [], 0.0)
    assert not watched.armed.exists()


def test_node_that_was_armed_and_never_began_is_disarmed_in_the_end(watched: Watched) -> None:
    watched.arm()
    assert watched.watch() == 0
    assert (watched.now_s >= 3600.0, watched.reports) == (True, [])


def test_change_that_is_confirmed_in_the_last_moment_is_kept(watched: Watched) -> None:
    """The watcher has read that nobody confirmed it; somebody does, before the watcher says that it takes it back."""
    watched.arm()
    watched.begin()
    both_done(watched)
    replaced = watched.cluster.replace

    def late(stored: StoredTarget, moved: ChangeTarget) -> bool:
        if moved.state == "reverting":
            watched.cluster.change(confirmed=True)
        return replaced(stored, moved)

    watched.cluster.replace = late  # type: ignore[method-assign]
    assert watched.watch() == 0
    assert watched.state == ("confirmed", "new")


def test_node_that_is_not_armed_has_nothing_to_watch(watched: Watched) -> None:
    assert watched.watch() == 0


# The other end: the command that confirms.


def confirming(cluster: FakeChangeCluster, at: dict[float, Any] | None = None, wait_s: float = 60.0) -> Any:
    passed_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal passed_s
        passed_s += seconds
        for moment_s in [each for each in at or {} if each <= passed_s]:
            (at or {}).pop(moment_s)()

    faked: Any = cluster
    return confirm_change(faked, lambda _line: None, wait_s=wait_s, now=lambda: NOW, sleep=sleep)


def test_confirm_waits_until_every_node_has_disarmed() -> None:
    cluster = FakeChangeCluster()
    cluster.says(cp1="done", cp2="done")
    found = confirming(
        cluster, {10.0: lambda: cluster.says(cp1="confirmed"), 30.0: lambda: cluster.says(cp2="confirmed")}
    )
    assert (found.is_settled, found.armed) == (True, {})
    assert cluster.record is not None
    assert (cluster.record.confirmed, cluster.record.state) == (True, "committed")


def test_confirm_names_the_nodes_that_have_not_disarmed() -> None:
    cluster = FakeChangeCluster()
    cluster.says(cp1="done", cp2="done")
    found = confirming(cluster, {10.0: lambda: cluster.says(cp1="confirmed")})
    assert (found.is_settled, found.is_confirmed, found.armed) == (False, True, {"cp2": "done"})
    again = confirming(cluster, {1.0: lambda: cluster.says(cp2="confirmed")})
    assert again.is_settled


def test_change_that_is_not_done_everywhere_is_not_confirmed() -> None:
    cluster = FakeChangeCluster()
    cluster.says(cp1="done")
    found = confirming(cluster)
    assert (found.is_confirmed, set(found.armed)) == (False, {"cp2"})
    assert cluster.record == TARGET


@pytest.mark.parametrize("state", ["reverting", "reverted"])
def test_change_that_is_taken_back_is_not_confirmed_any_more(state: ChangeState) -> None:
    cluster = FakeChangeCluster(record=msgspec.structs.replace(TARGET, state=state))
    with pytest.raises(GarboardError, match=f"revision 3 is {state}") as caught:
        confirming(cluster)
    assert caught.value.exit_code == 13


@pytest.mark.parametrize("record", [None, msgspec.structs.replace(TARGET, confirm_within_seconds=0)])
def test_nothing_waits_to_be_confirmed(record: ChangeTarget | None) -> None:
    with pytest.raises(GarboardError, match="no change waits"):
        confirming(FakeChangeCluster(record=record))
