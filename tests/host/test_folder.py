from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host import HostFolder


def test_new_file_gets_its_mode_and_its_folders(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path / "pki")
    folder.write("etcd/ca.key", b"secret", new_mode=0o600)
    assert folder.read("etcd/ca.key") == b"secret"
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("pki", "pki/etcd", "pki/etcd/ca.key")]
    assert modes == [0o755, 0o755, 0o600]


def test_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o640)
    HostFolder(tmp_path).write("a", b"new", new_mode=0o600)
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "a").stat().st_mode & 0o777) == (b"new", 0o640)


def test_absent_file_reads_as_none(tmp_path: Path) -> None:
    assert HostFolder(tmp_path / "missing").read("a/b") is None


def test_a_name_that_is_taken_back_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"found")
    assert HostFolder(f"{tmp_path}/missing/..").read("a") == b"found"


def test_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pki").write_bytes(b"")
    with pytest.raises(GarboardError, match="cannot make the folder"):
        HostFolder(tmp_path / "pki").write("etcd/a", b"", new_mode=0o600)
