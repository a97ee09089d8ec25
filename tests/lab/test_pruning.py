import subprocess
from pathlib import Path

import pytest

from garboard.cli.lab.wiring import labs as wired
from garboard.lab.labs import Labs
from garboard.lab.layout import images_folder
from garboard.lab.pruning import LeftoverKind, PruneChoice, kept, prune
from garboard.lab.record import ProcessId, Record, Stage
from garboard.lab.snapshots.store import Snapshots
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

OUT_OF_DATE = f"{DEFAULT_VERSION}-000000000000"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are, for all tests: nothing of the user's is ever pruned here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    return tmp_path / "cache/garboard"


@pytest.fixture
def labs(tmp_path: Path) -> Labs:
    """A home with a lab that died, one that runs, a snapshot that is none, and images whose programs have gone."""
    found = wired(home=tmp_path / "home")
    with subprocess.Popen(["sleep", "60"]) as process:
        dead = found.records.processes.identify(process.pid)
        process.kill()
    assert dead
    _record(found, "dead", dead)
    _record(found, "alive", found.records.processes.myself())
    (found.files("dead").folder / "db").write_bytes(b"x" * (1 << 20))
    Snapshots(found.machine, found.home).files("foreign").folder.mkdir(parents=True)
    (images_folder(found.home) / OUT_OF_DATE).mkdir(parents=True)
    (images_folder(found.home) / OUT_OF_DATE / "blob").write_bytes(b"x" * (2 << 20))
    return found


def _record(labs: Labs, name: str, supervisor: ProcessId) -> None:
    labs.files(name).folder.mkdir(parents=True)
    lab = plan_lab(name, DEFAULT_VERSION, Bootstrap.NONE, control_planes=1, workers=0)
    labs.records.write(Record(lab, Stage.READY, supervisor, supervisor))


def found_by(labs: Labs, **choice: bool) -> set[tuple[str, str]]:
    return {(each.kind, each.name) for each in prune(labs, PruneChoice(**choice))}


USELESS = {("lab", "dead"), ("snapshot", "foreign"), ("images", OUT_OF_DATE)}


def test_what_is_of_no_use_goes_and_what_runs_stays(labs: Labs) -> None:
    assert found_by(labs) == USELESS
    assert labs.records.names() == ["alive"]
    assert found_by(labs) == set()


def test_dry_run_tells_the_same_and_removes_nothing(labs: Labs) -> None:
    assert found_by(labs, dry_run=True) == USELESS
    assert found_by(labs, dry_run=True) == USELESS


def test_each_comes_with_what_it_frees(labs: Labs) -> None:
    sizes = {each.kind: each.size_bytes for each in prune(labs, PruneChoice(dry_run=True))}
    assert 1 << 20 <= sizes[LeftoverKind.LAB] < 2 << 20
    assert 2 << 20 <= sizes[LeftoverKind.IMAGES] < 3 << 20
    assert kept(labs)["images"] >= 2 << 20


def test_images_that_a_lab_is_being_made_of_stay(labs: Labs) -> None:
    with labs.using_images():
        assert found_by(labs, images=True) == USELESS - {("images", OUT_OF_DATE)}
    assert found_by(labs) == {("images", OUT_OF_DATE)}


def filled(folder: Path, size: int = 1 << 20) -> Path:
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * size)
    return folder


@pytest.fixture
def programs(cache: Path) -> Path:
    """A cache with a program, what killed builds and downloads left, and what tests keep."""
    for name in ("kubeadm/v1.37.1", ".build/gocache", ".build/k8s.io_kubernetes@v1.37.1", ".incoming/etcd-1-abc"):
        filled(cache / "binaries" / name)
    (cache / "binaries/.build/k8s.lock").touch()
    for name in ("oracles", "answers"):
        filled(cache / name)
    return cache


BUILDS = {("build", "gocache"), ("build", "k8s.io_kubernetes@v1.37.1"), ("build", "etcd-1-abc")}
PROGRAMS = {("programs", "kubeadm"), ("programs", "oracles"), ("programs", "answers")}


def test_what_killed_builds_left_goes_also_without_a_home(programs: Path, tmp_path: Path) -> None:
    labs = wired(home=tmp_path / "none")
    assert found_by(labs, dry_run=True) == BUILDS
    assert found_by(labs) == BUILDS
    assert found_by(labs) == set()
    assert (programs / "binaries/kubeadm/v1.37.1/file").exists()


def test_while_programs_are_made_neither_builds_nor_programs_go(programs: Path, tmp_path: Path) -> None:
    labs = wired(home=tmp_path / "none")
    with labs.binaries.in_use():
        assert found_by(labs, programs=True) == set()
    assert (programs / "binaries/.build/gocache/file").exists()


def test_programs_go_with_what_tests_keep_when_asked_for(programs: Path, tmp_path: Path) -> None:
    assert found_by(wired(home=tmp_path / "none"), programs=True) == BUILDS | PROGRAMS
    assert sorted(each.name for each in programs.iterdir()) == ["binaries"]


def test_programs_that_a_lab_has_links_to_stay(programs: Path, labs: Labs) -> None:
    assert found_by(labs, programs=True) == USELESS | BUILDS
    assert (programs / "binaries/kubeadm/v1.37.1/file").exists()


def test_programs_of_a_lab_that_is_being_made_stay(programs: Path, tmp_path: Path) -> None:
    labs = wired(home=tmp_path / "home")
    with labs.using_images():
        assert found_by(labs, programs=True) == BUILDS
    assert found_by(labs, programs=True) == PROGRAMS


def test_all_that_is_on_disk_is_told_by_its_kind(programs: Path, labs: Labs, tmp_path: Path) -> None:
    filled(labs.home / "failed/old")
    filled(tmp_path / "modules", 4 << 20)
    told = kept(labs)
    assert [*told] == [
        "labs", "snapshots", "images", "logs", "programs", "builds", "answers", "oracles", "Go modules"
    ]  # fmt: skip
    assert 1 << 20 <= told["programs"] < 2 << 20
    assert 3 << 20 <= told["builds"] < 4 << 20
    assert told["Go modules"] >= 4 << 20


def test_logs_go_when_asked_for(labs: Labs) -> None:
    filled(labs.home / "failed/old")
    assert found_by(labs, images=True) == USELESS
    assert found_by(labs, logs=True) == {("logs", "failed")}


def test_without_a_home_there_is_nothing(tmp_path: Path) -> None:
    assert prune(wired(home=tmp_path / "none"), PruneChoice()) == []
    assert not (tmp_path / "none").exists()
