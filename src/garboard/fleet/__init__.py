"""Fleets: Hive's documents, the customizations of what an installer writes, and making clusters of them.

Everything here is pure. Files are read and written by `cli` and `node`, which also connect installers to the machine.
"""

from garboard.fleet.customize import (
    Customization,
    CustomizationFailed,
    CustomizationFailure,
    CustomizedTree,
    Irregular,
    ManifestTree,
    Rules,
    TreeEntry,
    customize,
)
from garboard.fleet.documents import FleetDocuments, InvalidFleetDocuments, load_documents
from garboard.fleet.install_config import InstallConfig, PatchedInstallConfig, patch_install_config
from garboard.fleet.installer import ManifestSource
from garboard.fleet.requests import ProvisionRequest
from garboard.fleet.resolve import resolve_all, resolve_deployment, resolve_pool
from garboard.fleet.scrubbing import Scrubber

__all__ = [
    "Customization",
    "CustomizationFailed",
    "CustomizationFailure",
    "CustomizedTree",
    "FleetDocuments",
    "InstallConfig",
    "InvalidFleetDocuments",
    "Irregular",
    "ManifestSource",
    "ManifestTree",
    "PatchedInstallConfig",
    "ProvisionRequest",
    "Rules",
    "Scrubber",
    "TreeEntry",
    "customize",
    "load_documents",
    "patch_install_config",
    "resolve_all",
    "resolve_deployment",
    "resolve_pool",
]
