"""The objects that a dashboard shows, and what is kept of each: nothing that could hold a credential."""

from collections.abc import Mapping
from typing import Final

from garboard.fleet.controllers.marks import API_VERSION, DEPLOYMENT_NAME, REMOVE
from garboard.fleet.controllers.stored import Stored
from garboard.values import Json, dataclass

# No Secrets, and nothing else that is not listed here: neither watched, nor asked for.
SHOWN_KINDS: Final = {
    "ClusterPool": "clusterpools",
    "ClusterClaim": "clusterclaims",
    "ClusterDeployment": "clusterdeployments",
    "ClusterProvision": "clusterprovisions",
    "ClusterDeprovision": "clusterdeprovisions",
}
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_LABELS, _ANNOTATIONS = (DEPLOYMENT_NAME,), (REMOVE,)
_SPEC: Final = {
    "ClusterPool": ("size", "maxSize"),
    "ClusterClaim": ("clusterPoolName", "namespace"),
    "ClusterDeployment": ("installed", "clusterPoolRef", "clusterMetadata"),
    "ClusterProvision": ("clusterDeploymentRef", "attempt", "stage", "installLog"),
    "ClusterDeprovision": (),
}
_REF: Final = ("namespace", "poolName", "claimName", "claimedTimestamp", "clusterDeploymentCustomization")
_STATUS: Final = (
    "conditions", "size", "ready", "standby", "lifetime", "powerState", "installRestarts", "provisionRef",
    "installStartedTimestamp", "installedTimestamp", "completed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DashboardObjects:
    """The objects of a fleet at one moment, in any order."""

    pools: tuple[Stored, ...] = ()
    claims: tuple[Stored, ...] = ()
    deployments: tuple[Stored, ...] = ()
    provisions: tuple[Stored, ...] = ()
    deprovisions: tuple[Stored, ...] = ()


def shown_of(kind: str, content: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a dashboard keeps of an object: the fields that it shows, and no others."""
    metadata = _some(content.get("metadata"), _METADATA)
    whole = Stored(content)
    for key, names in (("labels", _LABELS), ("annotations", _ANNOTATIONS)):
        if found := _some(whole.at("metadata", key), names):
            metadata[key] = found
    spec = _some(content.get("spec"), _SPEC[kind])
    if "clusterPoolRef" in spec:
        spec["clusterPoolRef"] = _some(spec["clusterPoolRef"], _REF)
    if "clusterMetadata" in spec:
        spec["clusterMetadata"] = _some(spec["clusterMetadata"], ("infraID",))
    status = _some(content.get("status"), _STATUS)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def _some(value: Json, names: tuple[str, ...]) -> dict[str, Json]:
    return {name: value[name] for name in names if name in value} if isinstance(value, Mapping) else {}
