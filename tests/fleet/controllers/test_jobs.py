"""What the Job of an attempt tells: that it was made, that its pod does not come to run, and that it runs after all."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from garboard.fleet.controllers import Decision, ReplaceStatus, Stored
from garboard.fleet.controllers.actions import Deciding
from garboard.fleet.controllers.attempt import AttemptSnapshot, decide_attempt
from garboard.fleet.controllers.conditions import condition
from garboard.fleet.controllers.provisions import follow_provision

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def stored(kind: str, spec: Any, status: Any = None, *, age_s: float = 0) -> Stored:
    created = (NOW - timedelta(seconds=age_s)).isoformat()
    metadata: Any = {"name": kind.lower(), "namespace": "c1", "uid": kind, "creationTimestamp": created}
    return Stored({"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}})


def said(type_: str, status: str, reason: str, message: str = "") -> Any:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": NOW.isoformat(),
    }


def decided(counts: dict[str, int], age_s: float, *conditions: Any) -> Decision:
    """Decide about an attempt whose Job counts its pods so."""
    deployment = stored("ClusterDeployment", {"clusterMetadata": {"infraID": "i"}})
    spec = {"clusterDeploymentRef": {"name": deployment.name}, "stage": "provisioning", "infraID": "i"}
    created = said("ClusterProvisionJobCreated", "True", "JobCreated", "Install job has been created")
    attempt = stored("ClusterProvision", spec, {"conditions": [created, *conditions], "jobRef": {"name": "job"}})
    snapshot = AttemptSnapshot(
        attempt=attempt, deployment=deployment, documents=stored("Secret", {}), sources=(deployment,),
        job=stored("Job", {}, counts, age_s=age_s),
    )  # fmt: skip
    return decide_attempt(snapshot, NOW, lambda _: ())


def stuck(decision: Decision) -> tuple[str, str] | None:
    """Return what is written about the pod."""
    for each in decision.actions:
        if isinstance(each, ReplaceStatus) and (found := condition(each.new, "InstallPodStuck")) is not None:
            return found.status, found.reason
    return None


@pytest.mark.parametrize(
    ("counts", "age_s", "expected"),
    [
        pytest.param({"active": 1, "ready": 0}, 59, None, id="it is young"),
        pytest.param({"active": 1, "ready": 0}, 60, ("True", "PodInPendingPhase"), id="it waits for a minute"),
        pytest.param({}, 60, ("True", "InstallPodMissing"), id="there is none after a minute"),
        pytest.param({"active": 1, "ready": 1}, 600, None, id="it runs"),
        pytest.param({"failed": 1}, 600, None, id="it has failed"),
        pytest.param({"succeeded": 1}, 600, None, id="it has succeeded"),
    ],
)
def test_pod_that_does_not_run_is_told_after_a_minute(
    counts: dict[str, int], age_s: float, expected: tuple[str, str] | None
) -> None:
    found = decided(counts, age_s)
    assert stuck(found) == expected
    if age_s == 59:
        assert found.again_after == timedelta(seconds=1), "it is looked at again just then"


def test_pod_that_runs_after_all_is_told_as_well() -> None:
    before = said("InstallPodStuck", "True", "PodInPendingPhase")
    assert stuck(decided({"active": 1, "ready": 1}, 600, before)) == ("False", "PodInRunningPhase")


@pytest.mark.parametrize(
    ("of_provision", "before", "expected"),
    [
        pytest.param(("True", "PodInPendingPhase"), None, ("True", "PodInPendingPhase"), id="stuck"),
        pytest.param(
            ("False", "PodInRunningPhase"), ("True", "PodInPendingPhase"), ("False", "InstallLaunchSuccessful"),
            id="runs after all",
        ),
        pytest.param(("False", "PodInRunningPhase"), None, None, id="never was stuck"),
    ],
)  # fmt: skip
def test_deployment_says_what_its_provision_says(
    of_provision: tuple[str, str], before: tuple[str, str] | None, expected: tuple[str, str] | None
) -> None:
    provision = stored(
        "ClusterProvision", {"stage": "initializing"}, {"conditions": [said("InstallPodStuck", *of_provision)]}
    )
    conditions = [said("InstallLaunchError", *before)] if before else []
    deployment, deciding = stored("ClusterDeployment", {}, {"conditions": conditions}), Deciding(NOW)
    follow_provision(deployment, provision, deciding)
    written = [condition(each.new, "InstallLaunchError") for each in deciding.decision().actions]  # type: ignore[union-attr]
    assert [(each.status, each.reason) for each in written if each] == ([expected] if expected else [])
