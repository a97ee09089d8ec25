"""A coordinator wired on this machine: steps on what all nodes share, under its Lease, and again after a kill."""

import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from garboard import __version__
from garboard.documents import Json
from garboard.engine import ClusterPart, ClusterPlan, NodePart, Plan, PlanRefused, PutObject, Step, WriteFile
from garboard.host.node_machine import NodeMachine
from garboard.kube import LeaseLost
from garboard.node.coordination import coordinator_on, steps_on_cluster
from garboard.node.coordinator import Coordinator, CoordinatorStopped
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.via import Via
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.api_server import FakeApi
from tests.support.node import simulated_nodes
from tests.support.node.reporters import MemoryReporter

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/garboard-control-plane"
TARGET = "/api/v1/namespaces/kube-system/configmaps/target"
DOCUMENT: dict[str, Json] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "target", "namespace": "kube-system"},
    "data": {"version": "v1.37.1"},
}
PUT = PutObject(api_version="v1", kind="ConfigMap", name="target", namespace="kube-system", content=DOCUMENT)
SHARED = ClusterPart(name="target", plan=Plan((Step(PUT, "all nodes have it", "record"),)))
PLAN = ClusterPlan(
    (NodePart(node="cp1", words=("upgrade", "node")), SHARED, NodePart(node="cp2", words=("upgrade", "node")))
)


@pytest.fixture
def settings(kubeconfig: Kubeconfig, tmp_path: Path) -> RunSettings:
    path = tmp_path / "admin.conf"
    path.write_bytes(kubeconfig.to_bytes())
    return RunSettings(kubeconfig=str(path), node_name="cp1")


@pytest.fixture
def node(tmp_path: Path) -> LocalNode:
    (tmp_path / "version").write_text(__version__)
    return LocalNode(NodeMachine(None), MemoryReporter())


@pytest.fixture
def coordinator(node: LocalNode, settings: RunSettings, tmp_path: Path) -> Coordinator:
    words = [sys.executable, "-S", "-E", simulated_nodes.__file__, str(tmp_path)]
    return coordinator_on(node, Via.parse(f"{shlex.join(words)} {{node}}"), settings)


def commands(folder: Path) -> list[str]:
    return [line.split(" --lease ")[0] for line in (folder / "commands").read_text().splitlines()]


def test_steps_of_the_cluster_are_carried_out_between_those_of_nodes(
    coordinator: Coordinator, api: FakeApi, tmp_path: Path, state_dir: Path
) -> None:
    name = coordinator.begin("upgrade apply", PLAN)
    assert commands(tmp_path) == ["cp1: upgrade node", "cp2: upgrade node"]
    assert {*api.objects} == {TARGET}, "the Lease has gone"
    (record,) = coordinator.records()
    assert (record.name, record.left, record.is_open) == (name, (), False)
    assert (state_dir / "coordinator" / "runs" / name).is_dir()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_steps_of_the_cluster_are_given_again_after_a_kill(
    coordinator: Coordinator, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    put = NodeCluster.put

    def killed(cluster: NodeCluster, action: PutObject) -> None:
        if moment == "after":
            put(cluster, action)
        os.kill(os.getpid(), signal.SIGKILL)

    if (pid := os.fork()) == 0:
        with suppress(BaseException):
            monkeypatch.setattr(NodeCluster, "put", killed)
            coordinator.begin("upgrade apply", PLAN)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert (TARGET in api.objects) == (moment == "after")
    assert [each.state for each in coordinator.records()[0].parts] == ["done", "running", "pending"]
    coordinator.resume()
    assert commands(tmp_path) == ["cp1: upgrade node", "cp2: upgrade node"], "no node is told twice"
    assert api.objects[TARGET]["data"] == DOCUMENT["data"]
    assert {*api.objects} == {TARGET}


def test_steps_of_the_cluster_are_refused_once_another_holds_the_lease(
    node: LocalNode, settings: RunSettings, api: FakeApi
) -> None:
    api.objects[LEASE] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "garboard-control-plane", "namespace": "kube-system", "resourceVersion": "1"},
        "spec": {"holderIdentity": "cp9/other", "leaseTransitions": 5},
    }
    with pytest.raises(LeaseLost):
        steps_on_cluster(node, settings)(SHARED, LeaseToken("cp1/record", 4))
    assert TARGET not in api.objects


def test_steps_of_the_cluster_that_fail_stop_the_coordinator(coordinator: Coordinator, api: FakeApi) -> None:
    api.refuse("POST", TARGET.rpartition("/")[0], 403, "Forbidden", "no")
    api.refuse("PATCH", TARGET, 403, "Forbidden", "no")
    with pytest.raises(CoordinatorStopped, match="target has failed"):
        coordinator.begin("upgrade apply", PLAN)
    coordinator.resume()
    assert TARGET in api.objects


def test_files_of_a_node_are_no_part_of_the_cluster(node: LocalNode, settings: RunSettings, tmp_path: Path) -> None:
    write = Step(WriteFile(path=str(tmp_path / "made"), content=b"", mode=0o600), "")
    with pytest.raises(PlanRefused, match="belongs to one node"):
        steps_on_cluster(node, settings)(ClusterPart(name="target", plan=Plan((write,))), LeaseToken("cp1/record", 0))
    assert not (tmp_path / "made").exists()
