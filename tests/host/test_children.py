"""Programs that are looked after: whether they run, how they ended, and being asked to end."""

import sys
from pathlib import Path

import pytest

from garboard.host.children import DetachedChild
from garboard.retry import Pauses, wait_until


def ended(child: DetachedChild) -> int:
    assert (
        wait_until(lambda: "it runs" if child.status() is None else None, timeout_s=60, pauses=Pauses.every(0.02))
        is None
    )
    status = child.status()
    assert status is not None
    return status


@pytest.mark.parametrize("status", [0, 3])
def test_status_is_that_of_the_program(status: int, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "child.log"
    child = DetachedChild.start([sys.executable, "-c", f"print('said'); raise SystemExit({status})"], log=log)
    assert ended(child) == status
    assert log.read_text() == "said\n"
    child.end()  # which is no failure


def test_program_that_is_asked_to_end_does_with_all_that_it_started(tmp_path: Path) -> None:
    code = "import subprocess, time; subprocess.Popen(['sleep', '600']); print('begun', flush=True); time.sleep(600)"
    log = tmp_path / "child.log"
    child = DetachedChild.start([sys.executable, "-c", code], log=log)
    begun = wait_until(
        lambda: None if "begun" in log.read_text() else "not begun", timeout_s=60, pauses=Pauses.every(0.02)
    )
    assert begun is None
    child.end()
    assert ended(child) == -15
    group = Path("/proc").glob("[0-9]*/stat")
    left = [each for each in group if _group(each) == child.pid]
    assert left == []


def _group(stat: Path) -> int:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[2])
