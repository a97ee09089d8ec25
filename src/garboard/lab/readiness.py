"""What is still missing before a cluster counts as ready, read from a listing of its objects. Pure."""

from typing import Any

from garboard.lab.topology import Lab

LISTED = "nodes,deployments,daemonsets"


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
