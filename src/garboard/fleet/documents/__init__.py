"""The documents of a fleet (hive.openshift.io/v1): read from files, typed, checked as Hive's admission does.

What they mean together is left to `garboard.fleet.requests`, what their patches do to `garboard.fleet.customize`.
"""

from garboard.fleet.documents.kinds import (
    API_VERSION,
    ClusterClaim,
    ClusterDeployment,
    ClusterDeploymentCustomization,
    ClusterImageSet,
    ClusterPool,
    ConfigMapObject,
    CustomizationSpec,
    InstallerVariable,
    ManifestPatchEntry,
    ManifestSelector,
    NameRef,
    PatchEntity,
    PlatformBlock,
    Provisioning,
    SecretObject,
)
from garboard.fleet.documents.load import FleetDocuments, ObjectKey, WrittenObject, load_documents
from garboard.fleet.documents.problems import DocumentProblem, InvalidFleetDocuments, field_text, problem_at
from garboard.fleet.documents.reading import MAX_OBJECT_BYTES

__all__ = [
    "API_VERSION",
    "MAX_OBJECT_BYTES",
    "ClusterClaim",
    "ClusterDeployment",
    "ClusterDeploymentCustomization",
    "ClusterImageSet",
    "ClusterPool",
    "ConfigMapObject",
    "CustomizationSpec",
    "DocumentProblem",
    "FleetDocuments",
    "InstallerVariable",
    "InvalidFleetDocuments",
    "ManifestPatchEntry",
    "ManifestSelector",
    "NameRef",
    "ObjectKey",
    "PatchEntity",
    "PlatformBlock",
    "Provisioning",
    "SecretObject",
    "WrittenObject",
    "field_text",
    "load_documents",
    "problem_at",
]
