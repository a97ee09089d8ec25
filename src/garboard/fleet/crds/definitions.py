"""The kinds with their names, columns and subresources, and the documents that define them to an API server."""

from typing import Final

from garboard.documents import Json
from garboard.fleet.crds.descriptions import DESCRIPTIONS
from garboard.fleet.crds.provision_kinds import DeprovisionSpec, ProvisionAttemptSpec
from garboard.fleet.crds.rules import LIMITS, RULES
from garboard.fleet.crds.schema import SchemaNode, mapping, schema_of, text
from garboard.fleet.crds.status import status_schema
from garboard.fleet.documents import API_VERSION
from garboard.fleet.documents.kinds import (
    ClaimSpec,
    CustomizationSpec,
    DeploymentSpec,
    HiveStruct,
    ImageSetSpec,
    PoolSpec,
)
from garboard.values import dataclass

GROUP, _, VERSION = API_VERSION.partition("/")
# What tells our definitions from those of Hive itself, which are never touched.
OWNER_LABEL, OWNER = "fleet.garboard.dev/installed-by", "garboard"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrinterColumn:
    """A column of `kubectl get`; without a type it is text."""

    name: str
    path: str
    type: str = "string"

    def content(self) -> dict[str, Json]:
        return {"name": self.name, "type": self.type, "jsonPath": self.path}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedKind:
    """One kind of hive.openshift.io/v1."""

    kind: str
    plural: str
    spec: type[HiveStruct]
    summary: str
    columns: tuple[PrinterColumn, ...]
    short_names: tuple[str, ...] = ()
    is_namespaced: bool = True
    has_scale: bool = False
    is_spec_optional: bool = False

    @property
    def name(self) -> str:
        return f"{self.plural}.{GROUP}"


def _label(name: str, label: str) -> PrinterColumn:
    escaped = label.replace(".", "\\.")
    return PrinterColumn(name=name, path=f".metadata.labels.{escaped}")


def _reason(name: str, condition: str) -> PrinterColumn:
    return PrinterColumn(name=name, path=f".status.conditions[?(@.type=='{condition}')].reason")


_AGE = PrinterColumn(name="Age", path=".metadata.creationTimestamp", type="date")

KINDS: Final = (
    DefinedKind(
        kind="ClusterDeployment",
        plural="clusterdeployments",
        short_names=("cd",),
        spec=DeploymentSpec,
        summary="A cluster that is to be, is being made, or is there.",
        columns=(
            PrinterColumn(name="InfraID", path=".spec.clusterMetadata.infraID"),
            _label("Platform", "hive.openshift.io/cluster-platform"),
            _label("Region", "hive.openshift.io/cluster-region"),
            _label("Version", "hive.openshift.io/version"),
            _label("ClusterType", "hive.openshift.io/cluster-type"),
            _reason("ProvisionStatus", "Provisioned"),
            PrinterColumn(name="PowerState", path=".status.powerState"),
            _AGE,
        ),
    ),
    DefinedKind(
        kind="ClusterPool",
        plural="clusterpools",
        short_names=("cp",),
        spec=PoolSpec,
        summary="Clusters that are kept ready to be claimed.",
        has_scale=True,
        columns=(
            PrinterColumn(name="Size", path=".spec.size", type="string"),
            PrinterColumn(name="Standby", path=".status.standby", type="string"),
            PrinterColumn(name="Ready", path=".status.ready", type="string"),
            PrinterColumn(name="BaseDomain", path=".spec.baseDomain"),
            PrinterColumn(name="ImageSet", path=".spec.imageSetRef.name"),
        ),
    ),
    DefinedKind(
        kind="ClusterClaim",
        plural="clusterclaims",
        spec=ClaimSpec,
        summary="The wish for a cluster of a pool, and the cluster that it got.",
        columns=(
            PrinterColumn(name="Pool", path=".spec.clusterPoolName"),
            _reason("Pending", "Pending"),
            PrinterColumn(name="ClusterNamespace", path=".spec.namespace"),
            _reason("ClusterRunning", "ClusterRunning"),
            _AGE,
        ),
    ),
    DefinedKind(
        kind="ClusterDeploymentCustomization",
        plural="clusterdeploymentcustomizations",
        short_names=("cdc",),
        spec=CustomizationSpec,
        is_spec_optional=True,
        summary="Patches for the install config and the manifests of clusters.",
        columns=(_reason("Available", "Available"), _reason("Applied", "ApplySucceeded"), _AGE),
    ),
    DefinedKind(
        kind="ClusterProvision",
        plural="clusterprovisions",
        spec=ProvisionAttemptSpec,
        summary="One attempt to make a cluster. Controllers write it.",
        columns=(
            PrinterColumn(name="ClusterDeployment", path=".spec.clusterDeploymentRef.name"),
            PrinterColumn(name="Stage", path=".spec.stage"),
            PrinterColumn(name="InfraID", path=".spec.infraID"),
        ),
    ),
    DefinedKind(
        kind="ClusterDeprovision",
        plural="clusterdeprovisions",
        short_names=("cdr",),
        spec=DeprovisionSpec,
        summary="The removal of a cluster. Controllers write it.",
        columns=(
            PrinterColumn(name="InfraID", path=".spec.infraID"),
            PrinterColumn(name="ClusterID", path=".spec.clusterID"),
            PrinterColumn(name="Completed", path=".status.completed"),
            _AGE,
        ),
    ),
    DefinedKind(
        kind="ClusterImageSet",
        plural="clusterimagesets",
        short_names=("imgset",),
        spec=ImageSetSpec,
        is_namespaced=False,
        summary="What clusters are made with.",
        columns=(PrinterColumn(name="Release", path=".spec.releaseImage"),),
    ),
)


def custom_resource_definitions() -> tuple[dict[str, Json], ...]:
    """Return the definitions of all kinds, as an API server takes them."""
    return tuple(map(_definition, KINDS))


def _definition(kind: DefinedKind) -> dict[str, Json]:
    singular = kind.kind.lower()
    names: dict[str, Json] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": singular,
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
    }
    scale: dict[str, Json] = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version: dict[str, Json] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [each.content() for each in kind.columns],
        "schema": {"openAPIV3Schema": _schema(kind)},
        "subresources": {"status": {}, **({"scale": scale} if kind.has_scale else {})},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name, "labels": {OWNER_LABEL: OWNER}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "names": names,
            "versions": [version],
        },
    }


def _schema(kind: DefinedKind) -> dict[str, Json]:
    properties: dict[str, Json] = {
        "apiVersion": text(),
        "kind": text(),
        "metadata": {"type": "object"},
        "spec": schema_of(kind.spec),
        "status": status_schema(kind.kind),
    }
    schema = mapping(properties, kind.summary, required=() if kind.is_spec_optional else ("spec",))
    node = SchemaNode(schema)
    for path, description in DESCRIPTIONS[kind.kind].items():
        node.at(f"spec.{path}").add(description=description)
    for path, limits in LIMITS.get(kind.kind, {}).items():
        node.at(path).add(**limits)
    for rule in RULES.get(kind.kind, ()):
        node.at(rule.at).refuse(rule)
    return schema
