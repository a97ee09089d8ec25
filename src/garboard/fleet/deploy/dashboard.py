"""The dashboard as objects: its account, which reads a fleet and asks about viewers, and what serves it."""

from typing import Final

from garboard.documents import Json
from garboard.fleet.crds.definitions import GROUP
from garboard.fleet.dashboard import SHOWN_KINDS
from garboard.manifests.objects import Subject, binding, role, rule

DASHBOARD: Final = "garboard-fleet-dashboard"
# Who is bound to it may see the dashboard.
VIEWER: Final = "garboard-fleet-viewer"
DASHBOARD_PORT: Final = 8443
_READING = ["get", "list", "watch"]


def dashboard_objects(
    namespace: str, image: str, pod_security: Json, container_security: Json
) -> list[dict[str, Json]]:
    """Return the objects in the order in which each finds what it needs; the namespace is there."""
    account = Subject("ServiceAccount", DASHBOARD, namespace)
    reading = rule([*SHOWN_KINDS.values()], _READING, api_group=GROUP)
    reviewing = (
        rule(["tokenreviews"], ["create"], api_group="authentication.k8s.io"),
        rule(["subjectaccessreviews"], ["create"], api_group="authorization.k8s.io"),
    )
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DASHBOARD, "namespace": namespace}},
        role(VIEWER, (reading,)).content,
        role(DASHBOARD, (reading, *reviewing)).content,
        binding(DASHBOARD, DASHBOARD, [account]).content,
        _deployment(namespace, image, pod_security, container_security),
        _service(namespace),
    ]


def _deployment(namespace: str, image: str, pod_security: Json, container_security: Json) -> dict[str, Json]:
    labels: dict[str, Json] = {"app.kubernetes.io/name": DASHBOARD}
    container: dict[str, Json] = {
        "name": "dashboard",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["fleet", "dashboard", "--address", f"0.0.0.0:{DASHBOARD_PORT}"],
        "ports": [{"name": "https", "containerPort": DASHBOARD_PORT}],
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security,
    }
    pod: dict[str, Json] = {
        "serviceAccountName": DASHBOARD,
        "containers": [container],
        "securityContext": pod_security,
    }
    spec: dict[str, Json] = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata: dict[str, Json] = {"name": DASHBOARD, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _probe(path: str) -> Json:
    return {
        "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, "periodSeconds": 10, "failureThreshold": 3,
    }  # fmt: skip


def _service(namespace: str) -> dict[str, Json]:
    spec: dict[str, Json] = {
        "selector": {"app.kubernetes.io/name": DASHBOARD},
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}],
    }
    metadata: dict[str, Json] = {"name": DASHBOARD, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
