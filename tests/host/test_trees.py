"""Folders and files that need not outlive a power cut."""

from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import trees


def test_a_linked_tree_shares_files_but_not_databases_and_keeps_links(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "snapshots/1/fs/usr/bin").mkdir(parents=True)
    (source / "snapshots/1/fs/bin").symlink_to("usr/bin")
    (source / "snapshots/1/fs/usr/bin/tool").write_text("program")
    (source / "metadata.db").write_text("rows")
    trees.link_tree(source, target, copied=".db")
    assert (target / "snapshots/1/fs/bin").readlink() == Path("usr/bin")
    assert (target / "snapshots/1/fs/usr/bin/tool").samefile(source / "snapshots/1/fs/usr/bin/tool")
    assert not (target / "metadata.db").samefile(source / "metadata.db")
    assert (target / "metadata.db").read_text() == "rows"


def test_a_copied_tree_keeps_links_or_follows_them(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("content")
    (source / "link").symlink_to("file")
    trees.copy_tree(source, tmp_path / "kept", follows_links=False)
    trees.copy_tree(source, tmp_path / "followed", follows_links=True)
    assert (tmp_path / "kept/link").is_symlink()
    assert not (tmp_path / "followed/link").is_symlink()
    assert (tmp_path / "followed/link").read_text() == "content"


def test_the_kernels_files_are_read_whatever_size_they_claim() -> None:
    assert int(trees.read_kernel_file(Path("/proc/sys/fs/inotify/max_user_instances"))) > 0
    assert "Name:" in trees.read_kernel_file(Path("/proc/self/status"))


def test_a_file_written_in_place_stays_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    inode = path.stat().st_ino
    trees.write_in_place(path, b"after", mode=0o750)
    assert path.read_text() == "after"
    assert (path.stat().st_ino, path.stat().st_mode & 0o777) == (inode, 0o750)


def test_a_copied_file_keeps_its_mode_unless_another_is_given(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    (tmp_path / "tool").chmod(0o755)
    trees.copy_file(tmp_path / "tool", tmp_path / "same")
    trees.copy_file(tmp_path / "tool", tmp_path / "other", mode=0o600)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("same", "other")] == [0o755, 0o600]


def test_a_group_is_removed_unless_it_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "group/busy").mkdir(parents=True)
    assert not trees.remove_group(tmp_path / "group")
    assert trees.remove_group(tmp_path / "group/busy")
    assert trees.remove_group(tmp_path / "group/busy"), "what is gone is gone"
    assert trees.remove_group(tmp_path / "group")


def test_what_fails_names_the_path_and_the_reason(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(GarboardError, match=f"cannot remove {gone}: No such file or directory"):
        trees.remove_tree(gone)
    trees.remove_tree(gone, ignore_errors=True)
    with pytest.raises(GarboardError, match=f"cannot rename {gone} to "):
        trees.rename(gone, tmp_path / "target")
    with pytest.raises(GarboardError, match="No such file"), trees.writing(gone / "file"):
        pass
