"""garboard as one file."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from garboard.host import Machine
from garboard.lab.bundle import site_files, write_zipapp


def test_one_file_runs_without_anything_else(tmp_path: Path) -> None:
    file = tmp_path / "garboard.pyz"
    write_zipapp(file, Machine())
    python = Path(sys.executable).resolve()
    environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for _ in range(2):  # unpacked, then used again
        ended = subprocess.run(
            [python, "-I", file, "tunnel", "agent"], capture_output=True, text=True, env=environment, check=False
        )
        assert ended.returncode == 2
        assert "--ca-cert is needed" in ended.stderr
    [unpacked] = (tmp_path / "cache" / "garboard" / "zipapp").iterdir()
    assert (unpacked / "garboard" / "tunnel").is_dir()
    assert os.stat(unpacked.parent).st_mode & 0o077 == 0  # noqa: PTH116
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None


def test_everything_that_is_imported_is_in_it() -> None:
    names = set(site_files())
    wanted = {
        "garboard/cli/main.py",
        "click/__init__.py",
        "hpack/__init__.py",
        "msgspec/__init__.py",
        "yaml/__init__.py",
    }
    assert wanted <= names
    assert not [name for name in names if name.endswith(".pyc") or name.startswith("..")]
