"""Objects of a fleet as an API server has them, for dashboards: at every stage, with claims, failures and logs."""

from typing import Any

from garboard.fleet.controllers import Stored
from garboard.fleet.dashboard import SHOWN_KINDS, DashboardObjects, shown_of

HIVE = "hive.openshift.io/v1"
CREATED = "2026-01-02T03:04:05Z"
LOG = "\n".join(f"line {number} of the log" for number in range(80))


def object_of(kind: str, namespace: str, name: str, spec: Any, status: Any = None, **metadata: Any) -> dict[str, Any]:
    named = {"namespace": namespace, "name": name, "uid": f"{kind}/{namespace}/{name}", "creationTimestamp": CREATED}
    content = {"apiVersion": HIVE, "kind": kind, "metadata": {**named, **metadata}, "spec": spec}
    return {**content, "status": status} if status is not None else content


def says(type_: str, status: str, reason: str = "Because", message: str = "", at: str = CREATED) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def pool(name: str = "edge", size: int = 2, *said: dict[str, str], **spec: Any) -> dict[str, Any]:
    return object_of("ClusterPool", "fleet", name, {"size": size, **spec}, {"conditions": [*said]})


def cluster(
    name: str, *said: dict[str, str], pool_name: str = "edge", installed: bool = False, claim: str = "",
    provision: str = "", power: str = "", deleting: bool = False, **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    ref = {"namespace": "fleet", "poolName": pool_name, **({"claimName": claim} if claim else {})}
    status: dict[str, Any] = {"conditions": [*said], **({"powerState": power} if power else {})}
    if provision:
        status |= {"provisionRef": {"name": provision}, "installStartedTimestamp": CREATED}
    metadata = {"deletionTimestamp": CREATED} if deleting else {}
    content = {"clusterName": name, "installed": installed, **({"clusterPoolRef": ref} if pool_name else {}), **spec}
    return object_of("ClusterDeployment", name, name, content, status, **metadata)


def provision(of: str, name: str, stage: str, *said: dict[str, str], log: str = "", attempt: int = 0) -> dict[str, Any]:
    spec = {"clusterDeploymentRef": {"name": of}, "stage": stage, "attempt": attempt, "podSpec": {"containers": []}}
    return object_of(
        "ClusterProvision", of, name, {**spec, **({"installLog": log} if log else {})}, {"conditions": [*said]}
    )


def deprovision(of: str, *said: dict[str, str], completed: bool = False) -> dict[str, Any]:
    return object_of("ClusterDeprovision", of, of, {"infraID": "i"}, {"conditions": [*said], "completed": completed})


def claim(
    name: str, *said: dict[str, str], pool_name: str = "edge", cluster_name: str = "", lifetime: str = ""
) -> dict[str, Any]:
    spec = {"clusterPoolName": pool_name, **({"namespace": cluster_name} if cluster_name else {})}
    return object_of(
        "ClusterClaim", "fleet", name, spec, {"conditions": [*said], **({"lifetime": lifetime} if lifetime else {})}
    )


FAILED = says("ProvisionFailed", "True", "ManifestPatchNoMatch", "nothing is matched by openshift/99_*.yaml")
STOPPED = says("ProvisionStopped", "True", "FailureReasonNotRetryable", "the same input fails again")
# One cluster at each stage, by the name of the stage.
CLUSTERS: tuple[dict[str, Any], ...] = (
    cluster("failed", FAILED, STOPPED),
    cluster("retrying", FAILED, provision="retrying-1"),
    cluster("waiting", says("RequirementsMet", "False", "ImageSetNotFound", "ClusterImageSet img does not exist")),
    cluster("initializing", provision="initializing-0"),
    cluster("provisioning", provision="provisioning-0", clusterMetadata={"infraID": "provisioning-x7k2p"}),
    cluster("deleting", says("Provisioned", "False", "Deprovisioning"), deleting=True),
    cluster("ready", installed=True, power="Running", clusterMetadata={"infraID": "ready-a8b9c"}),
    cluster("standby", installed=True),
    cluster("claimed", installed=True, power="Running", claim="mine"),
    cluster("installed", installed=True, power="Running", pool_name=""),
)  # fmt: skip
PROVISIONS: tuple[dict[str, Any], ...] = (
    provision("failed", "failed-0", "failed", says("ClusterProvisionFailed", "True", "ManifestPatchNoMatch", "none"),
              log=LOG),
    provision("retrying", "retrying-1", "failed",
              says("ClusterProvisionFailed", "True", "InstallerFailed", "it ended with 4", "2026-01-02T04:00:00Z"),
              log="short\n", attempt=1),
    provision("initializing", "initializing-0", "initializing"),
    provision("provisioning", "provisioning-0", "provisioning"),
    provision("ready", "ready-0", "complete", log="fine\n"),
)  # fmt: skip
CLAIMS: tuple[dict[str, Any], ...] = (
    claim("mine", says("Pending", "False", "ClusterClaimed"), cluster_name="claimed", lifetime="8h0m0s"),
    claim(
        "theirs", says("Pending", "True", "NoClusters", "position 1 of 1; waits for a cluster that is being installed")
    ),
)
POOLS: tuple[dict[str, Any], ...] = (
    pool("edge", 3, says("InventoryValid", "False", "Invalid", '{"Missing": ["site-c"]}'), maxSize=12),
    pool("idle", 0),
)


def as_objects(*contents: dict[str, Any]) -> DashboardObjects:
    """Return objects as a dashboard keeps them."""
    kept = [Stored(shown_of(each["kind"], each)) for each in contents]
    return DashboardObjects(*(tuple(each for each in kept if each.kind == kind) for kind in SHOWN_KINDS))


EVERYTHING = (*POOLS, *CLAIMS, *CLUSTERS, *PROVISIONS)
