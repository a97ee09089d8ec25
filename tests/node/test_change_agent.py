"""The agent of a node: when it acts, what its units are, and how its policy comes into force."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from garboard.change.write_policy import POLICY, PROBE, policy_objects
from garboard.engine import ControlTimer, DeleteObject, Plan, PutObject, Step, WriteFile
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.manifests.timers import timer_files
from garboard.node import change_agent
from garboard.node.change_agent import RevisionUnprotected, install_agent, is_waited_for
from garboard.node.workflow import LocalNode
from garboard.phases.revision import ChangeTarget, NodeReport, ReportResult, Revision, revision_name
from garboard.retry import Clock
from tests.support.node.reporters import MemoryReporter

TARGET = ChangeTarget(revision=3, digest="d", state="rolling", parent=2, canary="cp1", nodes=["cp1", "w1"])
REVISION = Revision(number=3, created="now", kubernetes_version="v1.37.1", documents={})
BEFORE, AFTER = "2031-05-04T03:00:00Z", "2031-05-04T04:00:00Z"


class FakeNodeCluster:
    """Objects by kind and name; the policy takes effect once the probe has been made `misses` times."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Any] = {}
        self.misses = 0
        self.is_in_force = False

    def protect(self, made: str = BEFORE) -> None:
        for each in policy_objects():
            self.add(each.content, made)
        self.is_in_force = True

    def add(self, content: Any, made: str) -> None:
        metadata = {**content["metadata"], "creationTimestamp": made, "generation": 1}
        self.objects[content["kind"], metadata["name"]] = {**content, "metadata": metadata}

    def point_at(self, target: ChangeTarget) -> None:
        self.add(target.as_object().content, AFTER)

    def says(self, result: ReportResult) -> None:
        report = NodeReport(revision=3, digest="d", result=result, at=AFTER)
        self.add({"kind": "Node", "metadata": {"name": "w1", "annotations": {"garboard.dev/change": str(report)}}}, "")

    def find(self, kind: str, _namespace: str, name: str, *, api_version: str = "") -> Any:
        return self.objects.get((kind, name))

    def put(self, action: PutObject) -> None:
        assert action.name == PROBE
        if self.is_in_force and self.misses == 0:
            raise GarboardError(f"ValidatingAdmissionPolicy '{POLICY}' denied request")
        self.misses -= self.is_in_force
        self.objects["ConfigMap", PROBE] = action.content

    def delete(self, action: DeleteObject) -> None:
        del self.objects["ConfigMap", action.name]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeNodeCluster:
    made = FakeNodeCluster()
    monkeypatch.setattr(change_agent, "_cluster", lambda _node: made)
    monkeypatch.setattr(change_agent, "node_name_of", lambda _machine: "w1")
    monkeypatch.setattr(change_agent, "own_program", lambda: "/usr/bin/garboard")
    return made


NODE = LocalNode(NodeMachine(None), MemoryReporter())


def test_agent_follows_a_target_that_was_written_under_the_policy(cluster: FakeNodeCluster) -> None:
    cluster.protect()
    cluster.add(REVISION.as_object().content, AFTER)
    cluster.point_at(TARGET)
    cluster.says("pending")
    assert is_waited_for(NODE)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(None, id="never changed"),
        pytest.param({"nodes": ["cp1"]}, id="another node's"),
        pytest.param({"state": "committed"}, id="done"),
        pytest.param({"state": "reverting", "confirm_within_seconds": 60}, id="being taken back"),
        pytest.param({"state": "reverted"}, id="taken back"),
    ],
)
def test_agent_has_nothing_to_do(cluster: FakeNodeCluster, fields: Any) -> None:
    if fields is not None:
        cluster.point_at(msgspec.structs.replace(TARGET, **fields))
    assert not is_waited_for(NODE)


@pytest.mark.parametrize("result", ["done", "confirmed", "failed", "reverted"])
def test_agent_does_nothing_twice_and_leaves_failures_to_people(cluster: FakeNodeCluster, result: ReportResult) -> None:
    cluster.protect()
    cluster.add(REVISION.as_object().content, AFTER)
    cluster.point_at(TARGET)
    cluster.says(result)
    assert not is_waited_for(NODE)


