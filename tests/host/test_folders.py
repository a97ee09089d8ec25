import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from garboard.errors import BadDocument, GarboardError
from garboard.host.folders import (
    change_owner,
    changed_since,
    folder_entries,
    has_files,
    list_tree,
    names_in,
    paths_below,
)

pytestmark = pytest.mark.read_only_machine


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file, a folder, and links to a file and to a folder outside."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("x")
    folder = tmp_path / "tree"
    (folder / "b/c").mkdir(parents=True)
    (folder / "b/c/file").write_text("x")
    (folder / "a").write_text("x")
    (folder / "to-file").symlink_to(tmp_path / "outside/file")
    (folder / "to-folder").symlink_to(tmp_path / "outside")
    return folder


def test_links_count_as_files_and_are_not_descended_into(tree: Path) -> None:
    assert list_tree(tree) == ["a", "b/c/file", "to-file", "to-folder"]
    assert folder_entries(tree) == ("a", "b", "to-file", "to-folder")
    assert [Path(path).name for path in paths_below(tree)] == ["a", "b", "c", "file", "to-file", "to-folder"]


def test_what_is_no_folder_is_refused_or_has_no_names(tree: Path) -> None:
    with pytest.raises(BadDocument, match="it is a symbolic link"):
        list_tree(tree / "to-folder")
    with pytest.raises(BadDocument, match="it is not a directory"):
        list_tree(tree / "a")
    with pytest.raises(GarboardError, match="it is not there"):
        list_tree(tree / "missing")
    assert folder_entries(tree / "a") == folder_entries(tree / "missing") == paths_below(tree / "missing") == ()
    with pytest.raises(NotADirectoryError):
        names_in(tree / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away is for root")
def test_folder_is_given_away_with_its_links_and_not_with_what_they_lead_to(tree: Path) -> None:
    change_owner(tree, uid=12, gid=34, mode=None)
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in (tree, *tree.rglob("*"))} == {(12, 34)}
    assert {path.stat().st_uid for path in (tree.parent / "outside", tree.parent / "outside/file")} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away is for root")
def test_file_is_given_away_with_its_mode(tree: Path) -> None:
    change_owner(tree / "a", uid=12, gid=34, mode=0o640)
    found = (tree / "a").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12, 34, 0o640)
    with pytest.raises(GarboardError, match=r"cannot give .*missing to 1:2"):
        change_owner(tree / "missing", uid=1, gid=2, mode=0o600)


def test_only_what_is_surely_empty_has_no_files(tree: Path) -> None:
    assert has_files(tree)
    assert has_files(tree / "a")  # no folder, and who knows what it stands for
    assert not has_files(tree / "none")
    (tree / "b/c/file").unlink()
    assert not has_files(tree / "b")


def test_what_has_come_into_a_folder_is_found_although_its_time_is_an_old_one(tree: Path) -> None:
    moment = datetime.now(UTC) + timedelta(milliseconds=20)
    assert changed_since(tree, moment) == ()
    time.sleep(0.05)
    (tree / "b/restored").write_text("from a backup")
    os.utime(tree / "b/restored", (0, 0))
    (tree / "b/made").mkdir()
    (tree / "link").symlink_to("/")
    (tree / "a").rename(tree / "b/moved")
    assert changed_since(tree, moment) == ("b/moved", "b/restored", "link")
    assert changed_since(tree / "missing", moment) == ()
