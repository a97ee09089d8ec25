"""The controller as objects: its namespace and account, what it may do, and a Deployment for each of its shards."""

import re
from collections.abc import Iterable
from typing import Final

from garboard.documents import Json
from garboard.fleet.crds import OWNER, OWNER_LABEL
from garboard.fleet.crds.definitions import GROUP
from garboard.fleet.deploy.dashboard import dashboard_objects
from garboard.manifests.objects import RBAC_GROUP, Subject, binding, role, rule
from garboard.model.image import GARBOARD_IMAGE
from garboard.values import dataclass

NAME: Final = "garboard-fleet-controller"
_SHARD: Final = "fleet.garboard.dev/shard"
# Hive's own name: people who manage the clusters of a pool are bound to it, and bindings to it are copied.
POOL_ADMIN: Final = "hive-cluster-pool-admin"
# Where the controller answers /healthz, /readyz and /metrics.
PORT: Final = 8080
_POD_SECURITY: Final[Json] = {
    "runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
_CONTAINER_SECURITY: Final[Json] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}

_EVERYTHING = ["get", "list", "watch", "create", "update", "patch", "delete"]
_READING = ["get", "list", "watch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDeployment:
    """How the controller is to run, and whether the dashboard is served beside it.

    Each shard serves its part of the namespaces; of its replicas one leads.
    """

    namespace: str = "garboard-fleet"
    image: str = GARBOARD_IMAGE
    replicas: int = 2
    shards: int = 1
    has_dashboard: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The Deployments: their names say of how many shards they are, for a selector cannot be changed."""
        if self.shards == 1:
            return (NAME,)
        return tuple(f"{NAME}-{number}-of-{self.shards}" for number in range(self.shards))

    def left_over(self, found: Iterable[str]) -> tuple[str, ...]:
        """Return those of the Deployments found that an earlier number of shards has left."""
        ours = re.compile(rf"{re.escape(NAME)}(-\d+-of-\d+)?")
        return tuple(sorted(each for each in found if ours.fullmatch(each) and each not in self.names))


def controller_objects(wanted: ControllerDeployment) -> tuple[dict[str, Json], ...]:
    """Return the objects in the order in which each finds what it needs."""
    made: tuple[dict[str, Json], ...] = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted.namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": wanted.namespace}},
        role(POOL_ADMIN, _pool_admin_rules()).content,
        role(NAME, _rules()).content,
        binding(NAME, NAME, [Subject("ServiceAccount", NAME, wanted.namespace)]).content,
        role(NAME, _rules_at_home(), wanted.namespace).content,
        binding(NAME, NAME, [Subject("ServiceAccount", NAME, wanted.namespace)], wanted.namespace).content,
        *(_deployment(wanted, number) for number in range(wanted.shards)),
    )
    if wanted.has_dashboard:
        made += (*dashboard_objects(wanted.namespace, wanted.image, _POD_SECURITY, _CONTAINER_SECURITY),)
    return tuple(map(_labelled, made))


def _labelled(content: dict[str, Json]) -> dict[str, Json]:
    metadata = content["metadata"]
    assert isinstance(metadata, dict)
    return {**content, "metadata": {**metadata, "labels": {OWNER_LABEL: OWNER}}}


def _rules() -> tuple[Json, ...]:
    """Return what the controller may do in every namespace: pools make namespaces of their own."""
    return (
        rule(["*"], [*_EVERYTHING, "deletecollection"], api_group=GROUP),
        rule(["namespaces", "secrets", "configmaps", "serviceaccounts"], _EVERYTHING),
        rule(["pods", "pods/log"], [*_READING, "delete"]),
        rule(["events"], ["create", "patch"]),
        rule(["jobs"], _EVERYTHING, api_group="batch"),
        rule(["roles", "rolebindings"], _EVERYTHING, api_group=RBAC_GROUP),
        # Else it could copy only bindings to what it may do itself.
        rule(["clusterroles"], ["bind"], names=[POOL_ADMIN], api_group=RBAC_GROUP),
        rule(["customresourcedefinitions"], _READING, api_group="apiextensions.k8s.io"),
    )


def _rules_at_home() -> tuple[Json, ...]:
    return (rule(["leases"], ["get", "list", "watch", "create", "update", "delete"], api_group="coordination.k8s.io"),)


def _pool_admin_rules() -> tuple[Json, ...]:
    return (
        rule(["clusterpools", "clusterclaims", "clusterdeploymentcustomizations"], _EVERYTHING, api_group=GROUP),
        rule(["clusterdeployments", "clusterprovisions", "clusterdeprovisions"], _READING, api_group=GROUP),
        rule(["pods", "pods/log", "events"], _READING),
    )


def _deployment(wanted: ControllerDeployment, shard: int) -> dict[str, Json]:
    labels: dict[str, Json] = {"app.kubernetes.io/name": NAME}
    if wanted.shards > 1:
        labels[_SHARD] = f"{shard}-of-{wanted.shards}"
    pod: dict[str, Json] = {
        "serviceAccountName": NAME,
        "containers": [_container(wanted, shard)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "securityContext": _POD_SECURITY,
    }
    spec: dict[str, Json] = {
        "replicas": wanted.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata: dict[str, Json] = {"name": wanted.names[shard], "namespace": wanted.namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _container(wanted: ControllerDeployment, shard: int) -> dict[str, Json]:
    part: list[Json] = ["--shard", f"{shard}/{wanted.shards}"] if wanted.shards > 1 else []
    return {
        "name": "controller",
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "fleet", "controller", "--provisioner", "job", "--image", wanted.image, "--leader-elect",
            "--lease-namespace", wanted.namespace, "--metrics-address", f"0.0.0.0:{PORT}", *part,
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": _CONTAINER_SECURITY,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # of the pod's own
    }  # fmt: skip


def _probe(path: str) -> Json:
    return {"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10, "failureThreshold": 3}