@pytest.mark.parametrize("protection", ["none", "younger", "other"])
def test_agent_does_not_act_on_what_anybody_may_have_written(cluster: FakeNodeCluster, protection: str) -> None:
    cluster.add(REVISION.as_object().content, BEFORE if protection == "younger" else AFTER)
    cluster.point_at(TARGET)
    if protection != "none":
        cluster.protect()
    if protection == "other":
        cluster.objects["ValidatingAdmissionPolicy", POLICY]["spec"] = {"failurePolicy": "Ignore"}
    with pytest.raises(RevisionUnprotected) as caught:
        is_waited_for(NODE)
    assert (caught.value.error_class, caught.value.exit_code) == ("unprotected", 4)


def test_target_that_names_no_revision_is_refused(cluster: FakeNodeCluster) -> None:
    cluster.protect()
    cluster.point_at(TARGET)
    with pytest.raises(RevisionUnprotected, match=f"no revision {TARGET.revision}"):
        is_waited_for(NODE)
    assert revision_name(3) not in {name for _, name in cluster.objects}


@pytest.fixture
def carried(cluster: FakeNodeCluster, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The steps that were carried out; objects are put into the cluster."""
    steps: list[Step] = []

    def carry_out(plan: Plan, *_others: Any) -> None:
        steps.extend(plan.steps)
        for step in plan.steps:
            if isinstance(step.action, PutObject):
                cluster.add(step.action.content, BEFORE)
                cluster.is_in_force = True

    monkeypatch.setattr(change_agent, "_carry_out", carry_out)
    return steps


def test_worker_installs_no_agent_without_the_policy(
    cluster: FakeNodeCluster, carried: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_agent, "own_kubeconfig", lambda _node: "/etc/kubernetes/kubelet.conf")
    with pytest.raises(RevisionUnprotected, match="would be root here"):
        install_agent(NODE)
    assert carried == []
    cluster.protect()
    install_agent(NODE)
    written = {step.action.path: step.action.content for step in carried if isinstance(step.action, WriteFile)}
    assert written == timer_files(change_agent._timed("/usr/bin/garboard", 60))
    assert [step.action for step in carried][-1] == ControlTimer(timer="garboard-change-agent", verb="enable")
    service = written["/etc/systemd/system/garboard-change-agent.service"].decode()
    assert "ExecStart=/usr/bin/garboard change node --yes --unattended\n" in service


def test_control_plane_puts_the_policy_and_waits_until_it_is_in_force(
    cluster: FakeNodeCluster, carried: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_agent, "own_kubeconfig", lambda _node: "/etc/kubernetes/admin.conf")
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    cluster.misses = 3
    install_agent(NODE, clock=Clock(lambda: now_s, sleep))
    assert [step.action.kind for step in carried if isinstance(step.action, PutObject)] == [
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole", "ClusterRoleBinding",
    ]  # fmt: skip
    assert ("ConfigMap", PROBE) not in cluster.objects
    assert now_s >= 5.0, "other API servers hear of it a moment later"
    again = len(carried)
    install_agent(NODE, clock=Clock(lambda: now_s, sleep))
    assert not any(isinstance(step.action, PutObject) for step in carried[again:]), "it keeps its age"


def test_policy_that_somebody_has_changed_is_left_to_them(
    cluster: FakeNodeCluster, carried: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_agent, "own_kubeconfig", lambda _node: "/etc/kubernetes/admin.conf")
    cluster.protect()
    cluster.objects["ValidatingAdmissionPolicyBinding", POLICY]["spec"] = {"validationActions": ["Audit"]}
    with pytest.raises(RevisionUnprotected, match="not as garboard writes it"):
        install_agent(NODE)
    assert carried == []


@pytest.mark.real
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    assert analyze, "systemd-analyze is missing: install the Debian package systemd"
    (tmp_path / "garboard").write_text("#!/bin/sh\n")
    (tmp_path / "garboard").chmod(0o755)
    files = []
    for path, data in timer_files(change_agent._timed(str(tmp_path / "garboard"), 60)).items():
        files.append(tmp_path / Path(path).name)
        files[-1].write_bytes(data)
    said = subprocess.run([analyze, "verify", *files], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert [line for line in said.stderr.splitlines() if "garboard-change" in line] == []
