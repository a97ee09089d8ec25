"""The last good set of a node: what committed runs have rendered, replaced as a whole."""

import os
import stat
from pathlib import Path

import pytest

from garboard.engine import Plan, RemoveFile, Step, WriteFile
from garboard.errors import NotReady
from garboard.model.paths import KUBELET_DIR, MANIFESTS_DIR
from garboard.node.last_good import LastGood
from tests.support.engine.actions import MemoryFiles

SCHEDULER, ETCD = f"{MANIFESTS_DIR}/kube-scheduler.yaml", f"{MANIFESTS_DIR}/etcd.yaml"
KUBELET = f"{KUBELET_DIR}/config.yaml"


def writing(*paths: str) -> Plan:
    return Plan(tuple(Step(WriteFile(path=path, content=b"", mode=0o600), "") for path in paths))


@pytest.fixture
def last_good(tmp_path: Path) -> LastGood:
    return LastGood(tmp_path / "last-good")


def contents(last_good: LastGood) -> dict[str, bytes]:
    found = last_good.read()
    return {each.path: last_good.content(each) for each in found.files} if found else {}


def test_node_without_a_run_has_no_set(last_good: LastGood) -> None:
    assert last_good.read() is None
    last_good.update("run-1", writing("/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/admin.conf"), MemoryFiles())
    assert last_good.read() is None, "what is issued is nothing that was rendered"


def test_set_is_what_all_runs_have_rendered_as_it_is_now(last_good: LastGood) -> None:
    machine = MemoryFiles({SCHEDULER: (0o600, b"s-1"), ETCD: (0o600, b"e-1"), KUBELET: (0o644, b"k-1")})
    last_good.update("run-1", writing(SCHEDULER, ETCD, KUBELET), machine)
    machine.files[SCHEDULER] = (0o600, b"s-2")
    del machine.files[ETCD]
    last_good.update("run-2", Plan((*writing(SCHEDULER).steps, Step(RemoveFile(path=ETCD), ""))), machine)
    assert contents(last_good) == {SCHEDULER: b"s-2", KUBELET: b"k-1"}
    found = last_good.read()
    assert found is not None
    assert found.run == "run-2"
    assert {each.path: each.mode for each in found.files} == {SCHEDULER: 0o600, KUBELET: 0o644}


def test_set_has_also_what_another_program_has_rendered(last_good: LastGood) -> None:
    other = f"{MANIFESTS_DIR}/not-ours.yaml"
    machine = MemoryFiles({path: (0o600, path.encode()) for path in (SCHEDULER, ETCD, KUBELET, other)})
    last_good.update("run-1", writing(SCHEDULER), machine)
    assert set(contents(last_good)) == {SCHEDULER, ETCD, KUBELET}


def test_only_root_may_read_it_and_nothing_of_a_former_set_stays(last_good: LastGood) -> None:
    machine = MemoryFiles({SCHEDULER: (0o644, b"s-1")})
    for number in range(3):
        machine.files[SCHEDULER] = (0o644, b"s-%d" % number)
        last_good.update(f"run-{number}", writing(SCHEDULER), machine)
    files = list(last_good.folder.iterdir())
    assert len(files) == 2
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert stat.S_IMODE(last_good.folder.stat().st_mode) == 0o700
    last_good.remove()
    assert not last_good.folder.exists()


class Killed(BaseException):
    """Ends the process where it is."""


@pytest.mark.parametrize("call", range(40))
def test_kill_leaves_the_former_set_or_the_new_one(
    last_good: LastGood, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before each of its renames, removals and syncs in turn."""
    former, after = {SCHEDULER: b"s-1", ETCD: b"same"}, {SCHEDULER: b"s-2", ETCD: b"same", KUBELET: b"k-2"}

    def update(run: str, files: dict[str, bytes]) -> None:
        machine = MemoryFiles({path: (0o600, data) for path, data in files.items()})
        last_good.update(run, writing(*files), machine)

    update("run-1", former)
    left = call

    def dying(name: str) -> None:
        real = getattr(os, name)

        def patched(*arguments: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return real(*arguments, **named)

        monkeypatch.setattr(os, name, patched)

    with monkeypatch.context():
        for name in ("rename", "replace", "unlink", "fsync", "fdatasync"):
            dying(name)
        try:
            update("run-2", after)
        except Killed:
            was_killed = True
        else:
            was_killed = False
    monkeypatch.undo()
    assert contents(last_good) in (former, after)
    if not was_killed:
        assert contents(last_good) == after
    update("run-2", after)
    assert contents(last_good) == after
    assert len(list(last_good.folder.iterdir())) == 4


def test_damaged_set_is_named_and_made_anew(last_good: LastGood) -> None:
    machine = MemoryFiles({SCHEDULER: (0o600, b"s-1")})
    last_good.update("run-1", writing(SCHEDULER), machine)
    found = last_good.read()
    assert found is not None
    (last_good.folder / found.files[0].sha256).write_bytes(b"other")
    with pytest.raises(NotReady, match="does not hold what was kept there"):
        last_good.content(found.files[0])
    (last_good.folder / "index.json").write_text("{")
    with pytest.raises(NotReady):
        last_good.read()
    machine.files[SCHEDULER] = (0o600, b"s-2")
    last_good.update("run-2", writing(SCHEDULER), machine)
    assert contents(last_good) == {SCHEDULER: b"s-2"}
