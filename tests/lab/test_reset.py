"""Nodes that are nodes no more: beside kubeadm's reset, with a majority of etcd kept, and killed at every step."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.lab.clusters import await_api, left_on
from tools.harness.killing import KillPoint
from tools.harness.lab import RUN, LabUnderTest
from tools.harness.snapshots import ClusterSnapshots

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
_ETCD = "/etc/kubernetes/pki/etcd"
_ETCDCTL = ("etcdctl", f"--cacert={_ETCD}/ca.crt", f"--cert={_ETCD}/server.crt", f"--key={_ETCD}/server.key")
# What a person has on a node besides: none of it is ours to remove.
_OWN = """
mkdir -p /root/.kube /etc/kubernetes/tmp /srv/mine
echo x | tee /root/.kube/config /etc/kubernetes/tmp/backup /srv/mine/data > /dev/null
ln -sfn /srv/mine /var/lib/kubelet/way-out
mkdir -p /var/lib/kubelet/mounted && mount --bind /srv/mine /var/lib/kubelet/mounted
"""


@pytest.fixture(scope="module")
def lab(cluster_snapshots: ClusterSnapshots) -> Iterator[LabUnderTest]:
    """Three control planes and two workers, which the tests of this module take apart in their order."""
    made = LabUnderTest(f"t{RUN}-reset")
    cluster_snapshots.up(made, "--control-planes", "3", "--workers", "2")
    yield made
    made.lab("down")


@pytest.fixture(scope="module")
def garboard(garboard_in_node: tuple[str, ...]) -> tuple[str, ...]:
    return garboard_in_node


def more_left_by_kubeadm(theirs: str, ours: str) -> list[str]:
    """Return what kubeadm left and we did not, but for what it leaves now and then.

    It lists the pods once, as soon as the kubelet is told to stop, and misses one that is just being made; and it
    empties etcd's data folder while etcd still runs, which may then write there once more.
    """
    more = sorted(set(theirs.splitlines()) - set(ours.splitlines()))
    return [line for line in more if not line.startswith(("pod ", "/var/lib/etcd/member"))]


def members(lab: LabUnderTest, node: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lab.exec(node, *_ETCDCTL, "member", "list", "-w", "json").stdout)[
        "members"
    ]
    return found


def names(lab: LabUnderTest, node: str) -> set[str]:
    return {member["name"] for member in members(lab, node)}


def test_worker_is_left_as_kubeadm_leaves_it_but_for_data_that_are_not_of_etcd(
    lab: LabUnderTest, garboard: tuple[str, ...]
) -> None:
    for node in ("worker1", "worker2"):
        lab.exec(node, "sh", "-c", f"{_OWN}\numount /var/lib/kubelet/mounted; echo mine > /var/lib/etcd/mine")
    lab.exec("worker1", "kubeadm", "reset", "--force")
    told = lab.exec("worker2", *garboard, "reset", "--force")
    assert "kubectl delete node worker2" in told.stdout
    ours, theirs = (left_on(lab, node) for node in ("worker2", "worker1"))
    assert set(ours.splitlines()) - set(theirs.splitlines()) == {"/var/lib/etcd/mine 644 0 0 f"}
    assert more_left_by_kubeadm(theirs, ours) == []
    assert ours.endswith("\n0\ninactive\nx\n")
    assert "nothing to do" in lab.exec("worker2", *garboard, "reset", "--dry-run").stdout


def test_one_of_three_control_planes_leaves_and_is_left_as_kubeadm_leaves_it(
    lab: LabUnderTest, garboard: tuple[str, ...]
) -> None:
    """Then it joins again, so that the next one leaves a cluster of three, too."""
    lab.exec("cp2", "sh", "-c", _OWN)
    lab.exec("cp2", *garboard, "reset", "--force")
    assert names(lab, "cp1") == {"cp1", "cp3"}
    assert lab.kubectl("get", "--raw", "/readyz") == "ok"
    ours = left_on(lab, "cp2")
    assert ours.endswith("\n0\ninactive\nx\n")

    rejoin(lab, "cp2")
    assert names(lab, "cp1") == {"cp1", "cp2", "cp3"}
    lab.exec("cp2", "sh", "-c", _OWN)
    lab.exec("cp2", "kubeadm", "reset", "--force")
    theirs = left_on(lab, "cp2")
    assert sorted(set(ours.splitlines()) - set(theirs.splitlines())) == []
    assert more_left_by_kubeadm(theirs, ours) == []


def test_killed_before_every_step_and_resumed_it_ends_as_if_nothing_had_happened(
    lab: LabUnderTest, garboard: tuple[str, ...]
) -> None:
    rejoin(lab, "cp2")
    lab.exec("cp2", "sh", "-c", _OWN)
    planned = json.loads(lab.exec("cp2", *garboard, "reset", "--dry-run", "-o", "json").stdout)["steps"]
    command: tuple[str, ...] = ("reset", "--force")
    for index in range(len(planned)):
        killed = KillPoint("begin", index).of(garboard)
        assert lab.exec("cp2", *killed, *command, check=False).returncode != 0
        assert f"{index} of {len(planned)} steps done" in lab.exec("cp2", *garboard, "status").stdout
        command = ("resume",)
    lab.exec("cp2", *garboard, "resume")
    assert_gone(lab, garboard, "cp2", {"cp1", "cp3"})


def test_killed_after_every_step_and_run_again_it_ends_as_if_nothing_had_happened(
    lab: LabUnderTest, garboard: tuple[str, ...]
) -> None:
    """Each run plans from what is left, and is killed one step later, when that is done and not yet noted."""
    rejoin(lab, "cp2")
    lab.exec("cp2", "sh", "-c", _OWN)
    kills = 0
    while lab.exec("cp2", *KillPoint("end", kills).of(garboard), "reset", "--force", check=False).returncode != 0:
        kills += 1
        assert kills < 20
    assert kills >= 4
    lab.exec("cp2", *garboard, "reset", "--force")
    assert_gone(lab, garboard, "cp2", {"cp1", "cp3"})


def test_member_that_the_others_need_does_not_leave(lab: LabUnderTest, garboard: tuple[str, ...]) -> None:
    """Of two members one is down: nothing can be decided, and nothing is removed."""
    lab.lab("stop", "cp1")
    before = without_restarts(left_on(lab, "cp3"))
    refused = lab.exec("cp3", *garboard, "reset", "--force", check=False)
    assert refused.returncode == 5
    assert "--skip-phases remove-etcd-member" in refused.stderr
    assert without_restarts(left_on(lab, "cp3")) == before
    lab.lab("start", "cp1")


def without_restarts(listing: str) -> list[str]:
    """Leave out the files of single containers: without a quorum, a leader soon loses its lease and starts again."""
    return [line for line in listing.splitlines() if "/containers/" not in line]


def test_last_control_plane_goes_with_its_data(lab: LabUnderTest, garboard: tuple[str, ...]) -> None:
    await_api(lab)
    lab.exec("cp3", *garboard, "reset", "--force")
    assert names(lab, "cp1") == {"cp1"}
    asked = lab.exec("cp1", "sh", "-c", f"echo n | {shlex.join(garboard)} reset", check=False)
    assert asked.returncode == 1
    assert "Are you sure you want to proceed? [y/N]" in asked.stderr
    assert names(lab, "cp1") == {"cp1"}
    told = lab.exec("cp1", *garboard, "reset", "--force", "--cleanup-tmp-dir")
    assert "the only voting member" in told.stderr
    assert lab.exec("cp1", "sh", "-c", "ls -A /var/lib/etcd /etc/kubernetes/pki").stdout.split() == [
        "/etc/kubernetes/pki:", "/var/lib/etcd:",
    ]  # fmt: skip


def assert_gone(lab: LabUnderTest, garboard: tuple[str, ...], node: str, others: set[str]) -> None:
    assert names(lab, "cp1") == others
    assert "no run is open" in lab.exec(node, *garboard, "status").stdout
    assert "nothing to do" in lab.exec(node, *garboard, "reset", "--dry-run").stdout
    assert left_on(lab, node).splitlines()[-3:] == ["0", "inactive", "x"]
    assert lab.exec(node, "sh", "-c", "ls -A /var/lib/etcd /etc/kubernetes/pki /var/lib/kubelet").stdout.split() == [
        "/etc/kubernetes/pki:", "/var/lib/etcd:", "/var/lib/kubelet:",
    ]  # fmt: skip


def rejoin(lab: LabUnderTest, node: str) -> None:
    """Join a node that was reset again, by kubeadm; one that was not is left as it is."""
    if lab.exec(node, "test", "-e", "/etc/kubernetes/kubelet.conf", check=False).returncode == 0:
        return
    lab.exec(node, "rm", "-rf", "/var/lib/etcd/member")
    lab.kubectl("delete", "node", node)
    key = lab.exec("cp1", "kubeadm", "init", "phase", "upload-certs", "--upload-certs").stdout.split()[-1]
    line = lab.exec("cp1", "kubeadm", "token", "create", "--print-join-command").stdout.split()
    lab.exec(node, *line, "--control-plane", "--certificate-key", key, "--ignore-preflight-errors=all")
    await_api(lab)
