"""Folders read without following links, and written as a whole or not at all."""

import os
import socket
import stat
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import read_tree, root, write_tree

MARKER = "record.json"
FILES = {MARKER: b"{}", "a/b/c.yaml": b"x\n", "a/d.yaml": b"y\n"}


def below(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def names_in(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_tree(tmp_path / "out", FILES, marker=MARKER)
    assert read_tree(tmp_path / "out") == FILES
    assert {stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "out").rglob("*")} == {0o600, 0o700}
    assert names_in(tmp_path) == ["out"]


def test_what_is_no_file_is_told_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        found = read_tree(folder)
    assert found["link"] == found["folder"] == "a symbolic link"
    assert found["pipe"] == "no regular file"
    assert all(isinstance(each, str) for each in found.values())


def test_folder_with_the_marker_is_replaced_and_leaves_nothing_behind(tmp_path: Path) -> None:
    write_tree(tmp_path / "out", FILES, marker=MARKER)
    write_tree(tmp_path / "out", {MARKER: b"{}", "new.yaml": b"z\n"}, marker=MARKER)
    assert below(tmp_path / "out") == {MARKER: b"{}", "new.yaml": b"z\n"}
    assert names_in(tmp_path) == ["out"]


def test_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_tree(tmp_path / "out", FILES, marker=MARKER)
    assert below(tmp_path / "out") == FILES


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_somebody_else_made_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    write_tree(other, FILES, marker=MARKER)
    if kind == "folder":
        (out / "sub").mkdir(parents=True)
        (out / "mine").write_text("mine")
    elif kind == "file":
        out.write_text("mine")
    else:
        out.symlink_to(other)
    with pytest.raises(GarboardError, match="not written by this command"):
        write_tree(out, {"x": b""}, marker=MARKER)
    assert names_in(tmp_path) == ["other", "out"]
    assert below(other) == FILES


def test_failure_leaves_the_former_folder(tmp_path: Path) -> None:
    write_tree(tmp_path / "out", FILES, marker=MARKER)
    with pytest.raises(GarboardError, match="cannot write"):
        write_tree(tmp_path / "out", {"a": b"", "a/b": b""}, marker=MARKER)  # a file cannot be a folder too
    assert below(tmp_path / "out") == FILES
    assert names_in(tmp_path) == ["out"]


def test_paths_are_those_below_the_root(tmp_path: Path) -> None:
    with root.inside(str(tmp_path)):
        write_tree("/out", FILES, marker=MARKER)
        write_tree("/out", FILES, marker=MARKER)
        assert read_tree("/out") == FILES
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["absent", "file"])
def test_folder_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(GarboardError, match=f"{name}"):
        read_tree(tmp_path / name)
