"""Customizations (Hive's ClusterDeploymentCustomization): compiled, and applied to install configs and manifests.

All of it is pure: trees of files are values. What a patch does is decided by `garboard.patches` alone.
"""

from garboard.fleet.customize.apply import CustomizedTree, Rules, TypeSource, customize
from garboard.fleet.customize.compile import Customization, ManifestMatch, ManifestPatch, compile_customization
from garboard.fleet.customize.failure import (
    CustomizationFailed,
    CustomizationFailure,
    CustomizationStep,
    FailureReason,
)
from garboard.fleet.customize.tree import Irregular, ManifestDocument, ManifestTree, TreeEntry, is_protected

__all__ = [
    "Customization",
    "CustomizationFailed",
    "CustomizationFailure",
    "CustomizationStep",
    "CustomizedTree",
    "FailureReason",
    "Irregular",
    "ManifestDocument",
    "ManifestMatch",
    "ManifestPatch",
    "ManifestTree",
    "Rules",
    "TreeEntry",
    "TypeSource",
    "compile_customization",
    "customize",
    "is_protected",
]
