"""Configuration files to values: read, checked against the minor, converted, defaulted and validated, like kubeadm."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Generic, Self, TypeVar

from garboard.config.cluster_document import cluster_from_document
from garboard.config.component_configs import COMPONENT_KINDS, ComponentConfig, ComponentConfigs, default_components
from garboard.config.dynamic_defaults import default_init, default_join, default_reset
from garboard.config.host_facts import HostFacts
from garboard.config.members import Members
from garboard.config.node_documents import init_from_document, join_from_document, reset_from_document
from garboard.config.problems import InvalidConfiguration, Notes, Problem
from garboard.config.reading import (
    V1BETA3,
    ReadOptions,
    check_json,
    in_current_shape,
    refuse_kind,
    verify,
    warn_ignored,
)
from garboard.config.sources import ConfigDocument, ConfigSource, read_documents
from garboard.config.upgrade_document import upgrade_from_document
from garboard.config.v1beta3 import control_plane_timeout
from garboard.config.validate_node import (
    file_discovery_problems,
    init_problems,
    join_problems,
    reset_problems,
    upgrade_problems,
)
from garboard.config.versions import ResolvedVersion, resolve_version
from garboard.documents import Json
from garboard.errors import BadDocument, InvalidValue
from garboard.model import DEFAULT_VERSION, KubernetesVersion, reference_version
from garboard.model.duration import Duration
from garboard.model.lifecycle import FileDiscovery, InitConfiguration, JoinConfiguration, ResetConfiguration
from garboard.model.node import Timeouts
from garboard.model.upgrade import UpgradeConfiguration
from garboard.values import dataclass

ConfigT = TypeVar("ConfigT")
Config_co = TypeVar("Config_co", covariant=True)
Tree = dict[str, Json]
_INIT_KINDS = ("InitConfiguration", "ClusterConfiguration")
_COMPONENT_GROUPS = {api.partition("/")[0]: api for api in COMPONENT_KINDS.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded(Generic[Config_co]):
    """A configuration that holds, what there is to say about it, and where its documents stand (by kind)."""

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
        """Read a file; `version` counts where it names none itself (as for join, reset and upgrade)."""
        documents = read_documents(data, file=file)
        resolved = _version_in(documents) or ResolvedVersion(str(version))
        return cls(file=file, documents=documents, version=resolved, host=host, options=options or ReadOptions())

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(document.gvk.kind for document in self.documents)

    def init(self) -> Loaded[InitConfiguration]:
        """Load Init- and ClusterConfiguration, of which one is enough, and the component configurations."""
        notes = Notes()
        trees = self._init_trees(notes)
        if "InitConfiguration" not in trees and "ClusterConfiguration" not in trees:
            raise BadDocument(
                f"{self.file}: no InitConfiguration or ClusterConfiguration kind was found in the configuration file"
            )
        cluster = Members(trees.get("ClusterConfiguration", {}))
        notes.problems += _etcd_shape_problems(cluster.object("etcd"))
        init = init_from_document(Members(trees.get("InitConfiguration", {})), cluster_from_document(cluster))
        init = replace(init, timeouts=self._with_old_timeout(init.timeouts))
        kubelet, kube_proxy = (
            ComponentConfig(kind, trees.get(kind, {}), is_user_supplied=kind in trees) for kind in COMPONENT_KINDS
        )
        completed, components = complete_init(
            init, ComponentConfigs(kubelet, kube_proxy), self.version, self.host, self.options, notes
        )
        return self._loaded(completed, notes, components)

    def join(self) -> Loaded[JoinConfiguration]:
        notes = Notes()
        document = Members(self._only("JoinConfiguration", notes))
        notes.problems += _discovery_shape_problems(document.object("discovery"), self.host)
        join = complete_join(join_from_document(document), self.host, self.options, notes)
        if not document.object("discovery").tree:
            # With no discovery at all, what its members lack would only repeat that.
            notes.problems = [each for each in notes.problems if each.path[0] != "discovery" or len(each.path) == 1]
        return self._loaded(join, notes)

    def reset(self) -> Loaded[ResetConfiguration]:
        notes = Notes()
        document = Members(self._only("ResetConfiguration", notes))
        return self._loaded(complete_reset(reset_from_document(document), self.host, self.options, notes), notes)

    def upgrade(self) -> Loaded[UpgradeConfiguration]:
        notes = Notes()
        upgrade = upgrade_from_document(Members(self._only("UpgradeConfiguration", notes)))
        notes.problems += upgrade_problems(upgrade)
        return self._loaded(upgrade, notes)

    def _loaded(self, config: ConfigT, notes: Notes, components: ComponentConfigs | None = None) -> Loaded[ConfigT]:
        if notes.problems:
            raise InvalidConfiguration(self.file, (f"{each}{self._where(each)}" for each in notes.problems))
        return Loaded(
            config=config,
            warnings=tuple(notes.warnings),
            sources={document.gvk.kind: document.source for document in self.documents},
            components=components or ComponentConfigs(),
        )

    def _where(self, problem: Problem) -> str:
        """Say the line that a problem is about; the members of kinds that are loaded together differ in name."""
        found = (document.source.where(problem.path) for document in self.documents)
        return next(filter(None, found), "")

    def _init_trees(self, notes: Notes) -> dict[str, Tree]:
        trees = {}
        for document in sorted(self.documents, key=lambda document: str(document.gvk)):
            kind = document.gvk.kind
            is_init, is_component = kind in _INIT_KINDS, document.gvk.group in _COMPONENT_GROUPS
            tree = verify(document, self.version.facts, self.options, notes, is_used=is_init or is_component)
            if is_init:
                trees[kind] = in_current_shape(document, tree)
            elif is_component:
                _check_component_version(document)
                check_json(document)
                trees[kind] = _without_type(tree if tree is not None else refuse_kind(document))
            else:
                warn_ignored(document, notes)
        return trees

    def _only(self, kind: str, notes: Notes) -> Tree:
        """Decode the one document of interest; every other is ignored with a warning."""
        found: Tree | None = None
        for document in self.documents:
            if document.gvk.kind != kind:
                warn_ignored(document, notes)
                continue
            found = in_current_shape(document, verify(document, self.version.facts, self.options, notes))
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
    """Complete and validate a configuration that was made of flags; those of join and reset work alike."""
    notes = Notes()
    completed, components = complete_init(init, ComponentConfigs(), version, host, options, notes)
    return replace(_from_flags(completed, notes), components=components)


def join_from_flags(join: JoinConfiguration, host: HostFacts, options: ReadOptions) -> Loaded[JoinConfiguration]:
    notes = Notes()
    return _from_flags(complete_join(join, host, options, notes), notes)


def reset_from_flags(reset: ResetConfiguration, host: HostFacts, options: ReadOptions) -> Loaded[ResetConfiguration]:
    notes = Notes()
    return _from_flags(complete_reset(reset, host, options, notes), notes)


def _from_flags(config: ConfigT, notes: Notes) -> Loaded[ConfigT]:
    if notes.problems:
        raise InvalidConfiguration("the configuration given by flags", (str(problem) for problem in notes.problems))
    return Loaded(config=config, warnings=tuple(notes.warnings))


def complete_init(
    init: InitConfiguration,
    components: ComponentConfigs,
    version: ResolvedVersion,
    host: HostFacts,
    options: ReadOptions,
    notes: Notes,
) -> tuple[InitConfiguration, ComponentConfigs]:
    """Fill in what depends on the machine, and note every problem."""
    completed = default_init(init, version, host, notes, detect_cri=options.detects_cri)
    endpoint = completed.local_api_endpoint
    components = default_components(components, completed.cluster, endpoint, version.facts, notes)
    notes.problems += init_problems(completed, notes)
    return completed, components


def complete_join(join: JoinConfiguration, host: HostFacts, options: ReadOptions, notes: Notes) -> JoinConfiguration:
    completed = default_join(join, host, notes, detect_cri=options.detects_cri)
    notes.problems += join_problems(completed, host)
    return completed


def complete_reset(
    reset: ResetConfiguration, host: HostFacts, options: ReadOptions, notes: Notes
) -> ResetConfiguration:
    completed = default_reset(reset, host, notes, detect_cri=options.detects_cri)
    notes.problems += reset_problems(completed)
    return completed


def _version_in(documents: tuple[ConfigDocument, ...]) -> ResolvedVersion | None:
    """Return the version that a file asks for; its minor decides how everything else is read."""
    for document in documents:
        given = document.tree.get("kubernetesVersion")
        if document.gvk.is_kubeadm and document.gvk.kind == "ClusterConfiguration" and isinstance(given, str) and given:
            return _supported(resolve_version(given), document)
    return None


def _supported(version: ResolvedVersion, document: ConfigDocument) -> ResolvedVersion:
    """Return the version of a document if its minor is supported; no option could stand in for what the file says."""
    try:
        reference_version(version.release)
    except InvalidValue as error:
        source = document.source
        raise InvalidValue(
            f"{source.file}: kubernetesVersion: {error.message}{source.where(('kubernetesVersion',))}",
            hint=f"write a version of a supported minor, such as {DEFAULT_VERSION}",
            error_class=error.error_class,
        ) from error
    return version


def _check_component_version(document: ConfigDocument) -> None:
    supported = _COMPONENT_GROUPS[document.gvk.group]
    if document.gvk.api_version != supported:
        raise BadDocument(
            f'unsupported apiVersion "{document.gvk.api_version}", you may have to do manual conversion to '
            f'"{supported}" and run kubeadm again'
        )


def _without_type(tree: Tree) -> Tree:
    return {name: value for name, value in tree.items() if name not in ("apiVersion", "kind")}


def _etcd_shape_problems(etcd: Members) -> list[Problem]:
    if "local" not in etcd or "external" not in etcd:
        return []
    detail = ".Etcd.Local and .Etcd.External are mutually exclusive"
    return [Problem(path=("etcd",), value="", detail=detail)]


def _discovery_shape_problems(discovery: Members, host: HostFacts) -> list[Problem]:
    """Tell that both ways or none are given; the model has room for one, so the file is looked at here if both are."""
    has_token, has_file = "bootstrapToken" in discovery, "file" in discovery
    if has_token != has_file:
        return []
    detail = "bootstrapToken and file cannot both be set" if has_token else "bootstrapToken or file must be set"
    problems = [Problem(path=("discovery",), value="", detail=detail)]
    if has_file:
        location = discovery.object("file").text("kubeConfigPath")
        problems += file_discovery_problems(FileDiscovery(kube_config_path=location), host)
    return problems
