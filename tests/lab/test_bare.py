"""Bare nodes: what a program finds inside one, and that nodes and labs do not see each other."""

import json

import pytest

from garboard.lab.control import ask
from tests.support.lab.clusters import Bare
from tools.harness.lab import LabUnderTest, garboard

pytestmark = pytest.mark.lab


def test_a_node_looks_like_a_machine_of_its_own(bare: Bare) -> None:
    lab = bare()
    assert lab.exec("cp1", "hostname").stdout == "cp1\n"
    assert lab.exec("cp1", "cat", "/proc/1/comm").stdout == "pause\n"
    assert lab.exec("cp1", "ls", "-A", "/etc/kubernetes").stdout == ""
    assert lab.exec("cp1", "kubeadm", "version", "-o", "short").stdout == "v1.37.1\n"
    images = json.loads(lab.exec("cp1", "crictl", "images", "-o", "json").stdout)["images"]
    wanted = lab.exec("cp1", "kubeadm", "config", "images", "list", "--kubernetes-version", "v1.37.1").stdout.split()
    assert set(wanted) == {tag for image in images for tag in image["repoTags"]}


def test_what_a_node_writes_stays_its_own(bare: Bare) -> None:
    lab = bare(workers=1)
    lab.exec("cp1", "sh", "-c", "echo mine >/etc/garboard-probe; rm /etc/hostname; echo x >/usr/bin/garboard-probe")
    assert lab.exec("worker1", "cat", "/etc/garboard-probe", check=False).returncode != 0
    assert lab.exec("worker1", "cat", "/etc/hostname").stdout == "worker1\n"
    assert garboard("lab", "exec", "--name", lab.name, "cp1", "--", "cat", "/etc/garboard-probe").stdout == "mine\n"


def test_nodes_reach_each_other_by_name_and_nothing_else(bare: Bare) -> None:
    lab = bare(workers=1)
    lab.exec("worker1", "sh", "-c", "setsid busybox nc -ll -p 8080 -e echo hello >/dev/null 2>&1 &")
    lab.exec("cp1", "sh", "-c", "for i in $(seq 50); do busybox nc -w 1 worker1 8080 && exit; sleep 0.1; done; exit 1")
    outside = lab.exec("cp1", "busybox", "timeout", "3", "busybox", "nc", "192.0.2.1", "80", check=False)
    assert "Connection refused" in outside.stderr
    lab.exec("cp1", "busybox", "ping", "-c", "1", "-W", "5", "worker1")
    lab.exec("worker1", "busybox", "ping", "-c", "1", "-W", "5", "cp1")


def test_systemctl_drives_the_nodes_services(bare: Bare) -> None:
    lab = bare()
    assert lab.exec("cp1", "systemctl", "is-active", "containerd").stdout == "active\n"
    stopped = lab.exec("cp1", "systemctl", "is-active", "kubelet", check=False)
    assert (stopped.returncode, stopped.stdout) == (3, "inactive\n")
    assert lab.exec("cp1", "systemctl", "status", "crio", check=False).returncode == 4
    first = lab.exec("cp1", "pgrep", "-x", "containerd").stdout
    lab.exec("cp1", "systemctl", "restart", "containerd")
    second = lab.exec("cp1", "pgrep", "-x", "containerd").stdout
    assert first != second
    lab.exec("cp1", "systemctl", "stop", "containerd")
    assert lab.exec("cp1", "pgrep", "-x", "containerd", check=False).returncode == 1


def test_node_that_is_started_as_soon_as_it_has_stopped_keeps_what_it_needs(bare: Bare) -> None:
    lab = bare()
    control = lab.files.control
    start = {"do": "start-node", "lab": json.loads(lab.files.record.read_text())["lab"], "node": "cp1"}
    for _ in range(10):
        ask(control, {"do": "stop-node", "node": "cp1"})
        ask(control, start)
    lab.exec("cp1", "busybox", "ping", "-c", "1", "-W", "5", "10.89.0.1")


def test_a_service_that_dies_is_started_again(bare: Bare) -> None:
    lab = bare()
    lab.exec("cp1", "pkill", "-KILL", "-x", "containerd")
    lab.exec("cp1", "sh", "-c", "for i in $(seq 100); do crictl version && exit; sleep 0.1; done; exit 1")


def test_a_partition_cuts_two_nodes_off_and_heal_joins_them(bare: Bare) -> None:
    lab = bare(control_planes=2, workers=1)

    def reaches(one: str, other: str) -> bool:
        return lab.exec(one, "busybox", "ping", "-c", "1", "-W", "1", other, check=False).returncode == 0

    assert reaches("cp1", "cp2")
    lab.lab("partition", "cp1", "cp2")
    assert lab.status()["partitions"] == [["cp1", "cp2"]]
    assert not reaches("cp1", "cp2")
    assert not reaches("cp2", "cp1")
    assert reaches("cp1", "worker1")
    assert reaches("cp2", "worker1")
    lab.lab("heal", "cp2", "cp1")
    assert reaches("cp1", "cp2")
    assert lab.status()["partitions"] == []


def test_labs_run_side_by_side_with_the_same_addresses(bare: Bare) -> None:
    one, other = bare(), bare()
    for lab in (one, other):
        assert "10.89.0.11/24" in lab.exec("cp1", "ip", "-4", "addr", "show", "eth0").stdout
        lab.exec("cp1", "sh", "-c", f"echo {lab.name} >/var/lib/probe")
    assert one.exec("cp1", "cat", "/var/lib/probe").stdout == f"{one.name}\n"
    one.lab("down")
    assert other.exec("cp1", "cat", "/var/lib/probe").stdout == f"{other.name}\n"


def test_a_stopped_node_comes_back_with_its_disk(bare: Bare) -> None:
    lab = bare()
    lab.exec("cp1", "sh", "-c", "echo kept >/var/lib/probe; echo too >/etc/probe; echo gone >/run/probe")
    lab.lab("stop", "cp1")
    refused = lab.exec("cp1", "true", check=False)
    assert refused.returncode == 1
    assert "node cp1 is not running" in refused.stderr
    lab.lab("start", "cp1")
    assert lab.exec("cp1", "cat", "/var/lib/probe", "/etc/probe").stdout == "kept\ntoo\n"
    assert lab.exec("cp1", "cat", "/run/probe", check=False).returncode == 1


def test_a_name_in_use_is_refused_and_the_lab_under_it_not_touched(bare: Bare) -> None:
    lab = bare()
    second = lab.lab("up", "--by", "none", check=False)
    assert second.returncode == 2
    assert f"error[lab-exists]: lab {lab.name} exists already" in second.stderr
    lab.exec("cp1", "true")


def test_the_list_shows_what_runs(bare: Bare) -> None:
    lab = bare(workers=1)
    (row,) = [each for each in json.loads(garboard("lab", "list", "-o", "json").stdout) if each["name"] == lab.name]
    assert (row["state"], row["nodes"], row["by"]) == ("ready", 2, "none")
    assert row["memoryBytes"] > 10 * 1024**2


def test_an_unknown_lab_or_node_is_an_answer_and_no_traceback(bare: Bare) -> None:
    lab = bare()
    for ended in (garboard("lab", "status", "--name", "none", check=False), lab.exec("cp9", "true", check=False)):
        assert ended.returncode == 2
        assert "Traceback" not in ended.stderr
    no_cluster: LabUnderTest = lab
    assert no_cluster.lab("kubeconfig", check=False).returncode == 1
