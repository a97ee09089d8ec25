import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.errors import InvalidValue
from garboard.host import Machine
from garboard.lab.kubeadm import Needs
from garboard.lab.layout import LabFiles
from garboard.lab.record import ProcessId, Record, Records, Stage, myself
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=1, workers=0)


@pytest.fixture
def dead() -> ProcessId:
    """A process that has ended and was waited for."""
    with subprocess.Popen(["sleep", "60"]) as process:
        found = ProcessId.of(process.pid)
        process.kill()
    assert found is not None
    return found


def record(stage: Stage, creator: ProcessId, supervisor: ProcessId | None = None) -> Record:
    return Record(LAB, stage, creator, supervisor, port=1, timings={"nodes": 0.5})


def test_a_process_is_known_by_its_start_and_not_by_its_number_alone() -> None:
    assert myself().is_alive
    assert not replace(myself(), started=1).is_alive


def test_a_process_that_ended_is_gone_even_before_it_is_waited_for() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessId.of(process.pid) is None


def test_what_is_left_over_depends_on_who_should_be_alive(dead: ProcessId) -> None:
    assert not record(Stage.READY, dead, myself()).is_left_over, "whoever made it may have ended"
    assert record(Stage.READY, myself(), dead).is_left_over
    assert record(Stage.CREATING, dead, myself()).is_left_over, "its maker died on the way"
    assert not record(Stage.CREATING, myself(), None).is_left_over
    assert record(Stage.REMOVING, dead, myself()).is_left_over


def test_a_lab_of_another_process_namespace_is_not_ours_to_judge(dead: ProcessId) -> None:
    boot = dead.namespace.split("/")[0]
    elsewhere = replace(dead, namespace=f"{boot}/pid:[1]")
    assert not record(Stage.READY, elsewhere, elsewhere).is_left_over
    before_the_last_boot = replace(dead, namespace="another-boot/pid:[1]")
    assert record(Stage.READY, before_the_last_boot, before_the_last_boot).is_left_over


def test_records_survive_being_written(tmp_path: Path) -> None:
    records = Records(Machine(), tmp_path)
    files = LabFiles(tmp_path, "lab")
    files.folder.mkdir(parents=True)
    written = records.write(record(Stage.READY, myself(), myself()))
    assert records.read("lab") == written
    assert files.record.stat().st_mode & 0o777 == 0o600
    needs = Needs(is_cgroup_v1=True, proxy_mode="nftables")
    records.write_given(files, {"ClusterConfiguration": {"clusterName": "mine"}}, needs)
    assert records.read_given(files) == ({"ClusterConfiguration": {"clusterName": "mine"}}, needs)


def test_a_lab_that_died_before_its_record_was_written_is_still_listed(tmp_path: Path) -> None:
    (tmp_path / "labs/half").mkdir(parents=True)
    records = Records(Machine(), tmp_path)
    assert records.names() == ["half"]
    assert records.read("half") is None
    with pytest.raises(InvalidValue, match="there is no lab 'lab'"):
        records.require("lab")
