"""What is to be provisioned: everything that an attempt to make one cluster needs, out of documents."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from garboard.fleet.customize import Customization
from garboard.fleet.documents import InstallerVariable, ObjectKey, PlatformBlock
from garboard.fleet.install_config import InstallConfig
from garboard.values import dataclass

PULL_SECRET_KEY: Final = ".dockerconfigjson"
SSH_KEY: Final = "ssh-privatekey"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionRequest:
    """One cluster that is to be made. Secrets are fields that `repr` does not show."""

    name: str  # of the ClusterDeployment: its own, or POOL-ENTRY for an entry of a pool's inventory
    namespace: str
    entry: str  # the folder of its files: the inventory entry, or the deployment itself
    pool: ObjectKey | None
    platform: str
    install_config: InstallConfig
    install_config_customization: Customization | None  # whose installConfigPatches apply
    customizations: tuple[Customization, ...]  # whose installerManifestPatches apply, the specific one last
    image_set: str = ""
    release_image: str = ""
    installer_image: str = ""
    install_attempts_limit: int | None = None
    preserve_on_delete: bool = False
    ssh_known_hosts: tuple[str, ...] = ()
    extra_manifests: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # copied into manifests/
    installer_env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    pull_secret: str = field(default="", repr=False)
    ssh_private_key: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # every text that must not be shown anywhere
    warnings: tuple[str, ...] = ()


def environment_of(variables: Iterable[InstallerVariable]) -> tuple[tuple[str, str], ...]:
    """Return the variables of the installer that have a value of their own."""
    return tuple((each.name, each.value) for each in variables if each.value_from is None)


def platform_warnings(platform: PlatformBlock, config: InstallConfig, where: str) -> tuple[str, ...]:
    """Return what to say where a document and its install config are for different platforms."""
    named = config.platforms
    if not named or set(named) & set(platform):
        return ()
    return (f"{where}: the platform is {next(iter(platform))}, and the install config is for {', '.join(named)}",)
