"""Configurations to values: read, checked against the minor, converted, defaulted and validated as kubeadm does it.

They come from a file, from flags, or from the ConfigMaps in which a cluster keeps them.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Generic, Self, TypeVar

from garboard.config.cluster_document import cluster_from_document
from garboard.config.component_configs import (
    COMPONENT_KINDS,
    KUBE_PROXY_KIND,
    KUBELET_KIND,
    ComponentConfig,
    ComponentConfigs,
    default_components,
)
from garboard.config.decoding import DecodedObject
from garboard.config.dynamic_defaults import HostFacts, default_init, default_join, default_reset
from garboard.config.node_documents import init_from_document, join_from_document, reset_from_document
from garboard.config.problems import ConfigNotes, InvalidConfiguration, InvalidFlags, Problem
from garboard.config.reading import (
    COMPONENT_GROUPS,
    V1BETA3,
    ReadOptions,
    check_component_version,
    check_json,
    in_current_shape,
    refuse_kind,
    verify,
    warn_ignored,
)
from garboard.config.sources import ConfigDocument, ConfigSource, read_documents
from garboard.config.tunnel_document import TUNNEL_KIND, tunnel_document, tunnel_from_document, tunnel_problems
from garboard.config.upgrade_document import upgrade_from_document
from garboard.config.v1beta3 import control_plane_timeout
from garboard.config.validate_cluster import etcd_shape_problems
from garboard.config.validate_node import (
    discovery_shape_problems,
    init_problems,
    join_problems,
    reset_problems,
    upgrade_problems,
)
from garboard.config.versions import ResolvedVersion, version_in
from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.model import DEFAULT_VERSION, KubernetesVersion
from garboard.model.cluster import ClusterConfiguration
from garboard.model.duration import Duration
from garboard.model.lifecycle import InitConfiguration, JoinConfiguration, ResetConfiguration, UpgradeConfiguration
from garboard.model.node import ApiEndpoint, Timeouts
from garboard.model.tunnel import JoinTunnel
from garboard.values import dataclass

ConfigT = TypeVar("ConfigT")
Config_co = TypeVar("Config_co", covariant=True)
Tree = dict[str, Json]
_STORED = ReadOptions(allows_deprecated=True, allows_experimental=True)
_INIT_KINDS = ("InitConfiguration", "ClusterConfiguration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded(Generic[Config_co]):
    """A valid configuration, the warnings about it, and the sources of its documents by kind."""

    config: Config_co
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, ConfigSource] = field(default_factory=dict)
    components: ComponentConfigs = field(default_factory=ComponentConfigs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A configuration file that has been read; each method loads what one command needs of it."""

    file: str
    documents: tuple[ConfigDocument, ...]
    version: ResolvedVersion
    host: HostFacts
    options: ReadOptions = field(default_factory=ReadOptions)

    @classmethod
    def read(
        cls,
        data: bytes | str,
        *,
        file: str,
        host: HostFacts,
        options: ReadOptions | None = None,
        version: KubernetesVersion = DEFAULT_VERSION,
    ) -> Self:
        """Read a file; `version` is used if the file names none itself (as for join, reset and upgrade)."""
        documents = read_documents(data, file=file)
        resolved = version_in(documents) or ResolvedVersion(str(version))
        return cls(file=file, documents=documents, version=resolved, host=host, options=options or ReadOptions())

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(document.gvk.kind for document in self.documents)

    def init(self) -> Loaded[InitConfiguration]:
        """Load Init- and ClusterConfiguration, of which one is enough, and the component configurations."""
        notes = ConfigNotes()
        trees = self._init_trees(notes)
        if "InitConfiguration" not in trees and "ClusterConfiguration" not in trees:
            raise BadDocument(
                f"{self.file}: no InitConfiguration or ClusterConfiguration kind was found in the configuration file"
            )
        cluster = DecodedObject(trees.get("ClusterConfiguration", {}))
        notes.problems += etcd_shape_problems(cluster.object("etcd"))
        init = init_from_document(DecodedObject(trees.get("InitConfiguration", {})), cluster_from_document(cluster))
        init = replace(init, timeouts=self._with_old_timeout(init.timeouts))
        kubelet, kube_proxy = (
            ComponentConfig(kind, trees.get(kind, {}), is_user_supplied=kind in trees) for kind in COMPONENT_KINDS
        )
        completed, components = complete_init(
            init, ComponentConfigs(kubelet, kube_proxy), self.version, self.host, self.options, notes
        )
        return self._loaded(completed, notes, components)

    def join(self) -> Loaded[JoinConfiguration]:
        notes = ConfigNotes()
        document = DecodedObject(self._only("JoinConfiguration", notes))
        notes.problems += discovery_shape_problems(document.object("discovery"), self.host)
        given = replace(join_from_document(document), tunnel=self._tunnel(notes))
        join = complete_join(given, self.host, self.options, notes)
        if not document.object("discovery").tree:
            # Without any discovery, problems of its fields would only repeat that it is missing.
            notes.problems = [each for each in notes.problems if each.path[0] != "discovery" or len(each.path) == 1]
        return self._loaded(join, notes)

    def _tunnel(self, notes: ConfigNotes) -> JoinTunnel | None:
        document = tunnel_document(self.documents)
        if document is None:
            return None
        tunnel, problems = tunnel_from_document(document)
        notes.problems += problems
        return tunnel

    def reset(self) -> Loaded[ResetConfiguration]:
        notes = ConfigNotes()
        document = DecodedObject(self._only("ResetConfiguration", notes))
        return self._loaded(complete_reset(reset_from_document(document), self.host, self.options, notes), notes)

    def upgrade(self) -> Loaded[UpgradeConfiguration]:
        notes = ConfigNotes()
        upgrade = upgrade_from_document(DecodedObject(self._only("UpgradeConfiguration", notes)))
        notes.problems += upgrade_problems(upgrade)
        return self._loaded(upgrade, notes)

    def _loaded(
        self, config: ConfigT, notes: ConfigNotes, components: ComponentConfigs | None = None
    ) -> Loaded[ConfigT]:
        refusal = notes.refusal(self.file, self._where)
        if refusal is not None:
            raise refusal
        return Loaded(
            config=config,
            warnings=tuple(notes.warnings),
            sources={document.gvk.kind: document.source for document in self.documents},
            components=components or ComponentConfigs(),
        )

    def _where(self, problem: Problem) -> str:
        """Return the line of a problem; the documents that are loaded together share no field name."""
        found = (document.source.where(problem.path) for document in self.documents)
        return next(filter(None, found), "")

    def _init_trees(self, notes: ConfigNotes) -> dict[str, Tree]:
        trees = {}
        for document in sorted(self.documents, key=lambda document: str(document.gvk)):
            kind = document.gvk.kind
            is_init, is_component = kind in _INIT_KINDS, document.gvk.group in COMPONENT_GROUPS
            tree = self._verified(document, notes, is_used=is_init or is_component)
            if is_init:
                trees[kind] = in_current_shape(document, tree)
            elif is_component:
                check_component_version(document)
                check_json(document)
                trees[kind] = _without_type(tree if tree is not None else refuse_kind(document))
            else:
                warn_ignored(document, notes)
        return trees

    def _verified(self, document: ConfigDocument, notes: ConfigNotes, *, is_used: bool = True) -> Tree | None:
        """Decode a document; if only a part of it can be, note why and go on with that part."""
        try:
            return verify(document, self.version.facts, self.options, notes, is_used=is_used)
        except InvalidConfiguration as error:
            if error.partial is None:
                raise
            notes.refused.append(error)
            return error.partial.tree

    def _only(self, kind: str, notes: ConfigNotes) -> Tree:
        """Decode the one document of interest; every other is ignored with a warning."""
        found: Tree | None = None
        for document in self.documents:
            if document.gvk.kind != kind:
                if kind != "JoinConfiguration" or document.gvk != TUNNEL_KIND:
                    warn_ignored(document, notes)
                continue
            found = in_current_shape(document, self._verified(document, notes))
        if found is None:
            raise BadDocument(f"{self.file}: no {kind} found in the supplied config")
        return found

    def _with_old_timeout(self, timeouts: Timeouts) -> Timeouts:
        """Take the time limit that v1beta3 kept in ClusterConfiguration, unless it is the default or zero."""
        for document in self.documents:
            if document.gvk.api_version == V1BETA3 and document.gvk.kind == "ClusterConfiguration":
                given = Duration.parse(control_plane_timeout(document.tree) or "0s")
                if given not in (Duration(), Timeouts().control_plane_component_health_check):
                    return replace(timeouts, control_plane_component_health_check=given)
        return timeouts


