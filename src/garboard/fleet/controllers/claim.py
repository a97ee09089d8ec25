"""What is to be done about a ClusterClaim: its rights in the cluster, its conditions, its lifetime and its end."""

from datetime import datetime, timedelta

from garboard.fleet.controllers.actions import Create, Deciding, Decision, Delete, Replace
from garboard.fleet.controllers.cache import ObjectCache, claim_of
from garboard.fleet.controllers.conditions import (
    CLAIM_CONDITIONS,
    Said,
    initialized,
    is_status,
    since,
    with_conditions,
)
from garboard.fleet.controllers.durations import read_duration, write_duration
from garboard.fleet.controllers.marks import CLAIM, CLAIM_OWNER, GROUP, REMOVE
from garboard.fleet.controllers.pool_snapshot import is_running
from garboard.fleet.controllers.stored import Stored
from garboard.values import Json, dataclass

_RBAC_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"{_RBAC_GROUP}/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSnapshot:
    """Everything that is known when a claim is decided about."""

    claim: Stored
    pool: Stored | None
    cluster: Stored | None  # the one that the claim names
    role: Stored | None
    binding: Stored | None

    @classmethod
    def gather(cls, cache: ObjectCache, namespace: str, name: str) -> "ClaimSnapshot | None":
        claim = cache.get("ClusterClaim", namespace, name)
        if claim is None:
            return None
        where = claim.text("spec", "namespace")
        return cls(
            claim=claim,
            pool=cache.get("ClusterPool", namespace, claim.text("spec", "clusterPoolName")),
            cluster=cache.get("ClusterDeployment", where, where) if where else None,
            role=cache.get("Role", where, CLAIM_OWNER) if where else None,
            binding=cache.get("RoleBinding", where, CLAIM_OWNER) if where else None,
        )

    @property
    def is_agreed(self) -> bool:
        """Whether cluster and claim name each other."""
        return self.is_of_pool and self.cluster is not None and claim_of(self.cluster) == self.claim.name

    @property
    def is_of_pool(self) -> bool:
        """Whether the cluster that the claim names is one of its pool: users may write any name there."""
        if self.cluster is None:
            return False
        at = ("spec", "clusterPoolRef")
        named = (self.cluster.text(*at, "namespace"), self.cluster.text(*at, "poolName"))
        return named == (self.claim.namespace, self.claim.text("spec", "clusterPoolName"))


def decide_claim(snapshot: ClaimSnapshot, now: datetime) -> Decision:
    deciding, claim = Deciding(now), snapshot.claim
    if claim.is_deleting:
        _end(snapshot, deciding)
        return deciding.decision()
    if deciding.status(claim, initialized(claim, CLAIM_CONDITIONS, now)):
        return deciding.decision()
    if deciding.replace(claim, claim.with_finalizer(CLAIM)) or _has_expired(snapshot, deciding):
        return deciding.decision()
    lifetime = effective_lifetime(claim, snapshot.pool)
    text = write_duration(lifetime) if lifetime is not None else None
    followed = claim.edited(text, "status", "lifetime")
    if claim.text("spec", "namespace") and not _is_conflict(snapshot, deciding):
        _grant(snapshot, deciding)
        followed = with_conditions(followed, _said(snapshot, is_granted=deciding.is_idle), now)
    elif not deciding.is_idle:
        return deciding.decision()
    _tell(claim, followed, deciding)
    deciding.status(claim, followed)
    return deciding.decision()


def effective_lifetime(claim: Stored, pool: Stored | None) -> timedelta | None:
    """Return how long a claim lasts: what it asks for, else the pool's default, and at most the pool's maximum."""
    at = ("spec", "claimLifetime")
    asked = read_duration(claim.text("spec", "lifetime"))
    default = read_duration(pool.text(*at, "default")) if pool is not None else None
    most = read_duration(pool.text(*at, "maximum")) if pool is not None else None
    wanted = asked if asked is not None else default
    return min((each for each in (wanted, most) if each is not None), default=None)


def _has_expired(snapshot: ClaimSnapshot, deciding: Deciding) -> bool:
    """Delete a claim whose time is over, counted from when it had its cluster."""
    claim, lifetime = snapshot.claim, effective_lifetime(snapshot.claim, snapshot.pool)
    began = since(claim, "Pending") if is_status(claim, "Pending", "False") else None
    if lifetime is None or began is None:
        return False
    left = began + lifetime - deciding.now
    if left > timedelta(0):
        deciding.look_again(left)
        return False
    deciding.announce(claim, "Normal", "LifetimeOver", f"the claim has lasted for {write_duration(lifetime)}")
    deciding.do(Delete(claim))
    return True


