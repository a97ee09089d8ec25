"""One line of a dashboard for each pool, cluster, claim and failure, out of the objects as the API server has them."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from garboard.fleet.controllers.cache import claim_of, own_customization, pool_of
from garboard.fleet.controllers.conditions import Said, condition, is_status, reason_of, since
from garboard.fleet.controllers.durations import read_duration
from garboard.fleet.controllers.marks import DEPLOYMENT_NAME
from garboard.fleet.controllers.pool_snapshot import is_broken, is_installed, is_running
from garboard.fleet.controllers.provisions import failure, restarts
from garboard.fleet.controllers.stored import Stored, read_time
from garboard.fleet.provision import OutputScrubber
from garboard.values import dataclass

# What is shown of a log on the page itself; the whole of it is asked for.
LOG_LINES: Final = 30
_LONGEST_LINE, _LONGEST_NOTE = 500, 600


class ClusterStage(StrEnum):
    """What a cluster is at; those that somebody should look at come first."""

    FAILED = "failed"
    RETRYING = "retrying"
    WAITING = "waiting"
    INITIALIZING = "initializing"
    PROVISIONING = "provisioning"
    DELETING = "deleting"
    READY = "ready"
    STANDBY = "standby"
    CLAIMED = "claimed"
    INSTALLED = "installed"


MEANINGS: Final = {
    ClusterStage.FAILED: "No other attempt is made",
    ClusterStage.RETRYING: "An attempt has failed, another one follows",
    ClusterStage.WAITING: "Something that it needs is missing, or no attempt has begun yet",
    ClusterStage.INITIALIZING: "An attempt prepares what the installer is given",
    ClusterStage.PROVISIONING: "The installer is at work",
    ClusterStage.DELETING: "It is taken back",
    ClusterStage.READY: "It runs, and waits for a claim",
    ClusterStage.STANDBY: "It is installed, and does not run",
    ClusterStage.CLAIMED: "Somebody has claimed it",
    ClusterStage.INSTALLED: "It runs, and belongs to no pool",
}
PLACES: Final = {stage: place for place, stage in enumerate(ClusterStage)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """A pool with the number of its clusters at each stage."""

    namespace: str
    name: str
    wanted: int
    most: int | None
    stages: tuple[tuple[ClusterStage, int], ...]
    waiting_claims: int
    is_deleting: bool
    troubles: tuple[Said, ...]

    def count(self, *stages: ClusterStage) -> int:
        return sum(number for stage, number in self.stages if stage in stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """A cluster; `since` is when it came to its stage, as far as its objects tell."""

    namespace: str
    name: str
    pool: str  # namespace/name, empty for a cluster of none
    claim: str
    entry: str
    stage: ClusterStage
    since: datetime | None
    infra_id: str
    attempts: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """A claim; `expires` is when its cluster is taken back."""

    namespace: str
    name: str
    pool: str
    cluster: str
    state: str
    is_waiting: bool
    created: datetime
    expires: datetime | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """An attempt that has failed, with the end of its log."""

    kind: str
    namespace: str
    name: str
    cluster: str
    stage: ClusterStage | None  # of the cluster by now; None if there is none
    attempt: int | None
    reason: str
    message: str
    failed_at: datetime
    log: str
    is_whole: bool


def stage_of(cluster: Stored, provision: Stored | None) -> ClusterStage:
    """Return what a cluster is at; `provision` is the attempt that its status names."""
    if cluster.is_deleting:
        return ClusterStage.DELETING
    if is_installed(cluster):
        if claim_of(cluster):
            return ClusterStage.CLAIMED
        if not is_running(cluster):
            return ClusterStage.STANDBY
        return ClusterStage.READY if pool_of(cluster)[1] else ClusterStage.INSTALLED
    if is_broken(cluster):
        return ClusterStage.FAILED
    stage = provision.text("spec", "stage") if provision is not None else ""
    if stage == "failed" or (not stage and is_status(cluster, "ProvisionFailed", "True")):
        return ClusterStage.RETRYING
    if stage in ("provisioning", "complete"):
        return ClusterStage.PROVISIONING
    return ClusterStage.INITIALIZING if stage else ClusterStage.WAITING


def pool_row(pool: Stored, stages: Sequence[ClusterStage], waiting_claims: int) -> PoolRow:
    return PoolRow(
        namespace=pool.namespace,
        name=pool.name,
        wanted=pool.number("spec", "size") or 0,
        most=pool.number("spec", "maxSize"),
        stages=counted(stages),
        waiting_claims=waiting_claims,
        is_deleting=pool.is_deleting,
        troubles=pool_troubles(pool),
    )


def counted(stages: Sequence[ClusterStage]) -> tuple[tuple[ClusterStage, int], ...]:
    """Return how many there are at each stage, without those at which there are none."""
    return tuple((stage, stages.count(stage)) for stage in ClusterStage if stage in stages)


_WRONG: Final = {
    "Accepted": "False",
    "MissingDependencies": "True",
    "CapacityAvailable": "False",
    "InventoryValid": "False",
    "AllClustersCurrent": "False",
    "DeletionPossible": "False",
}


def pool_troubles(pool: Stored) -> tuple[Said, ...]:
    """Return the conditions of a pool that are not as they should be."""
    said = (condition(pool, type_) for type_ in _WRONG)
    return tuple(each for each in said if each is not None and each.status == _WRONG[each.type])


def cluster_row(cluster: Stored, stage: ClusterStage) -> ClusterRow:
    namespace, pool = pool_of(cluster)
    return ClusterRow(
        namespace=cluster.namespace,
        name=cluster.name,
        pool=f"{namespace}/{pool}" if pool else "",
        claim=claim_of(cluster),
        entry=own_customization(cluster),
        stage=stage,
        since=_since(cluster, stage),
        infra_id=cluster.text("spec", "clusterMetadata", "infraID"),
        attempts=restarts(cluster),
        note=short(deployment_trouble(cluster)),
    )


def deployment_trouble(cluster: Stored) -> str:
    """Return what keeps a cluster from being made, or taken back; empty if nothing does."""
    provisioned = condition(cluster, "Provisioned")
    if cluster.is_deleting:
        return provisioned.message if provisioned is not None and provisioned.reason == "DeprovisionFailed" else ""
    unmet = condition(cluster, "RequirementsMet")
    if unmet is not None and unmet.status == "False":
        return unmet.message
    failed = condition(cluster, "ProvisionFailed")
    return f"{failed.reason}: {failed.message}" if failed is not None and failed.status == "True" else ""


_CONDITION_OF: Final = {
    ClusterStage.FAILED: "ProvisionStopped",
    ClusterStage.RETRYING: "ProvisionFailed",
    ClusterStage.WAITING: "RequirementsMet",
}


def _since(cluster: Stored, stage: ClusterStage) -> datetime | None:
    if stage is ClusterStage.DELETING:
        return read_time(cluster.text("metadata", "deletionTimestamp"))
    if stage in _CONDITION_OF:
        return since(cluster, _CONDITION_OF[stage]) or cluster.created
    if stage in (ClusterStage.INITIALIZING, ClusterStage.PROVISIONING):
        return read_time(cluster.text("status", "installStartedTimestamp"))
    if stage is ClusterStage.CLAIMED:
        return read_time(cluster.text("spec", "clusterPoolRef", "claimedTimestamp"))
    return read_time(cluster.text("status", "installedTimestamp"))


def pool_of_claim(claim: Stored) -> str:
    return f"{claim.namespace}/{claim.text('spec', 'clusterPoolName')}"


def is_waiting(claim: Stored) -> bool:
    return not claim.is_deleting and not is_status(claim, "Pending", "False")


def claim_row(claim: Stored) -> ClaimRow:
    pending, is_claimed = condition(claim, "Pending"), is_status(claim, "Pending", "False")
    began, lasts = since(claim, "Pending") if is_claimed else None, read_duration(claim.text("status", "lifetime"))
    running = condition(claim, "ClusterRunning")
    is_lost = is_claimed and running is not None and running.reason in ("ClusterDeleted", "ClusterDeleting")
    note = running.message if is_lost and running is not None else ""
    return ClaimRow(
        namespace=claim.namespace,
        name=claim.name,
        pool=pool_of_claim(claim),
        cluster=claim.text("spec", "namespace"),
        state="Deleting" if claim.is_deleting else reason_of(claim, "Pending") or "New",
        is_waiting=is_waiting(claim),
        created=claim.created,
        expires=began + lasts if began is not None and lasts is not None else None,
        note=short(pending.message if pending is not None and not is_claimed else note),
    )


def has_failed(attempt: Stored) -> bool:
    if attempt.kind == "ClusterProvision":
        return attempt.text("spec", "stage") == "failed"
    return is_status(attempt, "DeprovisionFailed", "True") and attempt.at("status", "completed") is not True


def failed_at(attempt: Stored) -> datetime:
    type_ = "ClusterProvisionFailed" if attempt.kind == "ClusterProvision" else "DeprovisionFailed"
    return since(attempt, type_) or attempt.created


def cluster_of(attempt: Stored) -> str:
    """Return the name of the cluster that an attempt is to make or to destroy."""
    return attempt.text("spec", "clusterDeploymentRef", "name") or attempt.label(DEPLOYMENT_NAME) or attempt.name


def failure_row(attempt: Stored, stage: ClusterStage | None) -> FailureRow:
    said = failure(attempt) if attempt.kind == "ClusterProvision" else condition(attempt, "DeprovisionFailed")
    lines = attempt.text("spec", "installLog").rstrip("\n").splitlines()
    end = OutputScrubber().text("\n".join(lines[-LOG_LINES:])).splitlines()
    return FailureRow(
        kind=attempt.kind,
        namespace=attempt.namespace,
        name=attempt.name,
        cluster=cluster_of(attempt),
        stage=stage,
        attempt=attempt.number("spec", "attempt"),
        reason=said.reason if said is not None else "",
        message=short(said.message) if said is not None else "",
        failed_at=failed_at(attempt),
        log="\n".join(each[:_LONGEST_LINE] for each in end),
        is_whole=len(lines) <= LOG_LINES and all(len(each) <= _LONGEST_LINE for each in end),
    )


def log_of(attempt: Stored) -> str:
    """Return the log that was kept of an attempt. It was stored without secrets; what Hive has stored may have some."""
    return OutputScrubber().text(attempt.text("spec", "installLog").rstrip("\n"))


def short(text: str) -> str:
    """Return a message at a length that a table can have."""
    return text if len(text) <= _LONGEST_NOTE else f"{text[: _LONGEST_NOTE - 1]}…"
