"""Drift as findings of `change adopt`: what an upgrade would drop."""

from collections.abc import Iterator, Mapping

from garboard.change.adopt_codes import AdoptFinding
from garboard.change.drift_files import edits_of
from garboard.change.drifting import cluster_drift
from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.manifests.uploaded import KUBEADM_CONFIG, KUBELET_CONFIG

PATCHES_FOLDER = "/etc/kubernetes/patches"  # where kubeadm's documentation puts them
_MOST = 6


def drift_findings(
    snapshot: ClusterSnapshot, mirrors: Mapping[str, Mapping[str, Json]], workloads: Mapping[str, Json]
) -> Iterator[AdoptFinding]:
    """Yield the components that were edited by hand; a configuration that cannot be rendered is a finding itself."""
    yield from _unrecorded_patches(snapshot)
    if any(snapshot.stored_text(name) is None for name in (KUBEADM_CONFIG, KUBELET_CONFIG)):
        return  # which is a finding of its own
    try:
        drift = cluster_drift(snapshot, mirrors, workloads)
    except BadDocument as error:
        if error.error_class != "unsupported-version":
            yield AdoptFinding(
                code="unreadable-config",
                subject=f"ConfigMap {KUBEADM_CONFIG}",
                message=error.message,
                cure=error.hint or "correct it: kubectl -n kube-system edit configmap kubeadm-config",
            )
        return
    for part in (*drift.nodes, drift.objects):
        for component, fields in edits_of(part).items():
            shown = ", ".join(fields[:_MOST]) + (f" and {len(fields) - _MOST} more" if len(fields) > _MOST else "")
            only = f" --only {part.node}/{component}" if part.node else ""
            cure = (
                f"garboard change drift --adopt{only} records it; to take it out: garboard change drift --correct{only}"
            )
            yield AdoptFinding(
                code="hand-edit",
                node=part.node,
                subject=component,
                message=f"neither the configuration nor a patch has it so: {shown}",
                cure=cure if part.node else "garboard change drift shows it; garboard upgrade apply renders it anew",
            )


def _unrecorded_patches(snapshot: ClusterSnapshot) -> Iterator[AdoptFinding]:
    for node in snapshot.nodes:
        if (node.host_paths or {}).get(PATCHES_FOLDER) == "folder" and not node.patch_set:
            yield AdoptFinding(
                code="patches-not-recorded",
                node=node.name,
                subject=PATCHES_FOLDER,
                message="the folder is there, and the cluster has recorded no patches for this node",
                cure=f"garboard change plan --patches {PATCHES_FOLDER}",
            )
