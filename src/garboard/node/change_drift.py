"""A cluster as a change sees it, and what is asked for where that depends on the hand edits which are found there."""

from functools import partial

from garboard.change.drift_request import AskedChange, DriftRequest
from garboard.change.drifting import ClusterDrift, cluster_drift
from garboard.change.request import ChangeRequest, host_paths_in
from garboard.change.saved_plan import SavedPlan
from garboard.change.snapshot import ClusterSnapshot
from garboard.node.change_observe import ObservedCluster, observe_cluster
from garboard.node.kubelet_observe import AskedKubelets, with_kubelets


def observe_for(
    request: AskedChange | None, kubeconfig: str | None, *, saved: SavedPlan | None = None
) -> ObservedCluster:
    """Look at a cluster for a change; where that is about hand edits, kubelets are asked what they run with, too."""
    if isinstance(request, DriftRequest) or (saved is not None and saved.correction is not None):
        return with_kubelets(observe_cluster(kubeconfig), kubeconfig, AskedKubelets.ALL)
    return observe_cluster(kubeconfig, paths=host_paths_in(request) if request else ())


def drift_in(observed: ObservedCluster, snapshot: ClusterSnapshot) -> ClusterDrift:
    """Compare what was seen with what a snapshot stores."""
    return cluster_drift(snapshot, observed.mirrors, observed.workloads, observed.kubelets)


def resolved(request: AskedChange, observed: ObservedCluster, snapshot: ClusterSnapshot | None = None) -> ChangeRequest:
    """Return what is asked for in words that need no further look; `snapshot` is another view of what was seen."""
    if not isinstance(request, DriftRequest):
        return request
    return request.resolved(snapshot or observed.snapshot, partial(drift_in, observed))
