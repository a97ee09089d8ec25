"""The attempts to make one cluster: when one begins, how it is followed, and when there is no other one."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from garboard.fleet.controllers.actions import Create, Deciding, Delete, Replace
from garboard.fleet.controllers.conditions import Said, condition, is_status, since, with_conditions
from garboard.fleet.controllers.marks import API_VERSION, DEPLOYMENT_NAME, INSTALL_ONCE, RUNS
from garboard.fleet.controllers.stored import Stored, write_time
from garboard.fleet.names import derived_name
from garboard.values import Json

_LONGEST_PAUSE: Final = timedelta(hours=24)
# The same input fails in the same way again.
_NOT_RETRYABLE: Final = ("ManifestPatch", "ManifestIOError", "InstallConfigPatch")
_LAUNCH: Final = "InstallLaunchError"
_OVER: Final = ("complete", "failed")


def is_under_way(provision: Stored) -> bool:
    return provision.text("spec", "stage") not in _OVER and not provision.is_deleting


def owner(of: Stored) -> dict[str, Json]:
    """Return the reference by which an object goes when its owner does."""
    return {
        "apiVersion": of.text("apiVersion"), "kind": of.kind, "name": of.name, "uid": of.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def restarts(deployment: Stored) -> int:
    return deployment.number("status", "installRestarts") or 0


def start_provision(deployment: Stored, provisions: Sequence[Stored], deciding: Deciding) -> None:
    """Adopt the provision that is under way, else begin the next attempt unless there is to be none."""
    found = next((each for each in reversed(provisions) if each.text("spec", "stage") != "failed"), None)
    if found is not None:
        started = deployment.edited({"name": found.name}, "status", "provisionRef")
        if not deployment.text("status", "installStartedTimestamp"):
            started = started.edited(write_time(deciding.now), "status", "installStartedTimestamp")
        said = (
            Said("Provisioned", "False", "Provisioning", f"Attempt {restarts(deployment)} is under way"),
            Said("ProvisionStopped", "False", "ProvisionNotStopped", "Provision is not stopped"),
        )
        deciding.status(deployment, with_conditions(started, said, deciding.now))
        return
    failed = [each for each in provisions if each.text("spec", "stage") == "failed"]
    stopped = _stop(deployment, failed)
    if stopped is not None:
        provisioned = Said("Provisioned", "False", "ProvisionStopped", "Provisioning has been stopped")
        deciding.status(deployment, with_conditions(deployment, [stopped, provisioned], deciding.now))
        deciding.announce(deployment, "Warning", stopped.reason, stopped.message)
        return
    deciding.do(*map(Delete, failed[1:-2]))
    deciding.do(Create(_provision(deployment, failed[-1] if failed else None)))


def _stop(deployment: Stored, failed: Sequence[Stored]) -> Said | None:
    """Return why there is to be no other attempt."""
    limit, made = deployment.number("spec", "installAttemptsLimit"), restarts(deployment)
    if deployment.annotation(INSTALL_ONCE) == "true" and made > 0:
        return Said("ProvisionStopped", "True", "InstallOnlyOnceSet", "Only one attempt was to be made")
    if limit is not None and made >= limit:
        message = f"{made} attempts were made, and installAttemptsLimit is {limit}"
        return Said("ProvisionStopped", "True", "InstallAttemptsLimitReached", message)
    if failed and not is_retryable(failed[-1]):
        reason = failure(failed[-1])
        return Said("ProvisionStopped", "True", "FailureReasonNotRetryable", f"{reason.reason}: {reason.message}")
    return None


def is_retryable(provision: Stored) -> bool:
    return not failure(provision).reason.startswith(_NOT_RETRYABLE)


def failure(provision: Stored) -> Said:
    return condition(provision, "ClusterProvisionFailed") or Said(
        "ClusterProvisionFailed", "True", "MissingCondition", "the provision has failed, and does not say why"
    )


def provision_name(deployment: Stored) -> str:
    """Return the name of an attempt: the same for every controller, so that there is one of each number."""
    number = restarts(deployment)
    digest = hashlib.sha256(f"{deployment.uid}/{number}".encode()).hexdigest()[:5]
    return derived_name(derived_name(deployment.name, str(number)), digest)


def _provision(deployment: Stored, last: Stored | None) -> Stored:
    spec: dict[str, Json] = {
        "clusterDeploymentRef": {"name": deployment.name},
        "podSpec": {"containers": []},
        "attempt": restarts(deployment),
        "stage": "initializing",
    }
    if last is not None:
        spec["prevProvisionName"] = last.name
        for mine, theirs in (("prevClusterID", "clusterID"), ("prevInfraID", "infraID")):
            if last.text("spec", theirs):
                spec[mine] = last.text("spec", theirs)
    metadata: dict[str, Json] = {
        "name": provision_name(deployment),
        "namespace": deployment.namespace,
        "labels": {DEPLOYMENT_NAME: deployment.name},
        "ownerReferences": [owner(deployment)],
        "finalizers": [RUNS],
    }
    return Stored({"apiVersion": API_VERSION, "kind": "ClusterProvision", "metadata": metadata, "spec": spec})


def follow_provision(deployment: Stored, provision: Stored | None, deciding: Deciding) -> None:
    """Take over what a provision has come to."""
    if provision is None:
        # It was deleted, or is not known here yet: what is read anew decides.
        deciding.status(deployment, _restarted(deployment, "the provision was deleted", deciding.now))
        deciding.do(needs_fresh=True)
        return
    if _take_metadata(deployment, provision, deciding) or _take_launch(deployment, provision, deciding):
        return
    stage = provision.text("spec", "stage")
    if stage == "complete":
        _complete(deployment, deciding)
    elif stage == "failed":
        _fail(deployment, provision, deciding)


def _take_metadata(deployment: Stored, provision: Stored, deciding: Deciding) -> bool:
    """Record in the deployment what the provision is about to own, before it owns anything."""
    infra_id = provision.text("spec", "infraID")
    if not infra_id or deployment.text("spec", "clusterMetadata", "infraID") == infra_id:
        return False
    metadata: dict[str, Json] = {
        "infraID": infra_id,
        "clusterID": provision.text("spec", "clusterID"),
        "adminKubeconfigSecretRef": provision.mapping("spec", "adminKubeconfigSecretRef"),
        "metadataJSONSecretRef": {"name": derived_name(provision.name, "metadata-json")},
    }
    password = provision.mapping("spec", "adminPasswordSecretRef")
    if password:
        metadata["adminPasswordSecretRef"] = password
    deciding.do(Replace(deployment.edited(metadata, "spec", "clusterMetadata")))
    return True


def _take_launch(deployment: Stored, provision: Stored, deciding: Deciding) -> bool:
    """Say whether the pod of an attempt does not come to run, as the provision does."""
    stuck, was_stuck = condition(provision, "InstallPodStuck"), is_status(deployment, _LAUNCH, "True")
    if stuck is None or provision.text("spec", "stage") in _OVER:
        return False
    if stuck.status == "True":
        said = Said(_LAUNCH, "True", stuck.reason, stuck.message)
    elif was_stuck:
        said = Said(_LAUNCH, "False", "InstallLaunchSuccessful", "Successfully launched install pod")
    else:
        return False
    is_news = deciding.status(deployment, with_conditions(deployment, [said], deciding.now))
    if is_news and said.status == "True":
        deciding.announce(deployment, "Warning", said.reason, said.message)
    return is_news


def _complete(deployment: Stored, deciding: Deciding) -> None:
    """Call a cluster installed: in its status first."""
    said = (
        Said("ProvisionFailed", "False", "ProvisionSucceeded", "Provision succeeded"),
        Said("ProvisionStopped", "False", "ProvisionNotStopped", "Provision is not stopped"),
        Said("Provisioned", "True", "Provisioned", "Cluster is provisioned"),
    )
    done = deployment.edited("Running", "status", "powerState")
    if not deployment.text("status", "installedTimestamp"):
        done = done.edited(write_time(deciding.now), "status", "installedTimestamp")
    if deciding.status(deployment, with_conditions(done, said, deciding.now)):
        deciding.announce(deployment, "Normal", "Provisioned", "the cluster is installed")
        return
    deciding.do(Replace(deployment.edited(True, "spec", "installed")))


def _fail(deployment: Stored, provision: Stored, deciding: Deciding) -> None:
    """Say why an attempt has failed; let go of it once its pause is over, or at once if there is no other one."""
    reason = failure(provision)
    said = Said("ProvisionFailed", "True", reason.reason, reason.message)
    if deciding.status(deployment, with_conditions(deployment, [said], deciding.now)):
        deciding.announce(deployment, "Warning", reason.reason, reason.message)
        return
    failed_at = since(provision, "ClusterProvisionFailed") or provision.created
    left = failed_at + pause_after(restarts(deployment)) - deciding.now
    limit, made = deployment.number("spec", "installAttemptsLimit"), restarts(deployment) + 1
    is_last = deployment.annotation(INSTALL_ONCE) == "true" or (limit is not None and made >= limit)
    if left > timedelta(0) and not is_last and is_retryable(provision):
        deciding.look_again(left)
        return
    deciding.status(deployment, _restarted(deployment, reason.message, deciding.now))


def pause_after(made: int) -> timedelta:
    """Return how long to wait after a failure: a minute, two, four, at most a day."""
    return min(timedelta(minutes=2 ** min(made, 11)), _LONGEST_PAUSE)


def _restarted(deployment: Stored, why: str, now: datetime) -> Stored:
    counted = deployment.edited(restarts(deployment) + 1, "status", "installRestarts")
    return with_conditions(
        counted.edited(None, "status", "provisionRef"),
        [Said("Provisioned", "False", "Provisioning", f"Another attempt is to be made: {why}")],
        now,
    )
