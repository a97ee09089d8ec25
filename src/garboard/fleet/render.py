"""Rendering: what each cluster's installer would be given, without a machine or a cloud; and everything that fails.

Customizations that several clusters share are applied once to manifests that they share.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from garboard.errors import BadDocument
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
from garboard.fleet.customize.tree import is_protected
from garboard.fleet.install_config import PatchedInstallConfig, is_hosts_config, patch_install_config
from garboard.fleet.installer import ManifestSource
from garboard.fleet.requests import ProvisionRequest
from garboard.lazy import lazy_module
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.fleet.installers import manifests as host_manifests
else:  # it makes certificates as well, which most rendering does without
    host_manifests = lazy_module("garboard.fleet.installers.manifests")


@dataclass(frozen=True, slots=True)
class RenderedCluster:
    """One cluster after its patches; without manifests if there is nothing that makes them."""

    request: ProvisionRequest
    install_config: PatchedInstallConfig
    tree: ManifestTree | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailedCluster:
    """One cluster whose customizations cannot be applied."""

    request: ProvisionRequest
    failures: tuple[CustomizationFailure, ...]


@dataclass(frozen=True, slots=True)
class FleetRendering:
    """All clusters that were asked for: those that are rendered, and those that fail."""

    clusters: tuple[RenderedCluster, ...]
    failed: tuple[FailedCluster, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful, each thing once."""
        return tuple(dict.fromkeys(text for each in self.clusters for text in each.warnings))

    def refuse_failures(self) -> None:
        """Raise what fails, of all clusters together; what they share is told once."""
        failures = dict.fromkeys(failure for each in self.failed for failure in each.failures)
        if failures:
            raise CustomizationFailed(tuple(failures))


class OneTree:
    """The manifests of a folder, which are those of every cluster."""

    def __init__(self, entries: Mapping[str, TreeEntry]) -> None:
        self.entries = entries

    def create_manifests(self, install_config: bytes) -> Mapping[str, TreeEntry]:
        return self.entries


class Renderer:
    """Renders requests. Manifests come from `source`; without one, only install configs are rendered."""

    def __init__(self, source: ManifestSource | None, rules: Rules) -> None:
        self._source, self._rules = source, rules
        self._last: tuple[Mapping[str, TreeEntry], ManifestTree] | None = None
        self._shared: dict[tuple[str, ...], CustomizedTree] = {}  # of the last tree

    def render(self, requests: Iterable[ProvisionRequest]) -> FleetRendering:
        """Return what is rendered and what fails; the failure of one cluster does not keep the others."""
        clusters: list[RenderedCluster] = []
        failed: list[FailedCluster] = []
        for request in requests:
            try:
                clusters.append(self._cluster(request))
            except CustomizationFailed as error:
                failed.append(FailedCluster(request, error.failures))
        return FleetRendering(tuple(clusters), tuple(failed))

    def _cluster(self, request: ProvisionRequest) -> RenderedCluster:
        config = patch_install_config(request.install_config, request.install_config_customization, self._rules)
        warnings = [*request.warnings, *config.warnings]
        source = self._source or _own_source(config)
        if source is None:
            return RenderedCluster(request, config, None, tuple(warnings))
        tree = self._tree(request, config, source)
        *shared, last = request.customizations or (None,)
        before = self._customized(tree, [each for each in shared if each is not None])
        after = customize(before.tree, [last], self._rules) if last is not None else before
        warnings += [*before.warnings, *(after.warnings if after is not before else ())]
        return RenderedCluster(request, config, after.tree, tuple(warnings))

    def _tree(self, request: ProvisionRequest, config: PatchedInstallConfig, source: ManifestSource) -> ManifestTree:
        """Return the manifests of a cluster, with the files that its documents add; a tree that is shared stays one."""
        try:
            entries = source.create_manifests(config.data)
        except BadDocument as error:
            raise BadDocument(f"{request.name}: {error.message}", hint=error.hint) from error
        if request.extra_manifests:
            entries = {**entries, **request.extra_manifests}
        if self._last is None or self._last[0] is not entries:
            self._last = (entries, ManifestTree.of(entries))
            self._shared = {}
        return self._last[1]

    def _customized(self, tree: ManifestTree, customizations: Sequence[Customization]) -> CustomizedTree:
        key = tuple(each.where for each in customizations)
        if key not in self._shared:
            self._shared[key] = customize(tree, customizations, self._rules)
        return self._shared[key]


def _own_source(config: PatchedInstallConfig) -> ManifestSource | None:
    """Return our own installer for an install config of its kind: what it renders needs no other program."""
    return host_manifests.HostManifests() if is_hosts_config(config.value) else None


def files_of(cluster: RenderedCluster) -> Mapping[str, bytes]:
    """Return the manifests of a cluster by their paths: regular files, and none of the installer's own."""
    tree = cluster.tree
    if tree is None:
        return {}
    names = sorted(name for name in tree.names if not is_protected(name))
    found = ((name, tree.content(name)) for name in names)
    return {name: content for name, content in found if not isinstance(content, Irregular)}
