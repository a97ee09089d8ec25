"""The dashboard in a cluster: it reads five kinds and asks about viewers, and may do nothing else."""

from typing import Any

from garboard.fleet.crds import OWNER, OWNER_LABEL
from garboard.fleet.dashboard import SHOWN_KINDS
from garboard.fleet.deploy import ControllerDeployment, controller_objects

WANTED = ControllerDeployment(namespace="fleet", image="i:1", has_dashboard=True)
OBJECTS: Any = controller_objects(WANTED)
BY_NAME: Any = {(each["kind"], each["metadata"]["name"]): each for each in OBJECTS}
NAME = "garboard-fleet-dashboard"


def test_dashboard_comes_after_the_controller_and_only_if_it_is_asked_for() -> None:
    without = controller_objects(ControllerDeployment(namespace="fleet", image="i:1"))
    assert OBJECTS[: len(without)] == without
    assert [each["kind"] for each in OBJECTS[len(without) :]] == [
        "ServiceAccount", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "Deployment", "Service",
    ]  # fmt: skip
    assert all(each["metadata"]["labels"] == {OWNER_LABEL: OWNER} for each in OBJECTS)


def test_account_reads_what_is_shown_and_reviews_viewers_and_nothing_else() -> None:
    reading = {
        "apiGroups": ["hive.openshift.io"], "resources": [*SHOWN_KINDS.values()], "verbs": ["get", "list", "watch"],
    }  # fmt: skip
    viewers, own = BY_NAME["ClusterRole", "garboard-fleet-viewer"], BY_NAME["ClusterRole", NAME]
    assert viewers["rules"] == [reading]
    assert own["rules"] == [
        reading,
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": "fleet"}
    assert BY_NAME["ClusterRoleBinding", NAME]["subjects"] == [account]
    assert BY_NAME["ClusterRoleBinding", NAME]["roleRef"]["name"] == NAME


def test_service_leads_to_the_port_that_is_served() -> None:
    service, deployment = BY_NAME["Service", NAME], BY_NAME["Deployment", NAME]
    template = deployment["spec"]["template"]
    assert (
        service["spec"]["selector"] == template["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    )
    (container,) = template["spec"]["containers"]
    (port,) = container["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert container["args"][-1] == f"0.0.0.0:{port['containerPort']}"
    assert container["image"] == "i:1"
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        assert container[probe]["httpGet"]["port"] == port["name"]


def test_pod_is_as_confined_as_the_controllers() -> None:
    own, controllers = (
        BY_NAME["Deployment", name]["spec"]["template"]["spec"] for name in (NAME, "garboard-fleet-controller")
    )
    assert own["serviceAccountName"] == NAME
    assert own["securityContext"] == controllers["securityContext"]
    assert own["containers"][0]["securityContext"] == controllers["containers"][0]["securityContext"]
