"""A provision request as an order for the provisioner: its install config patched, its customizations at hand."""

import hashlib
from collections.abc import Mapping

from garboard.documents import Json, write_yaml
from garboard.fleet import (
    Irregular,
    ManifestTree,
    ProvisionRequest,
    Rules,
    Scrubber,
    TreeEntry,
    customize,
    patch_install_config,
)
from garboard.fleet.customize import TypeSource
from garboard.fleet.install_config import is_hosts_config
from garboard.fleet.installers.host_config import read_hosts_config
from garboard.fleet.provision import OutputScrubber, ProvisionRecord
from garboard.host import SYMBOLIC_LINK
from garboard.node.fleet.host_installer import HostInstaller
from garboard.node.fleet.program_installer import ProgramInstaller
from garboard.node.fleet.provisioning import Customized, InstallerOf, ProvisionOrder
from garboard.values import dataclass

# How openshift-install is told which release to install.
_RELEASE = "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"
_PULL_SECRET = "pullSecret"


@dataclass(frozen=True, slots=True)
class PreparedOrder:
    """An order, the record that a new work folder gets, and what is to be said before anything begins."""

    order: ProvisionOrder
    record: ProvisionRecord
    warnings: tuple[str, ...]


def prepare_order(request: ProvisionRequest, types: TypeSource, program: str) -> PreparedOrder:
    """Return the order of a request; patches of its install config that cannot be applied are refused."""
    rules = Rules(types, Scrubber(request.secrets))
    config = patch_install_config(request.install_config, request.install_config_customization, rules)
    data = _with_pull_secret(config.value, config.data, request.pull_secret)
    is_ours = is_hosts_config(config.value)
    if is_ours:
        read_hosts_config(data, source=request.install_config.source.name)  # refused before a folder is made

    def customized(tree: Mapping[str, bytes | str]) -> Customized:
        found = customize(
            ManifestTree.of({name: _entry(each) for name, each in tree.items()}), request.customizations, rules
        )
        files = ((name, found.tree.content(name)) for name in found.tree.patched_names)
        return Customized({name: each for name, each in files if isinstance(each, bytes)}, found.warnings)

    order = ProvisionOrder(
        namespace=request.namespace,
        deployment=request.name,
        install_config=data,
        customize=customized,
        extra_manifests=request.extra_manifests,
        attempts_limit=request.install_attempts_limit,
        digest=hashlib.sha256(data + repr(request.customizations).encode()).hexdigest(),
    )
    record = ProvisionRecord(
        namespace=request.namespace, deployment=request.name, installer=HostInstaller.name if is_ours else program
    )
    return PreparedOrder(order, record, (*request.warnings, *config.warnings))


def installer_for(record: ProvisionRecord, environment: Mapping[str, str]) -> InstallerOf:
    """Return what makes the installer that a record names."""
    if record.installer == HostInstaller.name:
        return lambda scrubber, reporter, _lock: HostInstaller(reporter, scrubber)
    return lambda scrubber, reporter, lock: ProgramInstaller(
        record.installer, reporter, scrubber, environment=environment, lock=lock
    )


def environment_for(request: ProvisionRequest) -> dict[str, str]:
    """Return the variables that the installer gets beside our own."""
    release = {_RELEASE: request.release_image} if request.release_image else {}
    return {**release, **dict(request.installer_env)}


def scrubber_for(request: ProvisionRequest) -> OutputScrubber:
    return OutputScrubber((*request.secrets, request.pull_secret, request.ssh_private_key))


def _with_pull_secret(value: Json, data: bytes, pull_secret: str) -> bytes:
    """Return the install config with the pull secret, as Hive puts it there."""
    if not pull_secret or not isinstance(value, dict) or value.get(_PULL_SECRET):
        return data
    return write_yaml({**value, _PULL_SECRET: pull_secret.strip()}).encode()


def _entry(content: bytes | str) -> TreeEntry:
    if isinstance(content, bytes):
        return content
    return Irregular(content, is_link=content == SYMBOLIC_LINK)