def init_from_flags(
    init: InitConfiguration, version: ResolvedVersion, host: HostFacts, options: ReadOptions
) -> Loaded[InitConfiguration]:
    """Complete and validate a configuration that was made of flags; join and reset have the same."""
    notes = ConfigNotes()
    completed, components = complete_init(init, ComponentConfigs(), version, host, options, notes)
    return replace(_from_flags(completed, notes), components=components)


def join_from_flags(join: JoinConfiguration, host: HostFacts, options: ReadOptions) -> Loaded[JoinConfiguration]:
    notes = ConfigNotes()
    return _from_flags(complete_join(join, host, options, notes), notes)


def reset_from_flags(reset: ResetConfiguration, host: HostFacts, options: ReadOptions) -> Loaded[ResetConfiguration]:
    notes = ConfigNotes()
    return _from_flags(complete_reset(reset, host, options, notes), notes)


def _from_flags(config: ConfigT, notes: ConfigNotes) -> Loaded[ConfigT]:
    if notes.problems:
        raise InvalidFlags("the configuration given by flags", (str(problem) for problem in notes.problems))
    return Loaded(config=config, warnings=tuple(notes.warnings))


def complete_init(
    init: InitConfiguration,
    components: ComponentConfigs,
    version: ResolvedVersion,
    host: HostFacts,
    options: ReadOptions,
    notes: ConfigNotes,
) -> tuple[InitConfiguration, ComponentConfigs]:
    """Fill in what depends on the machine, and collect every problem."""
    completed = default_init(init, version, host, notes, detect_cri=options.detects_cri)
    endpoint = completed.local_api_endpoint
    components = default_components(components, completed.cluster, endpoint, version.facts, notes)
    notes.problems += init_problems(completed, notes)
    return completed, components


