"""The snapshots that tests share: which cluster has which name, and when one is made anew."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import grimp
import pytest

from garboard.host import Machine
from garboard.lab.layout import lab_home
from garboard.lab.snapshots.manifest import SnapshotManifest, take_inventory
from garboard.lab.snapshots.store import OWNER, Snapshots
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION
from tools.harness.lab import LabUnderTest
from tools.harness.snapshots import LAB_SOURCES, SOURCE, ClusterSnapshots, cluster_snapshots, digest_of, slot_of

# Those that ask for the digests of real programs.
with_programs = pytest.mark.lab
ONE = ("--control-planes", "1", "--workers", "0")


@with_programs
def test_the_same_arguments_have_one_digest_and_others_another() -> None:
    assert digest_of(ONE) == digest_of(ONE)
    others = [(), ("--workers", "0"), (*ONE, "--by", "garboard"), (*ONE, "--kubernetes-version", "v1.36.4")]
    assert len({digest_of(each) for each in (ONE, *others)}) == 1 + len(others)


@with_programs
def test_what_a_patch_folder_holds_is_part_of_the_digest(tmp_path: Path) -> None:
    (tmp_path / "etcd.yaml").write_text("metadata: {}")
    arguments = (*ONE, "--patches", str(tmp_path))
    before = digest_of(arguments)
    (tmp_path / "etcd.yaml").write_text("spec: {}")
    assert digest_of(arguments) != before


@with_programs
def test_a_line_of_the_lab_is_part_of_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/order.py").write_text("A = 1\n")
    (tmp_path / "pki.py").write_text("A = 1\n")
    monkeypatch.setattr("tools.harness.snapshots.SOURCE", tmp_path)
    by_garboard = (*ONE, "--by", "garboard")
    before, before_garboard = digest_of(ONE), digest_of(by_garboard)
    (tmp_path / "pki.py").write_text("A = 2\n")
    assert digest_of(ONE) == before, "kubeadm's clusters do not depend on it"
    assert digest_of(by_garboard) != before_garboard
    (tmp_path / "lab/order.py").write_text("A = 2\n")
    assert digest_of(ONE) != before


def test_all_that_the_lab_imports_is_part_of_the_digest() -> None:
    graph = grimp.build_graph("garboard", cache_dir=None)
    makers = {each for each in graph.modules if each.split(".")[1:2] in (["lab"], ["host"])}
    imported = makers.union(*(graph.find_upstream_modules(each) for each in makers))
    assert "garboard.net.downloads" in imported
    folders = {each.split(".")[1] for each in imported if "." in each}
    assert folders <= {place.removesuffix(".py") for place in LAB_SOURCES}
    assert [place for place in LAB_SOURCES if not (SOURCE / place).exists()] == []


def test_slots_are_names_of_snapshots() -> None:
    assert re.fullmatch(r"test-default-[0-9a-f]{8}", slot_of(()))
    assert re.fullmatch(r"test-control-planes-1-workers-0-[0-9a-f]{8}", slot_of(ONE))
    assert len(slot_of(("--config", "/a/very/long/path" * 9))) <= 41


@pytest.mark.parametrize("others", [
    pytest.param(("--workers", "1", "--control-planes", "1", "--workers", "0"), id="the same end"),
    pytest.param(("--control-planes", "1", "--workers=0"), id="other signs"),
    pytest.param((*ONE, "--kubernetes-version", "v1.36.4", "--by", "garboard"), id="the same beginning"),
])  # fmt: skip
def test_other_arguments_have_another_slot(others: tuple[str, ...]) -> None:
    assert slot_of(others) != slot_of(ONE)
    assert slot_of((*others, "--by", "kubeadm")) != slot_of(others)


def test_fresh_asks_for_snapshots_of_this_run() -> None:
    assert cluster_snapshots(fresh=False) == ClusterSnapshots(None)
    fresh = cluster_snapshots(fresh=True).fresh_since
    assert fresh is not None
    assert datetime.now(UTC) - fresh < timedelta(seconds=5)


class RecordedLab(LabUnderTest):
    """A lab of which only the commands are noted; a snapshot of it is an empty one."""

    said: ClassVar[list[tuple[str, ...]]] = []
    together = threading.Barrier(2)

    def lab(self, command: str, *arguments: str, check: bool = True) -> None:  # type: ignore[override]
        assert check
        self.said.append((command, *arguments))
        if command == "snapshot":
            store = Snapshots(Machine(), lab_home())
            incoming = store.reserve(arguments[1])
            lab = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=1, workers=0)
            inventory = take_inventory(incoming.folder, but=OWNER)
            made_at = datetime.now(UTC).isoformat(timespec="seconds")
            store.publish(incoming, SnapshotManifest(lab, made_at, True, (), inventory))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    monkeypatch.setenv("GARBOARD_LAB_HOME", str(tmp_path))
    monkeypatch.setattr("tools.harness.snapshots.digest_of", lambda _: "0123456789ab")
    monkeypatch.setattr(RecordedLab, "said", [])
    return RecordedLab.said


def test_of_two_that_want_the_same_cluster_at_once_one_makes_it(recorded: list[tuple[str, ...]]) -> None:
    def up(name: str) -> bool:
        RecordedLab.together.wait()
        return ClusterSnapshots().up(RecordedLab(name), *ONE)

    with ThreadPoolExecutor() as pool:
        assert sorted(pool.map(up, ["a", "b"])) == [False, True]
    name = f"{slot_of(ONE)}-0123456789ab"
    assert recorded == [("up", *ONE), ("snapshot", "--as", name), ("up", "--snapshot", name)]


def test_snapshot_of_another_digest_gives_way(recorded: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    store = Snapshots(Machine(), lab_home())
    ClusterSnapshots().up(RecordedLab("a"), *ONE)
    ClusterSnapshots().up(RecordedLab("a"))
    monkeypatch.setattr("tools.harness.snapshots.digest_of", lambda _: "another")
    ClusterSnapshots().up(RecordedLab("a"), *ONE)
    assert store.names() == [f"{slot_of(ONE)}-another", f"{slot_of(())}-0123456789ab"]
    assert recorded[-1][0] == "snapshot"


def test_damaged_or_earlier_snapshots_are_made_anew(recorded: list[tuple[str, ...]]) -> None:
    store = Snapshots(Machine(), lab_home())
    assert not ClusterSnapshots().up(RecordedLab("a"))
    assert ClusterSnapshots().up(RecordedLab("a"))
    (store.files(store.names()[0]).folder / "more").write_text("damage")
    assert not ClusterSnapshots().up(RecordedLab("a"))
    later = datetime.now(UTC) + timedelta(seconds=2)
    assert not ClusterSnapshots(later).up(RecordedLab("a"))
    assert ClusterSnapshots(later - timedelta(hours=1)).up(RecordedLab("a"))
    assert len(recorded) == 2 * 3 + 2
