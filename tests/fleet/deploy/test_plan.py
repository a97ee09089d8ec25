"""What is put into a cluster, and which clusters are left alone."""

from typing import Any

import pytest

from garboard.engine import AwaitGate, DeleteObject, PutObject
from garboard.fleet.crds import OWNER, OWNER_LABEL, custom_resource_definitions
from garboard.fleet.deploy import (
    ControllerDeployment,
    ForeignDefinitions,
    KindsServed,
    controller_objects,
    plan_deployment,
)

DEFINITIONS: Any = custom_resource_definitions()


def test_definitions_come_first_and_the_controller_when_they_are_served() -> None:
    plan = plan_deployment(ControllerDeployment(), ())
    kinds = [each.action.kind if isinstance(each.action, PutObject) else "gate" for each in plan.steps]
    assert kinds[:7] == ["CustomResourceDefinition"] * 7
    assert kinds[7:9] == ["gate", "Namespace"]
    assert kinds[-1] == "Deployment"


def test_definitions_of_our_own_are_applied_again() -> None:
    assert len(plan_deployment(ControllerDeployment(), DEFINITIONS).steps) == 7 + 1 + 8


@pytest.mark.parametrize("labels", [None, {}, {OWNER_LABEL: "somebody"}, {"app": "hive"}])
def test_definitions_without_our_label_are_refused(labels: Any) -> None:
    foreign: Any = {"metadata": {"name": "clusterpools.hive.openshift.io", "labels": labels}}
    with pytest.raises(ForeignDefinitions, match=r"Hive's own.*clusterpools\.hive\.openshift\.io") as refused:
        plan_deployment(ControllerDeployment(), [*DEFINITIONS[:1], foreign])
    assert refused.value.exit_code == 4


def test_every_object_carries_our_label_and_lives_in_the_namespace() -> None:
    objects: Any = controller_objects(ControllerDeployment(namespace="fleet", image="i:1", replicas=3))
    assert all(each["metadata"]["labels"] == {OWNER_LABEL: OWNER} for each in objects)
    placed = {each["metadata"].get("namespace") for each in objects}
    assert placed == {None, "fleet"}
    deployment = objects[-1]
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "i:1"
    subjects = [each["subjects"] for each in objects if each["kind"].endswith("Binding")]
    assert subjects == [[{"kind": "ServiceAccount", "name": "garboard-fleet-controller", "namespace": "fleet"}]] * 2


def test_each_shard_has_a_deployment_that_serves_its_part() -> None:
    objects: Any = controller_objects(ControllerDeployment(shards=3, replicas=1))
    deployments = [each for each in objects if each["kind"] == "Deployment"]
    assert [each["metadata"]["name"] for each in deployments] == [
        f"garboard-fleet-controller-{number}-of-3" for number in range(3)
    ]
    arguments = [each["spec"]["template"]["spec"]["containers"][0]["args"] for each in deployments]
    assert [each[-2:] for each in arguments] == [["--shard", f"{number}/3"] for number in range(3)]
    selectors = [each["spec"]["selector"]["matchLabels"] for each in deployments]
    assert [each["spec"]["template"]["metadata"]["labels"] for each in deployments] == selectors
    assert len({tuple(sorted(each.items())) for each in selectors}) == 3, "none has the pods of another"


@pytest.mark.parametrize(
    ("shards", "left_over"),
    [
        pytest.param(1, ["garboard-fleet-controller-0-of-2", "garboard-fleet-controller-1-of-2"], id="one again"),
        pytest.param(2, ["garboard-fleet-controller"], id="as before"),
        pytest.param(
            3, ["garboard-fleet-controller", "garboard-fleet-controller-0-of-2", "garboard-fleet-controller-1-of-2"],
            id="more",
        ),
    ],
)  # fmt: skip
def test_deployments_of_another_number_of_shards_go_last(shards: int, left_over: list[str]) -> None:
    found = ["garboard-fleet-controller", "garboard-fleet-dashboard", "somebody-elses"]
    found += [f"garboard-fleet-controller-{number}-of-2" for number in range(2)]
    actions = [each.action for each in plan_deployment(ControllerDeployment(shards=shards), DEFINITIONS, found).steps]
    deleted = actions[-len(left_over) :]
    assert [each.name for each in deleted if isinstance(each, DeleteObject)] == left_over
    assert not any(isinstance(each, DeleteObject) for each in actions[: -len(left_over)])


class _Served:
    def __init__(self, definitions: Any) -> None:
        self.found = definitions

    def definitions(self) -> Any:
        return self.found


def _with(**conditions: str) -> Any:
    listed = [{"type": name, "status": status, "message": "taken"} for name, status in conditions.items()]
    return {"a": {"status": {"conditions": listed}}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, "a is not established"),
        (_with(Established="False"), "a is not established"),
        (_with(NamesAccepted="False", Established="False"), "a: taken"),
        (_with(NamesAccepted="True", Established="True"), None),
    ],
)
def test_gate_says_what_it_waits_for(found: Any, expected: str | None) -> None:
    assert KindsServed(("a",)).probe(_Served(found))() == expected


def test_gate_is_shown_in_plans() -> None:
    action = plan_deployment(ControllerDeployment(), ()).steps[7].action
    assert isinstance(action, AwaitGate)
    assert action.gate.name == "7 kinds of hive.openshift.io to be served"
