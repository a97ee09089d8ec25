"""When the cluster of a lab is ready, decided from a listing of its objects. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from garboard.lab.topology import Lab

# What the functions below read.
LISTED = "nodes,deployments,daemonsets,pods"
MIRROR = "kubernetes.io/config.mirror"


def missing_for_ready(listing: Any, lab: Lab) -> list[str]:
    """Say what is missing: every node Ready, CoreDNS available, kube-proxy running on every node."""
    items = listing.get("items") or []
    ready = {item["metadata"]["name"] for item in items if item["kind"] == "Node" and _is_true(item, "Ready")}
    missing = [f"node {node.name} is not Ready" for node in lab.nodes if node.name not in ready]
    add_ons = {item["metadata"]["name"]: item for item in items if item["metadata"].get("namespace") == "kube-system"}
    dns = add_ons.get("coredns")
    if dns is not None and not _is_true(dns, "Available"):
        missing.append("CoreDNS is not available")
    proxy = add_ons.get("kube-proxy")
    if proxy is not None:
        available = proxy.get("status", {}).get("numberAvailable", 0)
        if available < len(lab.nodes):
            missing.append(f"kube-proxy runs on {available} of {len(lab.nodes)} nodes")
    return missing


def _is_true(item: Any, condition: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def not_yet_restarted(listing: Any, since: datetime) -> list[str]:
    """Say which nodes have not reported, and which pods of kube-system do not run, since the cluster was started.

    A cluster that was stopped still has the words of its last moments: only what is newer than the start counts.
    """
    items = listing.get("items") or []
    missing = [
        f"node {item['metadata']['name']} has not reported yet"
        for item in items
        if item["kind"] == "Node" and not _reported(item, since)
    ]
    pods = [item for item in items if item["kind"] == "Pod" and item["metadata"].get("namespace") == "kube-system"]
    late = [item["metadata"]["name"] for item in pods if _is_wanted(item) and not _runs(item, since)]
    return missing + [f"pod {name} does not run yet" for name in late]


def _reported(node: Any, since: datetime) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(
        each["type"] == "Ready" and _moment(each.get("lastHeartbeatTime")) >= since.timestamp() for each in conditions
    )


def _is_wanted(pod: Any) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in {"Succeeded", "Failed"}


def _runs(pod: Any, since: datetime) -> bool:
    """Say whether every container was started since; static pods are not asked for more, for their probes are slow."""
    is_static = MIRROR in (pod["metadata"].get("annotations") or {})
    statuses = pod["status"].get("containerStatuses") or []
    starts = list(_starts(statuses))
    fresh = len(starts) == len(pod["spec"]["containers"]) and all(each >= since.timestamp() for each in starts)
    return fresh and (is_static or all(each["ready"] for each in statuses))


def _starts(statuses: Any) -> Iterator[float]:
    for each in statuses:
        if "running" in each["state"]:
            yield _moment(each["state"]["running"].get("startedAt"))


def _moment(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
