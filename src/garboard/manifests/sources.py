"""Where a rendered value comes from: a field of the configuration, a fact of the machine, or neither.

A value without a source is a built-in default of the minor. A source names the field that decides a value; the
configuration's documents tell whether a user wrote that field or it has its default.
"""

from collections.abc import Mapping
from dataclasses import field

from garboard.documents import DocumentPath
from garboard.model.cluster import DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration
from garboard.model.component import LocalEtcd
from garboard.values import dataclass

CLUSTER_KIND = "ClusterConfiguration"


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A field of a configuration document, such as `apiServer.extraArgs[2]` of the ClusterConfiguration."""

    kind: str
    path: DocumentPath

    def __truediv__(self, step: str | int) -> "ConfigField":
        return ConfigField(self.kind, (*self.path, step))

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")


@dataclass(frozen=True, slots=True)
class HostFact:
    """Something found on the machine, in words: `environment variable HTTPS_PROXY`."""

    text: str

    def __str__(self) -> str:
        return self.text


ValueSource = ConfigField | HostFact


def cluster_field(*path: str) -> ConfigField:
    return ConfigField(CLUSTER_KIND, path)


@dataclass(frozen=True, slots=True)
class ValueSources:
    """The sources of a document's leaves; one that is named for a list or map counts for all below it."""

    by_path: Mapping[DocumentPath, ValueSource] = field(default_factory=dict)

    def of(self, path: DocumentPath) -> ValueSource | None:
        """Return what decides the value at `path`; nothing if it is a default of the minor."""
        found = (self.by_path.get(path[:length]) for length in range(len(path), -1, -1))
        return next((source for source in found if source is not None), None)


def kubernetes_image_source(cluster: ClusterConfiguration) -> ValueSource:
    """Return what decides the image: the repository if it is not the default, else the version, which is the tag."""
    is_default = cluster.image_repository == DEFAULT_IMAGE_REPOSITORY
    return cluster_field("kubernetesVersion" if is_default else "imageRepository")


def etcd_image_source(cluster: ClusterConfiguration, local: LocalEtcd) -> ValueSource | None:
    if local.image_tag:
        return cluster_field("etcd", "local", "imageTag")
    if local.image_repository:
        return cluster_field("etcd", "local", "imageRepository")
    return cluster_field("imageRepository") if cluster.image_repository != DEFAULT_IMAGE_REPOSITORY else None


def dns_image_source(cluster: ClusterConfiguration) -> ValueSource | None:
    if cluster.dns.image_tag:
        return cluster_field("dns", "imageTag")
    if cluster.dns.image_repository:
        return cluster_field("dns", "imageRepository")
    return cluster_field("imageRepository") if cluster.image_repository != DEFAULT_IMAGE_REPOSITORY else None
