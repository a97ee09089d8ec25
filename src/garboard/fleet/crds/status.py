"""What the controllers write into the status of each kind, as Hive's own do."""

from garboard.documents import Json
from garboard.fleet.crds.schema import (
    AS_WRITTEN,
    count,
    flag,
    mapping,
    moment,
    open_mapping,
    reference,
    sequence,
    text,
)

_STATUS_ENUM: list[Json] = ["True", "False", "Unknown"]


def _hive_conditions() -> dict[str, Json]:
    """Return conditions as most kinds have them: with a time of the last look, and without a generation."""
    condition = mapping(
        {
            "type": text(),
            "status": text(enum=_STATUS_ENUM),
            "lastProbeTime": moment(),
            "lastTransitionTime": moment("When the status changed last."),
            "reason": text(),
            "message": text(),
        },
        required=("status", "type"),
    )
    return sequence(condition, "What is known about the object, one entry for each question.")


def _standard_conditions() -> dict[str, Json]:
    """Return conditions as Kubernetes itself has them."""
    condition = mapping(
        {
            "type": text(maxLength=316),
            "status": text(enum=_STATUS_ENUM),
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "lastTransitionTime": text(format="date-time"),
            "reason": text(minLength=1, maxLength=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
            "message": text(maxLength=32768),
        },
        required=("lastTransitionTime", "message", "reason", "status", "type"),
    )
    return {**sequence(condition), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


_STATUSES: dict[str, dict[str, Json]] = {
    "ClusterDeployment": mapping(
        {
            "installRestarts": count("How many attempts have failed so far."),
            "apiURL": text("Where the cluster's API server is."),
            "webConsoleURL": text(),
            "installerImage": text(),
            "cliImage": text(),
            "installVersion": text(),
            "installStartedTimestamp": moment(),
            "installedTimestamp": moment(),
            "powerState": text(),
            "provisionRef": reference("The ClusterProvision of the present attempt."),
            "certificateBundles": sequence(mapping({"name": text(), "generated": flag()})),
            "platformStatus": open_mapping(),
            "conditions": _hive_conditions(),
        }
    ),
    "ClusterPool": mapping(
        {
            "size": count("Clusters that nobody has claimed, the broken ones included."),
            "standby": count("Installed clusters that do not run."),
            "ready": count("Clusters that are installed, run, and can be claimed."),
            "conditions": _hive_conditions(),
        }
    ),
    "ClusterClaim": mapping(
        {"lifetime": text("How long the claim lasts, by its pool's limits."), "conditions": _hive_conditions()}
    ),
    "ClusterDeploymentCustomization": mapping(
        {
            "clusterDeploymentRef": reference("The ClusterDeployment that has reserved it."),
            "clusterPoolRef": reference("The ClusterPool that has reserved it."),
            "lastAppliedConfiguration": text(),
            "conditions": _standard_conditions(),
        }
    ),
    "ClusterProvision": mapping({"jobRef": reference("The Job that provisions."), "conditions": _hive_conditions()}),
    "ClusterDeprovision": mapping({"completed": flag("Whether nothing is left."), "conditions": _hive_conditions()}),
    "ClusterImageSet": mapping({}),
}


def status_schema(kind: str) -> dict[str, Json]:
    """Return the schema of a status; what another release has written there is kept."""
    return {**_STATUSES[kind], AS_WRITTEN: True}