def complete_join(
    join: JoinConfiguration, host: HostFacts, options: ReadOptions, notes: ConfigNotes
) -> JoinConfiguration:
    completed = default_join(join, host, notes, detect_cri=options.detects_cri)
    notes.problems += [*join_problems(completed, host), *tunnel_problems(completed)]
    return completed


def complete_reset(
    reset: ResetConfiguration, host: HostFacts, options: ReadOptions, notes: ConfigNotes
) -> ResetConfiguration:
    completed = default_reset(reset, host, notes, detect_cri=options.detects_cri)
    notes.problems += reset_problems(completed)
    return completed


def _without_type(tree: Tree) -> Tree:
    return {name: value for name, value in tree.items() if name not in ("apiVersion", "kind")}


def load_stored_cluster(
    data: bytes | str, host: HostFacts, *, name: str = "ConfigMap kubeadm-config", is_strict: bool = False
) -> Loaded[ClusterConfiguration]:
    """Load the stored configuration: any API version of the minor, and unknown feature gates without a warning.

    Before something is stored it is read strictly, so that a misspelt field is refused.
    """
    options = replace(_STORED, is_strict=is_strict)
    file = ConfigFile.read(data, file=name, host=host, options=options)
    notes = ConfigNotes()
    for document in file.documents:
        if document.gvk.kind != "ClusterConfiguration":
            continue
        try:
            tree = in_current_shape(document, verify(document, file.version.facts, options, notes))
        except BadDocument as error:
            raise BadDocument(
                f"failed to decode cluster configuration data: {error.message}", hint=error.hint
            ) from error
        cluster = replace(cluster_from_document(DecodedObject(tree)), kubernetes_version=file.version.text)
        return Loaded(config=cluster, warnings=tuple(notes.warnings), sources={document.gvk.kind: document.source})
    raise BadDocument(f"{name} holds no ClusterConfiguration")


def load_stored_kubelet(
    data: bytes | str,
    cluster: ClusterConfiguration,
    *,
    name: str = "ConfigMap kubelet-config",
    is_user_supplied: bool = False,
    is_strict: bool = False,
) -> ComponentConfig:
    """Load the configuration that all kubelets of a cluster share, with defaults for unset fields."""
    tree = _stored_component(data, KUBELET_KIND, cluster, name, replace(_STORED, is_strict=is_strict))
    given = ComponentConfig(KUBELET_KIND, tree, is_user_supplied=is_user_supplied)
    # The warnings about values that are not the recommended ones were given when they were stored.
    return default_components(
        ComponentConfigs(kubelet=given), cluster, ApiEndpoint(), cluster.facts, ConfigNotes()
    ).kubelet


def load_stored_kube_proxy(
    data: bytes | str,
    cluster: ClusterConfiguration,
    endpoint: ApiEndpoint,
    *,
    name: str = "ConfigMap kube-proxy",
    is_user_supplied: bool = False,
    is_strict: bool = False,
) -> ComponentConfig:
    """Load the configuration of kube-proxy, with defaults for unset fields; `endpoint` is that of this node."""
    tree = _stored_component(data, KUBE_PROXY_KIND, cluster, name, replace(_STORED, is_strict=is_strict))
    given = ComponentConfig(KUBE_PROXY_KIND, tree, is_user_supplied=is_user_supplied)
    return default_components(
        ComponentConfigs(kube_proxy=given), cluster, endpoint, cluster.facts, ConfigNotes()
    ).kube_proxy


def _stored_component(
    data: bytes | str, kind: str, cluster: ClusterConfiguration, name: str, options: ReadOptions
) -> Tree:
    for document in read_documents(data, file=name):
        if document.gvk.kind == kind:
            return _without_type(verify(document, cluster.facts, options, ConfigNotes()) or {})
    raise BadDocument(f"{name} holds no {kind}")
