"""What is to be done about a ClusterProvision or a ClusterDeprovision: what it works with, and that it runs."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from garboard.fleet.controllers.actions import Create, Deciding, Decision, Delete, Replace, RunProvision, StopProvision
from garboard.fleet.controllers.cache import (
    ObjectCache,
    config_map_of,
    own_customization,
    secrets_of,
    shared_customization,
)
from garboard.fleet.controllers.conditions import Said, condition, is_status, reason_of, since, with_conditions
from garboard.fleet.controllers.install_configs import secret_data
from garboard.fleet.controllers.marks import DEPLOYMENT_NAME, PROVISION_NAME, RUNS, SECRET_TYPE
from garboard.fleet.controllers.provisions import owner
from garboard.fleet.controllers.stored import Stored
from garboard.fleet.names import derived_name
from garboard.values import Json, dataclass

DOCUMENTS: Final = "documents.json"
# What is known of the process or Job of an attempt: nothing runs, it runs, or it has ended by itself.
RunState: TypeAlias = Literal["absent", "running", "ended"]
_DEADLINE: Final = timedelta(hours=3)
_STUCK: Final = "InstallPodStuck"
_PENDING_AT_MOST: Final = timedelta(seconds=60)
_JOB_TYPES: Final = {"ClusterProvision": "provision", "ClusterDeprovision": "deprovision"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSnapshot:
    """Everything that is known when an attempt to make or to destroy a cluster is decided about."""

    attempt: Stored  # a ClusterProvision or a ClusterDeprovision
    deployment: Stored | None
    documents: Stored | None  # the Secret with what the attempt is made of
    sources: tuple[Stored, ...] | None  # of these documents; None while one of them is missing
    job: Stored | None
    run: RunState = "absent"

    @classmethod
    def gather(
        cls, cache: ObjectCache, kind: str, namespace: str, name: str, run: RunState = "absent"
    ) -> "AttemptSnapshot | None":
        attempt = cache.get(kind, namespace, name)
        if attempt is None:
            return None
        owner_name = attempt.text("spec", "clusterDeploymentRef", "name") or attempt.label(DEPLOYMENT_NAME)
        deployment = cache.get("ClusterDeployment", namespace, owner_name)
        return cls(
            attempt=attempt,
            deployment=deployment,
            documents=cache.get("Secret", namespace, documents_name(attempt)),
            sources=_sources(cache, deployment) if deployment is not None else None,
            job=cache.get("Job", namespace, job_name(attempt)),
            run=run,
        )


def documents_name(attempt: Stored) -> str:
    return derived_name(attempt.name, "documents")


def job_name(attempt: Stored) -> str:
    return derived_name(attempt.name, _JOB_TYPES[attempt.kind])


def _sources(cache: ObjectCache, deployment: Stored) -> tuple[Stored, ...] | None:
    """Return what a cluster is made of: the deployment and all that it names; None if something is missing."""
    where, kind = deployment.namespace, "ClusterDeploymentCustomization"
    names = {shared_customization(deployment), own_customization(deployment)} - {""}
    found: list[Stored | None] = [cache.get(kind, where, each) for each in sorted(names)]
    found += [cache.get("Secret", where, each) for each in dict.fromkeys(secrets_of(deployment))]
    image_set = deployment.text("spec", "provisioning", "imageSetRef", "name")
    if image_set:
        found.append(cache.get("ClusterImageSet", "", image_set))
    maps = config_map_of(deployment)
    if maps:
        found.append(cache.get("ConfigMap", where, maps))
    objects = tuple(each for each in found if each is not None)
    return (deployment, *objects) if len(objects) == len(found) else None


# The account and the rights of a Job, and the Job as the last of them.
MakeJobs: TypeAlias = Callable[[Stored], tuple[Stored, ...]]


def decide_attempt(snapshot: AttemptSnapshot, now: datetime, make_jobs: MakeJobs | None) -> Decision:
    """Return what an attempt needs; with `make_jobs` it runs as a Job, else as a process of the controller."""
    deciding, attempt = Deciding(now), snapshot.attempt
    if attempt.kind == "ClusterDeprovision":
        _deprovision(snapshot, make_jobs, deciding)
    elif attempt.is_deleting:
        _stop(snapshot, deciding)
    elif attempt.text("spec", "stage") not in ("complete", "failed"):
        _provision(snapshot, make_jobs, deciding)
    elif RUNS in attempt.finalizers and snapshot.run != "running":
        deciding.do(Replace(attempt.without_finalizer(RUNS)))
    return deciding.decision()


def _deprovision(snapshot: AttemptSnapshot, make_jobs: MakeJobs | None, deciding: Deciding) -> None:
    """Have a cluster destroyed, also while the namespace is going; keep what says so until the deployment has it."""
    attempt, deployment = snapshot.attempt, snapshot.deployment
    if attempt.at("status", "completed") is not True and deployment is not None:
        _run(snapshot, make_jobs, deciding)
    elif attempt.is_deleting and (deployment is None or reason_of(deployment, "Provisioned") == "Deprovisioned"):
        _stop(snapshot, deciding)


def _provision(snapshot: AttemptSnapshot, make_jobs: MakeJobs | None, deciding: Deciding) -> None:
    attempt, deployment = snapshot.attempt, snapshot.deployment
    if deployment is None or deployment.is_deleting:
        return
    if attempt.text("spec", "stage") == "initializing" and _is_recorded(attempt, deployment):
        # Everything that is going to exist is on record: the attempt may begin to make it.
        deciding.do(Replace(attempt.edited("provisioning", "spec", "stage")))
        return
    if snapshot.documents is None:
        if snapshot.sources is None:
            deciding.announce(attempt, "Warning", "DocumentsMissing", "something that the deployment names is missing")
            return
        deciding.do(Create(documents_secret(attempt, snapshot.sources)))
        return
    if _has_failed_to_run(snapshot, deciding):
        return
    _run(snapshot, make_jobs, deciding)


def _is_recorded(attempt: Stored, deployment: Stored) -> bool:
    infra_id = attempt.text("spec", "infraID")
    return bool(infra_id) and deployment.text("spec", "clusterMetadata", "infraID") == infra_id


def documents_secret(attempt: Stored, sources: Sequence[Stored]) -> Stored:
    """Return the Secret that holds what an attempt is made of, whatever becomes of its sources."""
    items: list[Json] = [_document(each) for each in sources]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, sort_keys=True)
    metadata: dict[str, Json] = {
        "name": documents_name(attempt),
        "namespace": attempt.namespace,
        "labels": {PROVISION_NAME: attempt.name, SECRET_TYPE: "documents"},
        "ownerReferences": [owner(attempt)],
    }
    data = secret_data({DOCUMENTS: text})
    return Stored({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data})


def _document(source: Stored) -> dict[str, Json]:
    """Return an object as a file would have it."""
    named = {key: source.at("metadata", key) for key in ("name", "namespace", "labels", "annotations")}
    metadata: dict[str, Json] = {key: value for key, value in named.items() if value}
    kept = {key: value for key, value in source.tree.items() if key not in ("metadata", "status")}
    spec = kept.get("spec")
    if source.kind == "ClusterDeployment" and isinstance(spec, Mapping):
        kept["spec"] = {key: value for key, value in spec.items() if key not in ("clusterMetadata", "installed")}
    return {**kept, "metadata": metadata}


def _has_failed_to_run(snapshot: AttemptSnapshot, deciding: Deciding) -> bool:
    """Call a provision failed whose process or Job ended without having said what came of it, or takes too long."""
    attempt, job = snapshot.attempt, snapshot.job
    is_late = attempt.created + _DEADLINE <= deciding.now
    job_failed = job is not None and is_status(job, "Failed", "True")
    if not is_late and not job_failed:
        deciding.look_again(attempt.created + _DEADLINE - deciding.now)
        return False
    is_deadline = is_late or (job is not None and reason_of(job, "Failed") == "DeadlineExceeded")
    reason = "AttemptDeadlineExceeded" if is_deadline else "UnknownError"
    message = "the attempt took too long" if is_deadline else "the Job has failed, and left no reason"
    said = Said("ClusterProvisionFailed", "True", reason, message)
    if not deciding.status(attempt, with_conditions(attempt, [said], deciding.now)):
        deciding.do(StopProvision(attempt.id), Replace(attempt.edited("failed", "spec", "stage")))
    return True


def _run(snapshot: AttemptSnapshot, make_jobs: MakeJobs | None, deciding: Deciding) -> None:
    attempt = snapshot.attempt
    if make_jobs is None:
        deciding.do(RunProvision(attempt))
        return
    if snapshot.job is None:
        deciding.do(*map(Create, make_jobs(attempt)))
    elif attempt.kind == "ClusterProvision":
        referred = attempt.edited({"name": snapshot.job.name}, "status", "jobRef")
        said = [Said("ClusterProvisionJobCreated", "True", "JobCreated", "Install job has been created")]
        deciding.status(
            attempt, with_conditions(referred, [*said, *_launched(attempt, snapshot.job, deciding)], deciding.now)
        )
    elif attempt.kind == "ClusterDeprovision" and is_status(snapshot.job, "Failed", "True"):
        _again(snapshot, snapshot.job, deciding)


def _launched(attempt: Stored, job: Stored, deciding: Deciding) -> Iterator[Said]:
    """Yield what InstallPodStuck says: that the pod does not run after a while, and that one which did not runs now."""
    counts = {each: job.number("status", each) or 0 for each in ("active", "ready", "succeeded", "failed")}
    if counts["ready"]:
        if condition(attempt, _STUCK) is not None:
            yield Said(_STUCK, "False", "PodInRunningPhase", "the pod of the Job runs")
        return
    left = job.created + _PENDING_AT_MOST - deciding.now
    if counts["succeeded"] or counts["failed"]:
        return
    if left > timedelta(0):
        deciding.look_again(left)
    elif counts["active"]:
        message = f"the pod of Job {job.name} does not run: kubectl describe pods -n {job.namespace} tells why"
        yield Said(_STUCK, "True", "PodInPendingPhase", message)
    else:
        message = f"Job {job.name} has no pod: kubectl describe job -n {job.namespace} tells why"
        yield Said(_STUCK, "True", "InstallPodMissing", message)


def _again(snapshot: AttemptSnapshot, job: Stored, deciding: Deciding) -> None:
    """Replace the failed Job of a deprovision after a pause: until it succeeds, the cluster may still be there."""
    left = (since(job, "Failed") or job.created) + timedelta(minutes=5) - deciding.now
    said = Said("DeprovisionFailed", "True", "JobFailed", "the Job has failed; it is made anew")
    deciding.status(snapshot.attempt, with_conditions(snapshot.attempt, [said], deciding.now))
    if left > timedelta(0):
        deciding.look_again(left)
    else:
        deciding.do(Delete(job))


def _stop(snapshot: AttemptSnapshot, deciding: Deciding) -> None:
    """Let an attempt go once nothing runs for it."""
    attempt = snapshot.attempt
    if RUNS not in attempt.finalizers:
        return
    if snapshot.job is not None:
        if not snapshot.job.is_deleting:
            deciding.do(Delete(snapshot.job))
        return
    deciding.do(StopProvision(attempt.id), Replace(attempt.without_finalizer(RUNS)))
