"""What is to be done about a ClusterDeployment: what it requires, its provisions, and its end."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from garboard.errors import GarboardError
from garboard.fleet.controllers.actions import Deciding, Decision, Delete
from garboard.fleet.controllers.cache import (
    BY_DEPLOYMENT,
    ObjectCache,
    config_map_of,
    own_customization,
    pool_of,
    secrets_of,
    shared_customization,
)
from garboard.fleet.controllers.conditions import (
    DEPLOYMENT_CONDITIONS,
    Said,
    initialized,
    is_status,
    with_conditions,
)
from garboard.fleet.controllers.deployment_end import end_deployment
from garboard.fleet.controllers.durations import read_duration
from garboard.fleet.controllers.install_configs import read_template, secret_text
from garboard.fleet.controllers.marks import DELETE_AFTER, DEPROVISION, PAUSED, PLATFORM
from garboard.fleet.controllers.provisions import follow_provision, is_under_way, start_provision
from garboard.fleet.controllers.stored import Stored, oldest_first
from garboard.fleet.install_config import FILE_NAME
from garboard.values import dataclass

_KEPT_FAILURES: timedelta = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSnapshot:
    """Everything that is known when a ClusterDeployment is decided about."""

    deployment: Stored
    provisions: tuple[Stored, ...]  # oldest first
    deprovision: Stored | None
    image_set: Stored | None
    customizations: Mapping[str, Stored]  # of its own namespace, those that it names
    secrets: Mapping[str, Stored]  # those that it names
    config_map: Stored | None  # the one with manifests
    namespace: Stored | None
    entry: Stored | None  # the inventory entry of its pool

    @classmethod
    def gather(cls, cache: ObjectCache, namespace: str, name: str) -> "DeploymentSnapshot | None":
        deployment = cache.get("ClusterDeployment", namespace, name)
        if deployment is None:
            return None
        pool_namespace, entry = pool_of(deployment)[0], own_customization(deployment)
        kind = "ClusterDeploymentCustomization"
        names = {entry, shared_customization(deployment)} - {""}
        copies = ((each, cache.get(kind, namespace, each)) for each in names)
        secrets = ((each, cache.get("Secret", namespace, each)) for each in secrets_of(deployment))
        image_set = deployment.text("spec", "provisioning", "imageSetRef", "name")
        return cls(
            deployment=deployment,
            provisions=tuple(oldest_first(cache.indexed("ClusterProvision", BY_DEPLOYMENT, f"{namespace}/{name}"))),
            deprovision=cache.get("ClusterDeprovision", namespace, name),
            image_set=cache.get("ClusterImageSet", "", image_set) if image_set else None,
            customizations={each: found for each, found in copies if found is not None},
            secrets={each: found for each, found in secrets if found is not None},
            config_map=cache.get("ConfigMap", namespace, config_map_of(deployment)),
            namespace=cache.get("Namespace", "", namespace),
            entry=cache.get(kind, pool_namespace, entry) if entry else None,
        )

    @property
    def provision(self) -> Stored | None:
        """The provision that the status names."""
        name = self.deployment.text("status", "provisionRef", "name")
        return next((each for each in self.provisions if each.name == name), None) if name else None


def decide_deployment(snapshot: DeploymentSnapshot, now: datetime) -> Decision:
    deciding, deployment = Deciding(now), snapshot.deployment
    if deployment.annotation(PAUSED) == "true":
        return deciding.decision()
    if deployment.is_deleting:
        end_deployment(
            deployment, snapshot.provisions, snapshot.deprovision, snapshot.namespace, snapshot.entry, deciding
        )
        return deciding.decision()
    first = initialized(deployment, DEPLOYMENT_CONDITIONS, now)
    # Of an installed cluster nothing else has to be found out: one write says all.
    if deciding.status(deployment, _running(first, now) if deployment.at("spec", "installed") is True else first):
        return deciding.decision()
    if _is_over(deployment, deciding) or deciding.replace(deployment, _marked(deployment)):
        return deciding.decision()
    if deployment.at("spec", "installed") is True:
        _installed(snapshot, deciding)
    elif deployment.at("spec", "clusterInstallRef") is None and deployment.at("spec", "provisioning") is not None:
        _install(snapshot, deciding)
    return deciding.decision()


def _is_over(deployment: Stored, deciding: Deciding) -> bool:
    """Delete a deployment that was to last for some time only."""
    lasts = read_duration(deployment.annotation(DELETE_AFTER))
    if lasts is None:
        return False
    left = deployment.created + lasts - deciding.now
    if left > timedelta(0):
        deciding.look_again(left)
        return False
    deciding.do(Delete(deployment))
    return True


def _marked(deployment: Stored) -> Stored:
    """Return a deployment with its finalizer and the label of its platform."""
    platform = next(iter(deployment.mapping("spec", "platform")), "")
    marked = deployment.with_finalizer(DEPROVISION)
    return marked.edited(platform, "metadata", "labels", PLATFORM) if platform else marked


def _running(deployment: Stored, now: datetime) -> Stored:
    """Return an installed cluster with its status: without power control, it runs."""
    running = deployment.edited("Running", "status", "powerState")
    return with_conditions(running, [Said("Provisioned", "True", "Provisioned", "Cluster is provisioned")], now)


def _installed(snapshot: DeploymentSnapshot, deciding: Deciding) -> None:
    """Remove what is left of attempts that have failed, once nobody looks for their logs any more."""
    for each in snapshot.provisions:
        if each.text("spec", "stage") == "failed":
            left = each.created + _KEPT_FAILURES - deciding.now
            if left <= timedelta(0):
                deciding.do(Delete(each))
            else:
                deciding.look_again(left)


def _install(snapshot: DeploymentSnapshot, deciding: Deciding) -> None:
    """Check what an attempt needs before one begins, then begin one, or follow the one that there is."""
    deployment = snapshot.deployment
    if deployment.text("status", "provisionRef", "name"):
        follow_provision(deployment, snapshot.provision, deciding)
        return
    if is_status(deployment, "ProvisionStopped", "True"):
        said = Said("Provisioned", "False", "ProvisionStopped", "Provisioning has been stopped")
        deciding.status(deployment, with_conditions(deployment, [said], deciding.now))
        return
    if not any(is_under_way(each) for each in snapshot.provisions):
        required = _requirements(snapshot)
        if deciding.status(deployment, with_conditions(deployment, [required], deciding.now)):
            is_met = required.status == "True"
            deciding.announce(deployment, "Normal" if is_met else "Warning", required.reason, required.message)
            return
        if required.status != "True":
            return
    start_provision(deployment, snapshot.provisions, deciding)


def _requirements(snapshot: DeploymentSnapshot) -> Said:
    deployment = snapshot.deployment
    at = ("spec", "provisioning")
    image_set = deployment.text(*at, "imageSetRef", "name")
    if image_set and snapshot.image_set is None:
        return _unmet("ClusterImageSetNotFound", f"ClusterImageSet {image_set} does not exist")
    name = deployment.text(*at, "installConfigSecretRef", "name")
    if not name:
        return _unmet("InstallConfigRefNotSet", "provisioning.installConfigSecretRef is not set")
    for each in secrets_of(deployment):
        if each not in snapshot.secrets:
            return _unmet("InstallConfigValidationFailed", f"Secret {deployment.namespace}/{each} does not exist")
    manifests = config_map_of(deployment)
    if manifests and snapshot.config_map is None:
        return _unmet("InstallConfigValidationFailed", f"ConfigMap {deployment.namespace}/{manifests} does not exist")
    wrong = _wrong_config(snapshot.secrets[name], deployment)
    if wrong:
        return _unmet("InstallConfigValidationFailed", wrong)
    for each in (shared_customization(deployment), own_customization(deployment)):
        if each and each not in snapshot.customizations:
            message = f"ClusterDeploymentCustomization {deployment.namespace}/{each} does not exist"
            return _unmet("CustomizationRefNotAvailable", message)
    return Said("RequirementsMet", "True", "AllRequirementsMet", "All pre-provision requirements met")


def _wrong_config(secret: Stored, deployment: Stored) -> str:
    """Return why an install config is not one of this deployment, without what it says."""
    where = f"Secret {secret.namespace}/{secret.name}"
    if secret_text(secret, FILE_NAME) is None:
        return f"{where} has no key {FILE_NAME}"
    try:
        config = read_template(secret)
    except GarboardError:
        return f"{FILE_NAME} of {where} cannot be read"
    if config.cluster_name not in ("", deployment.text("spec", "clusterName")):
        return f"{FILE_NAME} of {where} is for another clusterName"
    return ""


def _unmet(reason: str, message: str) -> Said:
    return Said("RequirementsMet", "False", reason, message)
