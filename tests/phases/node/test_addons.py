"""A running cluster keeps its replicas of CoreDNS and a Corefile that its owner wrote."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from garboard.engine import Plan, PutObject
from garboard.errors import NotReady
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT
from tests.support.phases.machines import MemoryMachine, context_on

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
    return plan_workflow(select(INIT, only=COREDNS), context_on(MemoryMachine(), cluster=cluster))


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


OLD = ".:53 {\n health\n kubernetes cluster.local {\n  upstream\n }\n proxy . /etc/resolv.conf\n log\n}\n"
STRANGE = "example.org:53 {\n forward a.b 1.2.3.4\n kubernetes cluster.local {\n  upstream\n }\n}\n"
OWNERS = ".:53 {\n    whoami\n}\n"
DEFAULT_1_18 = """\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes corp.example in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . 192.0.2.1
    cache 30
    loop
    reload
    loadbalance
}
"""


def running(tag: str | None, corefile: str) -> FakeCluster:
    """Return a cluster whose CoreDNS has an image with the tag; None for no Deployment."""
    image = f"registry.k8s.io/coredns/coredns:{tag}" if tag else "coredns"
    pod = {"containers": [{"name": "coredns", "image": image}], "volumes": [{"name": "config-volume"}]}
    deployment = {"metadata": {"name": "coredns", "uid": "1"}, "spec": {"replicas": 3, "template": {"spec": pod}}}
    return FakeCluster({"data": {"Corefile": corefile}}, [] if tag is None else [deployment])


# What kubeadm 1.37.1 does, each time seen with an API server that noted its requests.
@pytest.mark.parametrize(("tag", "corefile", "put"), [
    pytest.param("v1.9.3", OWNERS, {"Deployment"}, id="nothing to migrate"),
    pytest.param("v1.9.3", DEFAULT_1_18, {"ConfigMap", "Deployment"}, id="an older default is replaced"),
    pytest.param("v1.14.6", OLD, {"Deployment"}, id="the same release"),
    pytest.param(None, OLD, {"Deployment"}, id="no Deployment"),
    pytest.param("", OLD, {"Deployment"}, id="no tag"),
    pytest.param("v1.6.2", OLD, set(), id="a tag with v is not understood by the migration"),
    pytest.param("1.3.0", STRANGE, set(), id="what cannot be migrated"),
    pytest.param("vv1.9.3", OWNERS, {"Deployment"}, id="any number of v"),
])  # fmt: skip
def test_what_is_put_over_an_addon_that_runs(tag: str | None, corefile: str, put: set[str]) -> None:
    plan = planned(running(tag, corefile))
    assert set(put_by(plan)) & {"ConfigMap", "Deployment"} == put
    assert bool(plan.warnings) == (not put)


def test_corefile_of_an_older_release_is_migrated_and_kept_beside_the_new_one() -> None:
    plan = planned(running("1.6.2", OLD))
    actions = [step.action for step in plan.steps if isinstance(step.action, PutObject)]
    names = [action.kind for action in actions]
    assert names == [
        "ConfigMap", "Deployment", "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "Deployment", "Service"
    ]  # fmt: skip
    contents: Any = [action.content for action in actions]
    data = contents[0]["data"]
    assert data["Corefile-backup"] == OLD
    assert "upstream" not in data["Corefile"]
    first = contents[1]
    assert first["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"][0]["key"] == "Corefile-backup"
    assert "uid" not in first["metadata"]
    last = contents[-2]
    assert last["spec"]["replicas"] == 3
    assert last["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"][0]["key"] == "Corefile"


@pytest.mark.parametrize("tag", ["custom", "v1.15.0", "v1.9.3@sha256:abc"])
@pytest.mark.parametrize("corefile", [OWNERS, DEFAULT_1_18, ""])
def test_a_release_that_nobody_knows_is_refused(tag: str, corefile: str) -> None:
    with pytest.raises(NotReady, match="not supported"):
        planned(running(tag, corefile))


@pytest.mark.parametrize(
    "cluster", [FakeCluster(deployments=[{}, {}]), FakeCluster({"data": {}}), FakeCluster({})], ids=repr
)
def test_addon_that_is_not_understood_is_refused(cluster: FakeCluster) -> None:
    with pytest.raises(NotReady):
        planned(cluster)
