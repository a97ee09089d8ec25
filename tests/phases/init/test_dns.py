"""A running cluster keeps its replicas of CoreDNS and a Corefile that its owner wrote."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from garboard.engine import Plan, PutObject
from garboard.errors import NotReady
from garboard.phases import plan_workflow, select
from garboard.phases.init.context import ADMIN_CONF
from garboard.phases.init.tree import INIT
from tests.phases.machines import MemoryMachine, context_on

COREDNS = "addon/coredns"


@dataclass
class FakeCluster:
    corefile: dict[str, Any] | None = None
    deployments: list[dict[str, Any]] = field(default_factory=list)

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.corefile if (kind, name) == ("ConfigMap", "coredns") else None

    def labelled(self, kind: str, namespace: str, selector: str) -> list[dict[str, Any]]:
        return self.deployments


def planned(cluster: FakeCluster | None) -> Plan:
    context = replace(context_on(MemoryMachine()), cluster=cluster)
    return plan_workflow(select(INIT, only=COREDNS), context)


def put_by(plan: Plan) -> dict[str, Any]:
    return {step.action.kind: step.action.content for step in plan.steps if isinstance(step.action, PutObject)}


def test_replicas_are_those_that_run() -> None:
    found = put_by(planned(FakeCluster(deployments=[{"spec": {"replicas": 5}}])))
    assert found["Deployment"]["spec"]["replicas"] == 5
    assert put_by(planned(None))["Deployment"]["spec"]["replicas"] == 2


def test_corefile_of_ours_is_put_again_whatever_its_domain() -> None:
    text = put_by(planned(None))["ConfigMap"]["data"]["Corefile"]
    for each in (text, text.replace("cluster.local", "corp.example"), ""):
        assert "ConfigMap" in put_by(planned(FakeCluster({"data": {"Corefile": each}})))


def test_corefile_that_somebody_changed_is_kept_and_told() -> None:
    text = put_by(planned(None))["ConfigMap"]["data"]["Corefile"]
    plan = planned(FakeCluster({"data": {"Corefile": text.replace("cache 30", "cache 60")}}))
    assert "ConfigMap" not in put_by(plan)
    assert "Deployment" in put_by(plan)
    assert any("is kept" in note.text for note in plan.notes)


@pytest.mark.parametrize(
    "cluster", [FakeCluster(deployments=[{}, {}]), FakeCluster({"data": {}}), FakeCluster({})], ids=repr
)
def test_addon_that_is_not_understood_is_refused(cluster: FakeCluster) -> None:
    with pytest.raises(NotReady):
        planned(cluster)


def test_cluster_info_names_the_cluster_of_the_kubeconfig() -> None:
    machine = MemoryMachine({"/pki/ca.crt": b"the CA"})
    machine.files[ADMIN_CONF] = b"""
clusters: [{name: a, cluster: {server: 'https://other:1', certificate-authority: /pki/ca.crt}}]
contexts: [{name: c, context: {cluster: a, user: b}}]
current-context: c
"""
    plan = plan_workflow(select(INIT, only="bootstrap-token"), context_on(machine))
    contents = [step.action.content for step in plan.steps if isinstance(step.action, PutObject)]
    text = next(str(each) for each in contents if "cluster-info" in str(each))
    assert "certificate-authority-data: dGhlIENB" in text
    assert "server: https://other:1" in text
