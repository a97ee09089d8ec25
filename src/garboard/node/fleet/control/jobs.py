"""Provisions as Jobs: the objects that one attempt needs in the namespace of its cluster."""

from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.attempt import job_name
from garboard.fleet.controllers.marks import DEPLOYMENT_NAME, GROUP, JOB_TYPE, PROVISION_NAME
from garboard.fleet.controllers.provisions import owner
from garboard.values import Json, dataclass

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = "cluster-installer"
_DEADLINE_S, _KEPT_S = 3 * 3600, 24 * 3600


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """Makes the Job of an attempt, with the account and the rights that it works with; the Job is the last."""

    image: str

    def __call__(self, attempt: Stored) -> tuple[Stored, ...]:
        where = attempt.namespace
        subject: dict[str, Json] = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": where}
        role: dict[str, Json] = {"apiGroup": _RBAC, "kind": "Role", "name": _ACCOUNT}
        return (
            _named("v1", "ServiceAccount", where),
            _named(f"{_RBAC}/v1", "Role", where, rules=_rules()),
            _named(f"{_RBAC}/v1", "RoleBinding", where, roleRef=role, subjects=[subject]),
            self._job(attempt),
        )

    def _job(self, attempt: Stored) -> Stored:
        is_destroying = attempt.kind == "ClusterDeprovision"
        deployment = attempt.text("spec", "clusterDeploymentRef", "name") or attempt.label(DEPLOYMENT_NAME)
        labels: dict[str, Json] = {
            JOB_TYPE: "deprovision" if is_destroying else "provision",
            DEPLOYMENT_NAME: deployment,
            PROVISION_NAME: attempt.name,
            f"{GROUP}/install": "true",
        }
        pod: dict[str, Json] = {
            "metadata": {"labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": _ACCOUNT,
                "containers": [self._container(attempt, is_destroying)],
                "volumes": [{"name": "output", "emptyDir": {}}],
            },
        }
        return Stored(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": job_name(attempt),
                    "namespace": attempt.namespace,
                    "labels": labels,
                    "ownerReferences": [owner(attempt)],
                },
                "spec": {
                    "backoffLimit": 0,
                    "completions": 1,
                    "activeDeadlineSeconds": _DEADLINE_S,
                    "ttlSecondsAfterFinished": _KEPT_S,
                    "template": pod,
                },
            }
        )

    def _container(self, attempt: Stored, is_destroying: bool) -> dict[str, Json]:
        command: list[Json] = ["fleet", "attempt", "--namespace", attempt.namespace, "--name", attempt.name]
        command += ["--work", "/output/work", *(["--destroy"] if is_destroying else [])]
        return {
            "name": "hive",
            "image": self.image,
            # The image begins garboard by itself.
            "args": command,
            "resources": {"requests": {"memory": "800Mi"}},
            "volumeMounts": [{"name": "output", "mountPath": "/output"}],
        }


def _rules() -> list[Json]:
    """Return what an attempt may do, in the namespace of its cluster alone."""
    changing: list[Json] = ["clusterprovisions", "clusterprovisions/status", "clusterdeprovisions/status"]
    return [
        {
            "apiGroups": [GROUP],
            "resources": ["clusterdeployments", "clusterdeprovisions", *changing],
            "verbs": ["get", "list", "watch"],
        },
        {"apiGroups": [GROUP], "resources": changing, "verbs": ["update", "patch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update"]},
    ]


def _named(api_version: str, kind: str, namespace: str, **fields: Json) -> Stored:
    metadata: dict[str, Json] = {"name": _ACCOUNT, "namespace": namespace}
    return Stored({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})
