"""garboard in nodes: one copy for all, that of the files as they are now."""

import os
from pathlib import Path

import pytest

from garboard.host import Machine
from garboard.lab.layout import NodeFiles
from garboard.lab.program import GARBOARD_FOLDER, NodeGarboard


@pytest.fixture
def program(tmp_path: Path) -> NodeGarboard:
    package = tmp_path / "site/package"
    package.mkdir(parents=True)
    (package / "a.py").write_text("A = 1\n")
    (tmp_path / "site/alone.so").write_bytes(b"\0")
    return NodeGarboard(tmp_path / "store", "/usr/bin/python3", (package, tmp_path / "site/alone.so"))


def installed(program: NodeGarboard, folder: Path) -> Path:
    for name in ("usr/bin", "opt"):
        (folder / "upper" / name).mkdir(parents=True, exist_ok=True)
    program.install(Machine(), [NodeFiles(folder)])
    return folder / "upper" / GARBOARD_FOLDER


def test_nodes_share_the_files_of_one_copy(program: NodeGarboard, tmp_path: Path) -> None:
    one, two = (installed(program, tmp_path / name) for name in ("one", "two"))
    assert (one / "package/a.py").read_text() == "A = 1\n"
    assert (one / "package/a.py").samefile(two / "package/a.py")
    assert not (one / "package/a.py").samefile(program.packages[0] / "a.py")
    assert os.access(tmp_path / "one/upper/usr/bin/garboard", os.X_OK)


def test_changed_program_is_copied_anew_and_the_old_copy_goes(program: NodeGarboard, tmp_path: Path) -> None:
    one = installed(program, tmp_path / "one")
    (program.packages[0] / "a.py").write_text("A = 22\n")
    two = installed(program, tmp_path / "two")
    assert [(each / "package/a.py").read_text() for each in (one, two)] == ["A = 1\n", "A = 22\n"]
    assert len(list(program.store.glob("[!.]*"))) == 1


def test_copy_that_was_cut_short_is_not_used(program: NodeGarboard, tmp_path: Path) -> None:
    (program.store / ".new/package").mkdir(parents=True)
    (program.store / ".new/package/half.py").write_text("")
    found = installed(program, tmp_path / "one")
    assert sorted(path.name for path in (found / "package").iterdir()) == ["a.py"]
