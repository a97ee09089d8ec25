import os
from pathlib import Path

from garboard.cli.lab.wiring import labs as wired
from garboard.lab.creation import FAILED_KEPT, clear_failed


def test_lab_that_failed_before_a_node_had_logs_is_cleared_all_the_same(tmp_path: Path) -> None:
    labs = wired(home=tmp_path)
    with_log, without = (labs.files("failed").node(name) for name in ("cp1", "cp2"))
    (with_log.var / "log").mkdir(parents=True)
    with_log.log("kubelet").write_text("said")
    without.folder.mkdir(parents=True)
    clear_failed(labs, "failed")
    assert labs.records.names() == []
    assert (tmp_path / "failed/failed/cp1/kubelet.log").read_text() == "said"


def test_logs_of_the_last_labs_that_failed_are_kept_and_no_more(tmp_path: Path) -> None:
    labs = wired(home=tmp_path)
    for number in range(FAILED_KEPT + 3):
        (labs.files(f"lab-{number}").folder / "nodes").mkdir(parents=True)
        clear_failed(labs, f"lab-{number}")
        os.utime(tmp_path / "failed" / f"lab-{number}", (number, number))
    assert {each.name for each in (tmp_path / "failed").iterdir()} == {
        f"lab-{number}" for number in range(3, FAILED_KEPT + 3)
    }
