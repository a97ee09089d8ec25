"""The objects of a live cluster, comparable with those of another: without names that are drawn, times and keys."""

import base64
import json
import re
from typing import Any

from tools.harness.lab import LabUnderTest

NAMESPACED = (
    "configmaps",
    "secrets",
    "serviceaccounts",
    "services",
    "deployments",
    "daemonsets",
    "roles",
    "rolebindings",
)
CLUSTER_WIDE = ("clusterroles", "clusterrolebindings", "nodes")
_ASSIGNED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
# Certificates, keys and what is signed or hashed from them; each cluster has its own.
_DRAWN = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\s*"
    r"|(?<=certificate-authority-data: )\S+"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    re.DOTALL,
)
Object = dict[str, Any]


def comparable_objects(lab: LabUnderTest, node: str) -> dict[str, Object]:
    """Return what is in kube-system and kube-public, RBAC and Nodes, by kind, namespace and name."""
    found: dict[str, Object] = {}
    for kinds, places in ((NAMESPACED, ("kube-system", "kube-public")), (CLUSTER_WIDE, ("",))):
        for place in places:
            kubectl = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", ",".join(kinds), "-o", "json")
            listed = lab.exec(node, *kubectl, *(("-n", place) if place else ()))
            for item in json.loads(listed.stdout)["items"]:
                name, kept = _kept(item)
                found[name] = kept
    return found


def _kept(item: Object) -> tuple[str, Object]:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _ASSIGNED}
    name = metadata["name"]
    kept = {**item, "metadata": metadata}
    kept.pop("status", None)
    if item["kind"] == "Secret":
        metadata.pop("ownerReferences", None)
        if name.startswith("bootstrap-token-"):
            name = "bootstrap-token-" + _text(item["data"].get("description", ""))
            metadata["name"] = name
        kept["data"] = sorted(item["data"])
    if name == "cluster-info":
        kept["data"] = {key.split("-")[0]: key == "kubeconfig" and value for key, value in item["data"].items()}
    return f"{item['kind']} {metadata.get('namespace', '')}/{name}", json.loads(_DRAWN.sub("-", json.dumps(kept)))


def _text(value: str) -> str:
    return base64.b64decode(value).decode()
