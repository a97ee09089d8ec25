"""The peer of a benchmark: a plain kopf operator that takes installed ClusterDeployments on as our controller does.

Run by `kopf run`; the file of $RESUMED grows by a byte for each object that is looked at.
"""

import os
from pathlib import Path
from typing import Any

import kopf

_KIND = ("hive.openshift.io", "v1", "clusterdeployments")
_PROVISIONED = {
    "type": "Provisioned", "status": "True", "reason": "Provisioned", "message": "Cluster is provisioned",
    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": "2026-01-01T00:00:00Z",
}  # fmt: skip


def log_in(**given: Any) -> Any:
    return kopf.login_with_kubeconfig(**given)


def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = "hive.openshift.io/deprovision"


def settle(patch: Any, status: Any, **_: Any) -> None:
    """Say in an installed cluster's status that it is provisioned, and label it."""
    with Path(os.environ["RESUMED"]).open("ab") as resumed:
        resumed.write(b".")
    if not status.get("conditions"):
        patch.status["conditions"] = [_PROVISIONED]
        patch.status["powerState"] = "Running"
        patch.meta.setdefault("labels", {})["hive.openshift.io/cluster-platform"] = "none"


def end(**_: Any) -> None:
    """Nothing is to be destroyed; that there is something to do when a cluster goes has kopf set a finalizer."""


kopf.on.login()(log_in)
kopf.on.startup()(configure)
kopf.on.create(*_KIND)(settle)
kopf.on.resume(*_KIND)(settle)
kopf.on.delete(*_KIND)(end)
