"""What is put into a cluster, and which clusters are left alone."""

from typing import Any

import pytest

from garboard.engine import AwaitGate, PutObject
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
