"""What a path leads to is told, whether we may look at it or not."""

import socket
from pathlib import Path

from garboard.host.folders import path_kind


def test_kind_of_what_a_path_leads_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    paths = {name: str(tmp_path / name) for name in ("file", "link", "socket", "gone", "file/below")}
    found = {name: path_kind(path) for name, path in paths.items()}
    assert found == {"file": "file", "link": "file", "socket": "socket", "gone": "absent", "file/below": "absent"}
    assert (path_kind(str(tmp_path)), path_kind("/dev/null"), path_kind("a\0b")) == ("folder", "other", "absent")
