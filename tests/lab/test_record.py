import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.lab.kubeadm import Needs
from garboard.lab.layout import LabFiles
from garboard.lab.record import ProcessId, ProcessTable, Record, Records, Stage
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

PROCESSES = ProcessTable(Machine())
LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=1, workers=0)


@pytest.fixture
def dead() -> ProcessId:
    """A process that has ended and was waited for."""
    with subprocess.Popen(["sleep", "60"]) as process:
        found = PROCESSES.identify(process.pid)
        process.kill()
    assert found is not None
    return found


def record(stage: Stage, creator: ProcessId, supervisor: ProcessId | None = None) -> Record:
    return Record(LAB, stage, creator, supervisor, port=1, timings={"nodes": 0.5})


def test_what_is_left_over_depends_on_who_should_be_alive(dead: ProcessId, tmp_path: Path) -> None:
    records = Records(Machine(), tmp_path)
    assert not records.is_left_over(record(Stage.READY, dead, PROCESSES.myself())), "whoever made it may have ended"
    assert records.is_left_over(record(Stage.READY, PROCESSES.myself(), dead))
    assert records.is_left_over(record(Stage.CREATING, dead, PROCESSES.myself())), "its maker died on the way"
    assert not records.is_left_over(record(Stage.CREATING, PROCESSES.myself(), None))
    assert records.is_left_over(record(Stage.REMOVING, dead, PROCESSES.myself()))


def test_a_lab_of_another_process_namespace_is_not_ours_to_judge(dead: ProcessId, tmp_path: Path) -> None:
    records = Records(Machine(), tmp_path)
    boot = dead.namespace.split("/")[0]
    elsewhere = replace(dead, namespace=f"{boot}/pid:[1]")
    assert not records.is_left_over(record(Stage.READY, elsewhere, elsewhere))
    before_the_last_boot = replace(dead, namespace="another-boot/pid:[1]")
    assert records.is_left_over(record(Stage.READY, before_the_last_boot, before_the_last_boot))


def test_records_survive_being_written(tmp_path: Path) -> None:
    records = Records(Machine(), tmp_path)
    files = LabFiles(tmp_path, "lab")
    files.folder.mkdir(parents=True)
    written = records.write(record(Stage.READY, PROCESSES.myself(), PROCESSES.myself()))
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
    with pytest.raises(BadUsage, match="there is no lab 'lab'"):
        records.require("lab")


def test_a_process_is_known_by_its_start_and_not_by_its_number_alone() -> None:
    assert PROCESSES.is_alive(PROCESSES.myself())
    assert not PROCESSES.is_alive(replace(PROCESSES.myself(), started=1))


def test_a_process_that_ended_is_gone_even_before_it_is_waited_for() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert PROCESSES.identify(process.pid) is None


def test_the_memory_of_a_process_is_known_while_it_runs() -> None:
    assert (PROCESSES.memory_bytes(PROCESSES.myself()) or 0) > 1024**2
    with subprocess.Popen(["sleep", "60"]) as process:
        found = PROCESSES.identify(process.pid)
        process.kill()
    assert found is not None
    assert PROCESSES.memory_bytes(found) is None
