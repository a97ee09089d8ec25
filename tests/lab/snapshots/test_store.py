import json
import subprocess
from pathlib import Path

import pytest

from garboard.errors import BadUsage, GarboardError, InvalidValue
from garboard.host import Machine
from garboard.lab.record import ProcessTable
from garboard.lab.snapshots.manifest import ProgramFile, SnapshotManifest, take_inventory
from garboard.lab.snapshots.store import OWNER, Snapshots, summarize_snapshots
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=1, workers=0)


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(Machine(), tmp_path)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kubelet"
    path.write_text("program")
    return path


def make(snapshots: Snapshots, name: str, program: Path) -> None:
    incoming = snapshots.reserve(name)
    incoming.node("cp1").folder.mkdir(parents=True)
    (incoming.node("cp1").folder / "db").write_text("data")
    described = ProgramFile.at(program)
    assert described
    inventory = take_inventory(incoming.folder, but=OWNER)
    snapshots.publish(incoming, SnapshotManifest(LAB, "2026-11-16", True, (described,), inventory))


def test_snapshot_that_was_made_can_be_used_and_removed(snapshots: Snapshots, program: Path) -> None:
    make(snapshots, "mine", program)
    assert snapshots.names() == ["mine"]
    assert snapshots.require("mine").lab == LAB
    snapshots.remove("mine")
    assert snapshots.names() == []
    with pytest.raises(InvalidValue, match=r"there is no snapshot 'mine' \(snapshots here: none\)"):
        snapshots.require("mine")


@pytest.mark.parametrize("name", ["", ".", "..", "../labs/lab", "a/b", ".hidden", "-a", "A", "a" * 65, "a\n"])
def test_what_is_no_name_reaches_no_folder(name: str, snapshots: Snapshots) -> None:
    for use in (snapshots.reserve, snapshots.require, snapshots.remove):
        with pytest.raises(InvalidValue, match="is no name for a snapshot"):
            use(name)
    assert not snapshots.folder.exists()


def test_name_in_use_is_refused(snapshots: Snapshots, program: Path) -> None:
    make(snapshots, "mine", program)
    with pytest.raises(BadUsage, match="exists already") as caught:
        snapshots.reserve("mine")
    assert caught.value.error_class == "snapshot-exists"


def test_only_one_process_at_a_time_makes_a_snapshot(snapshots: Snapshots) -> None:
    incoming = snapshots.reserve("mine")
    with pytest.raises(GarboardError, match="is being made by another process"):
        snapshots.reserve("mine")
    assert snapshots.left_over() == []
    snapshots.abandon(incoming)
    snapshots.reserve("mine")


def test_what_a_dead_process_was_making_is_left_over_and_gives_way(snapshots: Snapshots) -> None:
    incoming = snapshots.reserve("mine")
    with subprocess.Popen(["sleep", "60"]) as process:
        dead = ProcessTable(Machine()).identify(process.pid)
        process.kill()
    assert dead
    (incoming.folder / OWNER).write_text(json.dumps(dead.as_json()))
    (incoming.folder / "half").write_text("half")
    assert snapshots.left_over() == [incoming]
    assert snapshots.names() == []
    assert not (snapshots.reserve("mine").folder / "half").exists()


def test_nothing_but_whole_snapshots_is_used(snapshots: Snapshots, program: Path) -> None:
    make(snapshots, "damaged", program)
    (snapshots.files("damaged").node("cp1").folder / "db").write_text("DATA")
    snapshots.files("foreign").folder.mkdir()
    make(snapshots, "nonsense", program)
    snapshots.files("nonsense").manifest.write_text("{")
    for name, why in {
        "damaged": "it is damaged",
        "foreign": "it has no snapshot.json",
        "nonsense": "is no JSON",
    }.items():
        with pytest.raises(GarboardError, match=why) as caught:
            snapshots.require(name)
        assert str(snapshots.files(name).folder) in caught.value.message
        assert caught.value.hint
        assert f"--remove {name}" in caught.value.hint
        assert caught.value.error_class == "snapshot-unusable"


def test_snapshot_made_with_other_programs_is_refused_and_listed(snapshots: Snapshots, program: Path) -> None:
    make(snapshots, "mine", program)
    program.write_text("another program")
    with pytest.raises(GarboardError, match=f"made with other programs: {program} has changed since or is gone"):
        snapshots.require("mine")
    (summary,) = summarize_snapshots(snapshots)
    assert (summary.name, summary.state, summary.nodes, summary.version) == (
        "mine",
        "unusable",
        1,
        str(DEFAULT_VERSION),
    )
    assert summary.size_bytes > 0
