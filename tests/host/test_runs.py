import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.runs import RunFolders


def test_lines_are_appended_behind_the_last_whole_one(tmp_path: Path) -> None:
    RunFolders(tmp_path).new("a").append(b"one\ntorn", is_lasting=True)
    (again,) = RunFolders(tmp_path).all()
    again.append(b"two\n", is_lasting=True)
    assert again.lines() == b"one\ntwo\n"


def test_contents_are_kept_for_root_alone_until_they_are_dropped(tmp_path: Path) -> None:
    folder = RunFolders(tmp_path).new("a")
    digest = folder.keep(b"secret")
    assert folder.keep(b"secret") == digest
    assert folder.kept(digest) == b"secret"
    folder.append(b"x\n", is_lasting=False)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"runs": 0o700, "a": 0o700, "kept": 0o700, digest: 0o600, "journal.jsonl": 0o600}
    folder.drop_kept()
    folder.drop_kept()
    assert sorted(path.name for path in folder.path.iterdir()) == ["journal.jsonl"]
    folder.remove()
    assert RunFolders(tmp_path).all() == ()


def _hold(
    root: Path, is_held: "multiprocessing.synchronize.Event", may_end: "multiprocessing.synchronize.Event"
) -> None:
    with RunFolders(root).lock("garboard init"):
        is_held.set()
        may_end.wait(30)


def test_second_run_is_told_who_holds_the_node(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    is_held, may_end = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, is_held, may_end))
    holder.start()
    assert is_held.wait(30)
    with (
        pytest.raises(GarboardError, match=rf"garboard init \(process {holder.pid}\)"),
        RunFolders(tmp_path).lock("me"),
    ):
        raise AssertionError("two at once")
    may_end.set()
    holder.join()
    with RunFolders(tmp_path).lock("me", wait_s=5):
        pass


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        with RunFolders(tmp_path).lock("killed"):
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    with RunFolders(tmp_path).lock("next"):
        pass
