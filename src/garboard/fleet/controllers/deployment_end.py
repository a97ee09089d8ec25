"""The end of a ClusterDeployment: its provision is stopped, its cluster destroyed, what it held is given back."""

from collections.abc import Sequence
from typing import Final

from garboard.fleet.controllers.actions import Create, Deciding, Delete, Replace, ReplaceStatus
from garboard.fleet.controllers.conditions import Said, is_status, reason_of, with_conditions
from garboard.fleet.controllers.inventory import holder, is_reserved, released
from garboard.fleet.controllers.marks import (
    API_VERSION,
    DEPLOYMENT_NAME,
    DEPROVISION,
    POOL_NAME_OF_NAMESPACE,
    PROTECTED,
    RUNS,
)
from garboard.fleet.controllers.provisions import is_under_way, owner
from garboard.fleet.controllers.stored import Stored
from garboard.values import Json


def end_deployment(
    deployment: Stored,
    provisions: Sequence[Stored],
    deprovision: Stored | None,
    namespace: Stored | None,
    entry: Stored | None,
    deciding: Deciding,
) -> None:
    if DEPROVISION not in deployment.finalizers:
        return
    if deployment.annotation(PROTECTED) == "true":
        message = f"it is kept until the annotation {PROTECTED} is removed"
        _say(deployment, Said("Provisioned", "False", "DeprovisionFailed", message), deciding)
        return
    under_way = [each for each in provisions if is_under_way(each)]
    if under_way:
        # Nothing may make a cluster while it is destroyed.
        deciding.do(*map(Delete, under_way))
        return
    if any(each.is_deleting for each in provisions):
        return
    if not _is_deprovisioned(deployment, provisions, deprovision, namespace, deciding):
        return
    _let_go(deployment, namespace, entry, deciding)


_NAMESPACE_IS_GOING: Final = (
    "its namespace is being deleted, so that nothing can be created there that would destroy the cluster: destroy it by"
    f" hand, and then remove the finalizer {DEPROVISION}"
)


def infra_id_of(deployment: Stored, provisions: Sequence[Stored]) -> str:
    """Return what identifies everything that was made for a deployment; empty if nothing can have been made."""
    known = [deployment.text("spec", "clusterMetadata", "infraID")]
    known += [each.text("spec", "infraID") for each in reversed(provisions)]
    return next((each for each in known if each), "")


def _is_deprovisioned(
    deployment: Stored,
    provisions: Sequence[Stored],
    deprovision: Stored | None,
    namespace: Stored | None,
    deciding: Deciding,
) -> bool:
    """Say whether nothing is left of the cluster; if there may be, have it destroyed.

    That it was destroyed is on record before its namespace goes, and the ClusterDeprovision with it.
    """
    infra_id = infra_id_of(deployment, provisions)
    is_kept = deployment.at("spec", "preserveOnDelete") is True
    if not infra_id or is_kept or reason_of(deployment, "Provisioned") == "Deprovisioned":
        return True
    if deprovision is None:
        if namespace is not None and namespace.is_deleting:
            _say(deployment, Said("Provisioned", "False", "DeprovisionFailed", _NAMESPACE_IS_GOING), deciding)
        else:
            deciding.do(Create(_deprovision(deployment, infra_id)))
        return False
    if deprovision.at("status", "completed") is True:
        _say(deployment, Said("Provisioned", "False", "Deprovisioned", "Cluster is deprovisioned"), deciding)
        return False
    failed = is_status(deprovision, "DeprovisionFailed", "True")
    said = (
        Said("Provisioned", "False", "DeprovisionFailed", "the cluster could not be destroyed; it is tried again")
        if failed
        else Said("Provisioned", "False", "Deprovisioning", "Cluster is deprovisioning")
    )
    _say(deployment, said, deciding)
    return False


def _let_go(deployment: Stored, namespace: Stored | None, entry: Stored | None, deciding: Deciding) -> None:
    """Give back what the cluster held. Its namespace goes first: nobody who is late can make the cluster again.

    The entry comes last: while the deployment is there, nobody else may have it. What is left undone its pool does.
    """
    if namespace is not None and namespace.label(POOL_NAME_OF_NAMESPACE) and not namespace.is_deleting:
        deciding.do(Delete(namespace))
    deciding.do(Replace(deployment.without_finalizer(DEPROVISION)))
    if entry is not None and is_reserved(entry) and holder(entry) == deployment.name:
        deciding.do(ReplaceStatus(released(entry, deciding.now)))


def _say(deployment: Stored, said: Said, deciding: Deciding) -> None:
    if deciding.status(deployment, with_conditions(deployment, [said], deciding.now)):
        deciding.announce(deployment, "Normal", said.reason, said.message)


def _deprovision(deployment: Stored, infra_id: str) -> Stored:
    at = ("spec", "clusterMetadata")
    spec: dict[str, Json] = {
        "infraID": infra_id,
        "clusterID": deployment.text(*at, "clusterID"),
        "clusterName": deployment.text("spec", "clusterName"),
        "baseDomain": deployment.text("spec", "baseDomain"),
        "platform": {},
    }
    metadata_ref = deployment.mapping(*at, "metadataJSONSecretRef")
    if metadata_ref:
        spec["metadataJSONSecretRef"] = metadata_ref
    metadata: dict[str, Json] = {
        "name": deployment.name,
        "namespace": deployment.namespace,
        "labels": {DEPLOYMENT_NAME: deployment.name},
        "ownerReferences": [owner(deployment)],
        "finalizers": [RUNS],
    }
    return Stored({"apiVersion": API_VERSION, "kind": "ClusterDeprovision", "metadata": metadata, "spec": spec})
