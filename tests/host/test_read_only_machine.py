"""What tests that remove things rely on: their machine is read-only but for their folder, and failures are told."""

import errno
import os
from pathlib import Path

import pytest

from tests.support.host.mounting import call_in_read_only_machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")


@pytest.mark.read_only_machine
def test_nothing_but_the_own_folder_can_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("x")
    for folder in (tmp_path.parent, Path("/etc"), Path(__file__).parent):
        with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
            (folder / "not-here").write_text("x")


def test_failure_is_told_and_a_success_is_silent(tmp_path: Path) -> None:
    assert "ZeroDivisionError" in call_in_read_only_machine(lambda: 1 / 0, tmp_path)
    assert call_in_read_only_machine(lambda: os._exit(3), tmp_path) == "it ended with 3"
    assert call_in_read_only_machine(lambda: (tmp_path / "x").write_text("x"), tmp_path) == ""
    assert (tmp_path / "x").exists()
