import errno
import fcntl
import multiprocessing
import os
import shutil
import stat
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.runs import RunFolders
from garboard.retry import Clock


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


def test_holder_of_the_lock_is_known_without_taking_it(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    assert folders.lock_holder() == ""
    with folders.lock("garboard init"):
        assert folders.lock_holder() == f"garboard init (process {os.getpid()})"
        assert folders.lock_holder() != ""
    assert folders.lock_holder() == ""
    with folders.lock("garboard join"):
        pass


def test_run_that_waits_for_the_lock_gives_up_in_time(tmp_path: Path) -> None:
    elapsed_s = [0.0]
    clock = Clock(now_s=lambda: elapsed_s[0], sleep=lambda seconds: elapsed_s.__setitem__(0, elapsed_s[0] + seconds))
    with (
        RunFolders(tmp_path).lock("first"),
        pytest.raises(GarboardError, match="first") as caught,
        RunFolders(tmp_path, clock).lock("second", wait_s=5),
    ):
        raise AssertionError("two at once")
    assert caught.value.error_class == "locked"
    assert elapsed_s[0] == pytest.approx(5)


def test_journal_that_is_being_written_is_read_wherever_its_folder_has_gone(tmp_path: Path) -> None:
    """The next step, and undo, need what was written, and not what its path leads to by now."""
    run = RunFolders(tmp_path / "state").new("1")
    run.append(b"first\n", is_lasting=True)
    (tmp_path / "state").rename(tmp_path / "moved")
    assert run.lines() == b"first\n"
    run.append(b"second\n", is_lasting=False)
    assert run.lines() == b"first\nsecond\n"


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_line_that_a_full_disk_cut_off_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, write = RunFolders(tmp_path).new("a"), os.write
    folder.append(b"one\n", is_lasting=True)

    def fills_up(file: int, data: bytes) -> int:
        if len(data) < 4:
            raise FULL
        return write(file, data[:3])

    with monkeypatch.context() as full:
        full.setattr(os, "write", fills_up)
        with pytest.raises(GarboardError, match="No space left on device") as caught:
            folder.append(b"two\n", is_lasting=True)
    assert caught.value.hint == "free some space"
    assert folder.lines() == b"one\n"
    folder.append(b"three\n", is_lasting=True)
    assert folder.lines() == b"one\nthree\n"


def test_lock_is_held_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: object) -> int:
        raise FULL

    monkeypatch.setattr(os, "pwrite", fails)
    folders = RunFolders(tmp_path)
    with folders.lock("garboard reset"):
        assert folders.lock_holder() == "another run"
    assert folders.lock_holder() == ""


def test_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, flock, locked = RunFolders(tmp_path / "state"), fcntl.flock, list[int]()

    def removed_before_it_is_locked(file: int, operation: int) -> None:
        if not locked:
            shutil.rmtree(folders.root)
        locked.append(file)
        flock(file, operation)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(fcntl, "flock", removed_before_it_is_locked)
        with folders.lock("first"), pytest.raises(GarboardError, match="first"), folders.lock("second"):
            raise AssertionError("two at once")
    assert len(locked) > 2


def test_folder_of_somebody_else_among_the_runs_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs/mine").mkdir(parents=True)
    (tmp_path / "runs/20261115T211457.509-90fd-join").mkdir()  # killed before it had a journal
    assert [each.name for each in RunFolders(tmp_path).all()] == ["20261115T211457.509-90fd-join"]