def _is_conflict(snapshot: ClaimSnapshot, deciding: Deciding) -> bool:
    """Take a claim out of an assignment that another claim has won, whose cluster went before, or of another pool."""
    claim, name = snapshot.claim, snapshot.claim.text("spec", "namespace")
    is_claimed = is_status(claim, "Pending", "False")
    why = _conflict(snapshot, is_claimed=is_claimed)
    if not why:
        return False
    said = Said("Pending", "True", "AssignmentConflict", f"ClusterDeployment {name} {why}")
    if not is_claimed:
        deciding.status(claim, with_conditions(claim, [said], deciding.now))
    deciding.do(Replace(claim.edited(None, "spec", "namespace")))
    return True


def _conflict(snapshot: ClaimSnapshot, *, is_claimed: bool) -> str:
    cluster = snapshot.cluster
    if cluster is not None and not snapshot.is_of_pool:
        return f"is not of the pool {snapshot.claim.text('spec', 'clusterPoolName')}"
    if not is_claimed and (cluster is None or cluster.is_deleting):
        return "goes away"
    return "has another claim" if cluster is not None and claim_of(cluster) not in ("", snapshot.claim.name) else ""


def _said(snapshot: ClaimSnapshot, *, is_granted: bool) -> list[Said]:
    cluster, name = snapshot.cluster, snapshot.claim.text("spec", "namespace")
    if cluster is None:
        if not is_status(snapshot.claim, "Pending", "False"):
            return []  # it has just been assigned, and is not known here yet
        return [Said("ClusterRunning", "False", "ClusterDeleted", f"ClusterDeployment {name} does not exist any more")]
    if cluster.is_deleting:
        return [Said("ClusterRunning", "False", "ClusterDeleting", f"ClusterDeployment {name} is being deleted")]
    if not snapshot.is_agreed or not is_granted:
        return []
    running = (
        Said("ClusterRunning", "True", "Running", "Cluster is running")
        if is_running(cluster)
        else Said("ClusterRunning", "False", "Resuming", "Waiting for the cluster to be running")
    )
    return [Said("Pending", "False", "ClusterClaimed", "Cluster claimed"), running]


def _tell(claim: Stored, followed: Stored, deciding: Deciding) -> None:
    if is_status(followed, "Pending", "False") and not is_status(claim, "Pending", "False"):
        where = claim.text("spec", "namespace")
        deciding.announce(claim, "Normal", "ClusterClaimed", f"ClusterDeployment {where}/{where} is yours")


def _grant(snapshot: ClaimSnapshot, deciding: Deciding) -> None:
    """Let the subjects of a claim read its cluster and the credentials of it, and nobody else."""
    cluster, subjects = snapshot.cluster, list(snapshot.claim.entries("spec", "subjects"))
    if cluster is None or cluster.is_deleting or not snapshot.is_agreed:
        return
    wanted = _role(cluster)
    if snapshot.role is None:
        deciding.do(Create(wanted))
    elif snapshot.role.at("rules") != wanted.at("rules"):
        deciding.do(Replace(snapshot.role.edited(wanted.at("rules"), "rules")))
    held: list[Json] = list(snapshot.binding.entries("subjects")) if snapshot.binding is not None else []
    given: list[Json] = list(subjects)
    if snapshot.binding is None:
        if given:
            deciding.do(Create(_binding(cluster, given)))
    elif held != given:
        deciding.do(Replace(snapshot.binding.edited(given, "subjects")))


def _role(cluster: Stored) -> Stored:
    at = ("spec", "clusterMetadata")
    names: list[Json] = [
        name
        for name in (cluster.text(*at, f"admin{each}SecretRef", "name") for each in ("Kubeconfig", "Password"))
        if name
    ]
    rules: list[Json] = [
        {"apiGroups": [GROUP], "resources": ["clusterdeployments"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"]},
    ]
    metadata: dict[str, Json] = {"name": CLAIM_OWNER, "namespace": cluster.namespace}
    return Stored({"apiVersion": _RBAC, "kind": "Role", "metadata": metadata, "rules": rules})


def _binding(cluster: Stored, subjects: list[Json]) -> Stored:
    return Stored(
        {
            "apiVersion": _RBAC,
            "kind": "RoleBinding",
            "metadata": {"name": CLAIM_OWNER, "namespace": cluster.namespace},
            "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": CLAIM_OWNER},
            "subjects": subjects,
        }
    )


def _end(snapshot: ClaimSnapshot, deciding: Deciding) -> None:
    """Take back the rights, have the pool remove the cluster, and let the claim go."""
    claim, cluster = snapshot.claim, snapshot.cluster
    if CLAIM not in claim.finalizers:
        return
    if cluster is not None and snapshot.is_agreed and not cluster.is_deleting:
        deciding.do(*(Delete(each) for each in (snapshot.binding, snapshot.role) if each is not None))
        if cluster.annotation(REMOVE) != "true":
            deciding.do(Replace(cluster.edited("true", "metadata", "annotations", REMOVE)))
    deciding.do(Replace(claim.without_finalizer(CLAIM)))
