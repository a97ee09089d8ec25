import os
from pathlib import Path

import pytest

from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import ServiceManager

MACHINE = NodeMachine(None)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_new_file_gets_its_mode_and_every_missing_folder_that_of_folders(tmp_path: Path) -> None:
    target = tmp_path / "a/b/c.yaml"
    MACHINE.write(str(target), b"x", new_mode=0o600, folder_mode=0o700)
    assert MACHINE.read(str(target)) == b"x"
    assert (mode(target), mode(tmp_path / "a"), mode(tmp_path / "a/b")) == (0o600, 0o700, 0o700)


def test_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"before")
    target.chmod(0o640)
    MACHINE.write(str(target), b"after", new_mode=0o600, folder_mode=0o700)
    assert (target.read_bytes(), mode(target)) == (b"after", 0o640)


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert MACHINE.read(str(tmp_path / "nope")) is None
    assert MACHINE.owner(str(tmp_path / "nope")) is None
    assert not MACHINE.has_folder(str(tmp_path / "nope"))
    assert not MACHINE.has_service_manager()
    assert not MACHINE.is_active("kubelet")


def test_owner_and_mode_are_given_and_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(b"")
    uid, gid = os.getuid(), os.getgid()
    MACHINE.change_owner(str(tmp_path / "folder/file"), uid=uid, gid=gid, mode=0o640)
    MACHINE.change_owner(str(tmp_path / "folder"), uid=uid, gid=gid, mode=None)
    assert MACHINE.owner(str(tmp_path / "folder/file")) == (uid, gid, 0o640)


def test_path_that_no_file_system_takes_is_an_error_and_no_traceback() -> None:
    with pytest.raises(GarboardError, match="null byte"):
        MACHINE.read("/tmp/a\0b")
    with pytest.raises(GarboardError, match="null byte"):
        MACHINE.write("/tmp/a\0b", b"", new_mode=0o600, folder_mode=0o700)
    with pytest.raises(GarboardError, match="null byte"):
        MACHINE.make_folder("/tmp/a\0b", mode=0o700)
    assert not MACHINE.has_folder("/tmp/a\0b")


def test_file_in_the_way_of_a_folder_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(GarboardError, match="cannot make the folder") as caught:
        MACHINE.make_folder(str(tmp_path / "a"), mode=0o755)
    assert caught.value.hint
    with pytest.raises(GarboardError, match="cannot give"):
        MACHINE.change_owner(str(tmp_path / "nope"), uid=0, gid=0, mode=0o600)


def test_service_is_asked_about_once(tmp_path: Path) -> None:
    """What is planned is about one moment, however often a phase wants to know."""
    log = tmp_path / "log"
    asked = ("sh", "-c", f"echo asked >> {log}; echo active", "{}")
    machine = NodeMachine(ServiceManager("fake", (), (), asked, ("active",), (), (), ()))
    assert machine.is_active("kubelet")
    assert machine.is_active("kubelet")
    assert machine.is_active("other")
    assert log.read_text() == "asked\nasked\n"
