import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.cli.lab.wiring import labs as wired
from garboard.errors import GarboardError
from garboard.lab import creation
from garboard.lab.creation import FAILED_KEPT, claim, clear_failed, start_supervisor
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=1, workers=0)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces are for root")
@pytest.mark.parametrize(
    ("script", "within_s", "told"),
    [
        pytest.param("echo no such file; exit 1", 60.0, "no such file", id="it ends with a reason"),
        pytest.param("exit 1", 60.0, "it has ended silently", id="it ends without one"),
        pytest.param("exec sleep 3", 0.2, "it does not answer after 0 s", id="it takes too long"),
    ],
)
def test_supervisor_that_does_not_answer_is_told_with_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, within_s: float, told: str
) -> None:
    monkeypatch.setattr(creation, "SUPERVISOR_WITHIN_S", within_s)
    command: Sequence[str] = ("sh", "-c", script)
    labs = replace(wired(home=tmp_path), supervisor_command=command)
    record = claim(labs, LAB)
    with pytest.raises(GarboardError, match=f"supervisor did not start:\n{told}$"):
        start_supervisor(labs, record)
