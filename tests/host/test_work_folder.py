"""A work folder: private, without links on the way in or out, one command at a time."""

import os
import stat
import threading
from pathlib import Path

import pytest

from garboard.errors import BadDocument, GarboardError, NotReady
from garboard.host import SYMBOLIC_LINK
from garboard.host.piped import run_piped
from garboard.host.work_folder import WorkFolder


def test_folder_is_made_for_us_alone_and_files_in_it_too(tmp_path: Path) -> None:
    with WorkFolder.opened(tmp_path / "a/b") as folder:
        folder.write("c/d", b"x")
        folder.append("log", b"1")
        folder.append("log", b"2")
        assert folder.read("c/d") == b"x"
        assert folder.read("log") == b"12"
        assert folder.read("none") is None
        assert folder.read("none/below") is None
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a/b/c/d").stat().st_mode) == 0o600


def test_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    with WorkFolder.opened(tmp_path / "w") as folder:
        folder.write("f", b"x")
        (tmp_path / "w/f").chmod(0o640)
        folder.write("f", b"y")
    assert stat.S_IMODE((tmp_path / "w/f").stat().st_mode) == 0o640
    assert [each.name for each in (tmp_path / "w").iterdir()] == ["f"]


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\0b"])
def test_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with WorkFolder.opened(tmp_path / "w") as folder:
        with pytest.raises(GarboardError):
            folder.read(name)
        with pytest.raises(GarboardError):
            folder.write(name, b"")
    assert [each.name for each in tmp_path.iterdir()] == ["w"]


def test_links_are_neither_read_nor_written_nor_removed_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("precious")
    with WorkFolder.opened(tmp_path / "w") as folder:
        (tmp_path / "w/link").symlink_to(outside)
        (tmp_path / "w/file").symlink_to(outside / "f")
        for task in (
            lambda: folder.read("link/f"), lambda: folder.read("file"), lambda: folder.write("link/f", b""),
            lambda: folder.write("file", b""), lambda: folder.append("file", b"x"), lambda: folder.tree("link"),
            lambda: folder.remove("link/f"),
        ):  # fmt: skip
            with pytest.raises(GarboardError):
                task()
        folder.remove("file")
    assert (outside / "f").read_text() == "precious"
    assert not (tmp_path / "w/file").is_symlink()


def test_tree_tells_what_is_no_file_without_opening_it(tmp_path: Path) -> None:
    with WorkFolder.opened(tmp_path / "w") as folder:
        folder.write("t/a/b.yaml", b"x")
        (tmp_path / "w/t/link").symlink_to("/etc/passwd")
        (tmp_path / "w/t/folder").symlink_to("/etc")
        os.mkfifo(tmp_path / "w/t/pipe")
        assert dict(folder.tree("t")) == {
            "a/b.yaml": b"x", "folder": SYMBOLIC_LINK, "link": SYMBOLIC_LINK, "pipe": "no regular file",
        }  # fmt: skip


def test_tree_without_end_is_refused(tmp_path: Path) -> None:
    with WorkFolder.opened(tmp_path / "w") as folder:
        folder.make_folder("t")
        with (tmp_path / "w/t/huge").open("wb") as file:
            file.truncate(300 * 1024 * 1024)
        with pytest.raises(GarboardError, match="has more than 256 MiB"):
            folder.tree("t")
        with pytest.raises(BadDocument, match="more than"):
            folder.read("t/huge")


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_folder_of_others_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w").chmod(mode)
    with pytest.raises(NotReady) as refused, WorkFolder.opened(tmp_path / "w"):
        pass
    assert refused.value.error_class == "shared-folder"


def test_program_that_got_the_lock_holds_it_after_us(tmp_path: Path) -> None:
    with WorkFolder.opened(tmp_path / "w") as folder:
        with folder.locked("first") as lock:
            command = ("sh", "-c", "sleep 1 </dev/null >/dev/null 2>&1 &")
            assert run_piped(command, lambda *_: None, timeout_s=60, keep=(lock,)) == 0
        with pytest.raises(NotReady, match="at work in") as refused, folder.locked("second"):
            pass
        assert refused.value.error_class == "locked"


def test_one_thread_of_many_gets_the_lock(tmp_path: Path) -> None:
    got: list[int] = []
    refused: list[str] = []
    barrier = threading.Barrier(6)

    def try_it(number: int) -> None:
        with WorkFolder.opened(tmp_path / "w") as folder:
            barrier.wait()
            try:
                with folder.locked(f"number {number}"):
                    got.append(number)
                    barrier.wait(timeout=60)
            except NotReady as error:
                refused.append(error.message)
                barrier.wait(timeout=60)

    threads = [threading.Thread(target=try_it, args=(each,)) for each in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(got) == 1
    assert len(refused) == 5
