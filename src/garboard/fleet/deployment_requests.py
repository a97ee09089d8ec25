"""What a ClusterDeployment asks for: its own install config and customizations, or those of the pool that it is of."""

from collections.abc import Iterator

from garboard.fleet.customize import Customization
from garboard.fleet.documents import ClusterDeployment, ObjectKey, Provisioning, WrittenObject
from garboard.fleet.install_config import InstallConfig
from garboard.fleet.references import References
from garboard.fleet.requests import PULL_SECRET_KEY, SSH_KEY, ProvisionRequest, environment_of, platform_warnings
from garboard.patches import Origin, OriginKind

_AT = ("spec", "provisioning")
_POOL_AT = ("spec", "clusterPoolRef", "clusterDeploymentCustomization", "name")


def deployment_request(deployment: WrittenObject[ClusterDeployment], references: References) -> ProvisionRequest | None:
    """Return the request of a deployment; None if its cluster is made already, or by somebody else."""
    spec, before = deployment.value.spec, references.wrong
    provisioning = spec.provisioning
    if spec.installed or provisioning is None:
        return None
    config, is_of_pool = _install_config(deployment, provisioning, references)
    shared, own = _customizations(deployment, provisioning, references)
    request = ProvisionRequest(
        name=deployment.key.name,
        namespace=deployment.key.namespace,
        entry=deployment.key.name,
        pool=_pool_key(deployment),
        platform=next(iter(spec.platform)),
        install_config=config or InstallConfig.empty(deployment.source),
        install_config_customization=own if is_of_pool else None,
        customizations=tuple({each.where: each for each in (shared, own) if each is not None}.values()),
        image_set=provisioning.image_set_ref.name if provisioning.image_set_ref else "",
        release_image=_release_image(deployment, provisioning, references),
        installer_image=provisioning.installer_image_override,
        install_attempts_limit=spec.install_attempts_limit,
        preserve_on_delete=spec.preserve_on_delete,
        ssh_known_hosts=tuple(provisioning.ssh_known_hosts),
        extra_manifests=references.extra_manifests(
            deployment, provisioning.manifests_config_map_ref, provisioning.manifests_secret_ref, _AT
        ),
        installer_env=environment_of(provisioning.installer_env),
        pull_secret=references.secret_text(
            deployment, spec.pull_secret_ref, ("spec", "pullSecretRef"), PULL_SECRET_KEY
        ),
        ssh_private_key=references.secret_text(
            deployment, provisioning.ssh_private_key_secret_ref, (*_AT, "sshPrivateKeySecretRef"), SSH_KEY
        ),
        secrets=references.secrets,
        warnings=tuple(_warnings(deployment, config, shared, None if is_of_pool else own)),
    )
    return request if config is not None and references.wrong == before else None


def _pool_key(deployment: WrittenObject[ClusterDeployment]) -> ObjectKey | None:
    ref = deployment.value.spec.cluster_pool_ref
    return ObjectKey(ref.namespace, ref.pool_name) if ref is not None else None


def _install_config(
    deployment: WrittenObject[ClusterDeployment], provisioning: Provisioning, references: References
) -> tuple[InstallConfig | None, bool]:
    """Return the install config, and whether it is still to be made of the template of the pool.

    One that a pool has made holds the patches of its inventory entry already.
    """
    spec, ref = deployment.value.spec, provisioning.install_config_secret_ref
    if ref is not None:
        config = references.install_config(deployment, ref, (*_AT, "installConfigSecretRef"))
        if config is not None and config.cluster_name not in ("", spec.cluster_name):
            message = f"{spec.cluster_name!r} is not the name in the install config, which is {config.cluster_name!r}"
            references.problem(deployment, ("spec", "clusterName"), message, "give both the same name")
        return config, False
    key = _pool_key(deployment)
    pool = references.documents.pools.get(key) if key is not None else None
    if pool is None:
        at, message = ("spec", "clusterPoolRef"), f"ClusterPool {key} is not in these files"
        references.problem(deployment, at, message, "name its file with -f too, or set installConfigSecretRef")
        return None, True
    at = ("spec", "installConfigSecretTemplateRef")
    config = references.install_config(pool, pool.value.spec.install_config_secret_template_ref, at)
    position = deployment.source.position(("spec", "clusterName"))
    origin = Origin(OriginKind.CONFIG, deployment.source.name, position, f"ClusterDeployment {deployment.key}")
    return config.named(spec.cluster_name, spec.base_domain, origin) if config is not None else None, True


def _customizations(
    deployment: WrittenObject[ClusterDeployment], provisioning: Provisioning, references: References
) -> tuple[Customization | None, Customization | None]:
    """Return the customization of the deployment's provisioning, and that of its inventory entry."""
    pool, shared, own = deployment.value.spec.cluster_pool_ref, None, None
    ref = provisioning.customization_ref
    namespaces = (pool.namespace,) if pool is not None else ()
    if ref is not None and ref.name:
        shared = references.customization(deployment, ref.name, (*_AT, "customizationRef", "name"), namespaces)
    if pool is not None and pool.customization_ref is not None and pool.customization_ref.name:
        own = references.customization(deployment, pool.customization_ref.name, _POOL_AT, namespaces)
    return shared, own


def _release_image(
    deployment: WrittenObject[ClusterDeployment], provisioning: Provisioning, references: References
) -> str:
    """Return the release image: an explicit one wins over that of the image set."""
    of_set = references.release_image(deployment, provisioning.image_set_ref, (*_AT, "imageSetRef"))
    return provisioning.release_image or of_set


def _warnings(
    deployment: WrittenObject[ClusterDeployment],
    config: InstallConfig | None,
    shared: Customization | None,
    own: Customization | None,
) -> Iterator[str]:
    if shared is not None and shared.install_config is not None:
        yield (
            f"{shared.where}: the installConfigPatches of {shared.name} are ignored: a ClusterDeployment's"
            " customizationRef counts for manifests only"
        )
    if own is not None and own.install_config is not None:
        yield (
            f"{own.where}: the installConfigPatches of {own.name} are not applied again: the install config that"
            f" ClusterDeployment {deployment.key} names was made with them"
        )
    if config is not None:
        yield from platform_warnings(deployment.value.spec.platform, config, deployment.where())
