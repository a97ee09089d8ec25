"""What is asked for: a new version of documents, patches of them, edits of single fields, or another patch set."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import field, replace
from typing import TypeAlias

from garboard.change.attribute import CLUSTER, INIT, JOIN, KUBE_PROXY, KUBELET, STORED_KINDS
from garboard.change.edits import FieldEdit, edited
from garboard.change.merging import merged
from garboard.config.component_configs import COMPONENT_KINDS
from garboard.config.v1beta3 import cluster_to_v1beta4
from garboard.documents import Json, read_yaml
from garboard.drift import Difference
from garboard.errors import BadDocument, BadUsage, PatchFailed
from garboard.model.minors import MINORS
from garboard.patches import PatchType
from garboard.patches.json6902 import apply_json
from garboard.patches.merge import apply_merge
from garboard.phases.node.records import PatchSetContent
from garboard.schema import Schema
from garboard.values import dataclass

Documents: TypeAlias = Mapping[str, Mapping[str, Json]]
_TYPE_NAMES = ("apiVersion", "kind")
_KUBEADM_VERSIONS = tuple(version for row in MINORS.values() for version in row.config_api.read)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDocument:
    """A document of a request, with where it was written."""

    content: Json
    source: str = "the request"

    @property
    def kind(self) -> str:
        return str(self.content.get("kind") or "") if isinstance(self.content, dict) else ""

    @property
    def members(self) -> dict[str, Json]:
        content = self.content if isinstance(self.content, dict) else {}
        return {name: value for name, value in content.items() if name not in _TYPE_NAMES}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """`-f`: each document is the whole new version of its kind."""

    documents: tuple[GivenDocument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialChange:
    """`--patch`: partial documents; `kind` is what a JSON patch is for, and a mapping that names none."""

    documents: tuple[GivenDocument, ...]
    type: PatchType = PatchType.STRATEGIC
    kind: str = CLUSTER


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEdits:
    """`--set` and `--unset`, in the order in which they were given."""

    edits: tuple[FieldEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPatchSet:
    """`--patches`: what nodes are patched with from now on."""

    content: PatchSetContent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedState:
    """What a revision has recorded: the texts of the configuration by kind, and the patch sets of nodes by digest.

    Without `patch_sets` nodes keep those that they have.
    """

    texts: Mapping[str, str]
    patch_sets: Mapping[str, str] | None = None
    source: str = "the revision"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftCorrection:
    """Nodes as they are declared: which differences go, by node; and as which names that was asked for.

    Nodes that follow find out by these names what of their own differences goes. `left` is what nothing here puts back.
    """

    differences: Mapping[str, tuple[Difference, ...]]
    names: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAdoption:
    """The cluster as its nodes are: the documents by kind, and the digests of the patch sets by node.

    `contents` are the sets that are new, by digest, `patched` the differences that they explain, by node, and `left`
    what nothing can record. No node is touched.
    """

    documents: Documents
    patch_sets: Mapping[str, str]
    contents: Mapping[str, PatchSetContent] = field(default_factory=dict)
    patched: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    left: tuple[str, ...] = ()


ChangeRequest: TypeAlias = (
    NewVersion | PartialChange | FieldEdits | NewPatchSet | RecordedState | DriftCorrection | DriftAdoption
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedDocuments:
    """The documents that are asked for, by kind; what was asked of nodes; and which fields new versions leave out."""

    documents: Documents
    of_nodes: Documents
    left_out: frozenset[tuple[str, ...]] = frozenset()  # by kind and path
    rewritten: frozenset[str] = frozenset()  # kinds of which there is a whole new version

    def with_document(self, kind: str, document: Mapping[str, Json]) -> "RequestedDocuments":
        return replace(self, documents={**self.documents, kind: document})


def host_paths_in(request: ChangeRequest) -> tuple[str, ...]:
    """Return the paths of hosts that a request names for volumes: whoever looks at nodes looks for them, too."""
    found: list[str] = []
    match request:
        case NewVersion(documents=documents) | PartialChange(documents=documents):
            for each in documents:
                found += _host_paths(each.content)
        case FieldEdits(edits=edits):
            found += [edit.text for edit in edits if str(edit.path.segments[-1]) == "hostPath"]
        case NewPatchSet() | RecordedState() | DriftCorrection() | DriftAdoption():
            pass
    return tuple(dict.fromkeys(path for path in found if path.startswith("/")))


def _host_paths(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _host_paths(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "hostPath" and isinstance(each, str):
                yield each
            else:
                yield from _host_paths(each)


def requested(request: ChangeRequest, current: Documents, schema: Schema) -> RequestedDocuments:
    """Return the documents of a cluster with a request worked in; `current` is completed with defaults."""
    match request:
        case NewVersion():
            return _new_version(request, current)
        case PartialChange():
            return _patched(request, current)
        case FieldEdits():
            return _edited(request, current, schema)
        case NewPatchSet():
            return RequestedDocuments(documents=current, of_nodes={})
        case RecordedState():
            return _recorded(request, current)
        case DriftCorrection() | DriftAdoption():
            raise AssertionError("they have plans of their own, for no node is as it would be rendered")


def with_edits(wanted: RequestedDocuments, edits: Iterable[FieldEdit], schema: Schema) -> RequestedDocuments:
    """Return what is asked for with further edits made."""
    for edit in edits:
        document = edited(wanted.documents[edit.kind], edit, schema, _api_version(edit.kind))
        wanted = wanted.with_document(edit.kind, document)
    return wanted


def _recorded(request: RecordedState, current: Documents) -> RequestedDocuments:
    """Return what was recorded for the kinds that the cluster has; what it leaves out is not a removal to accept."""
    found = dict(current)
    for kind, text in request.texts.items():
        content = read_yaml(text, source=f"{request.source}: {kind}")
        if kind in current:
            found[kind] = _in_current_shape(GivenDocument(content=content, source=request.source))
    return RequestedDocuments(documents=found, of_nodes={})


def _new_version(request: NewVersion, current: Documents) -> RequestedDocuments:
    found: dict[str, Mapping[str, Json]] = dict(current)
    of_nodes: dict[str, Mapping[str, Json]] = {}
    for each in request.documents:
        kind = _known_kind(each, current)
        if kind in (INIT, JOIN):
            of_nodes[kind] = each.members
        elif kind in of_nodes or found[kind] is not current[kind]:
            raise BadDocument(f"{each.source}: there is a second {kind}", hint="write each kind once")
        else:
            found[kind] = _in_current_shape(each)
    rewritten = frozenset(kind for kind in current if found[kind] is not current[kind])
    left_out = {(kind, *path) for kind in rewritten for path in _missing(current[kind], found[kind])}
    return RequestedDocuments(documents=found, of_nodes=of_nodes, left_out=frozenset(left_out), rewritten=rewritten)


def _in_current_shape(each: GivenDocument) -> dict[str, Json]:
    content = each.content if isinstance(each.content, dict) else {}
    if content.get("apiVersion") == "kubeadm.k8s.io/v1beta3":
        return cluster_to_v1beta4(deepcopy(each.members))
    return each.members


def _missing(before: Mapping[str, Json], after: Mapping[str, Json]) -> set[tuple[str, ...]]:
    """Return the paths of members that are set before, and not written after."""
    found: set[tuple[str, ...]] = set()
    for name, value in before.items():
        given = after.get(name)
        if given is None:
            found.add((name,))
        elif isinstance(value, dict) and isinstance(given, dict):
            found |= {(name, *path) for path in _missing(value, given)}
    return found


def _patched(request: PartialChange, current: Documents) -> RequestedDocuments:
    found: dict[str, Mapping[str, Json]] = dict(current)
    of_nodes: dict[str, Mapping[str, Json]] = {}
    for each in request.documents:
        is_mapping = isinstance(each.content, dict)
        kind = _known_kind(each, current, request.kind) if is_mapping else _chosen(request.kind, current)
        if kind in (INIT, JOIN):
            of_nodes[kind] = each.members
        else:
            found[kind] = _with_patch(found[kind], each, request.type)
    return RequestedDocuments(documents=found, of_nodes=of_nodes)


def _with_patch(before: Mapping[str, Json], each: GivenDocument, type_: PatchType) -> dict[str, Json]:
    try:
        match type_:
            case PatchType.STRATEGIC if isinstance(each.content, dict):
                after = merged(dict(before), each.members)
            case PatchType.MERGE if isinstance(each.content, dict):
                after = apply_merge(deepcopy(dict(before)), each.members)
            case PatchType.JSON if isinstance(each.content, list):
                after = apply_json(deepcopy(dict(before)), each.content)
            case _:
                shape = "a list of operations" if type_ is PatchType.JSON else "a mapping"
                raise PatchFailed(f"a {type_} patch is {shape}", error_class="bad-document")
    except PatchFailed as error:
        raise PatchFailed(
            f"{each.source}: {error.message}", error_class=error.error_class, at=error.at, hint=error.hint
        ) from error
    if not isinstance(after, dict):
        raise PatchFailed(f"{each.source}: the patch takes the document away", error_class="bad-root")
    return after


def _edited(request: FieldEdits, current: Documents, schema: Schema) -> RequestedDocuments:
    found: dict[str, Mapping[str, Json]] = dict(current)
    of_nodes: dict[str, dict[str, Json]] = {}
    for edit in request.edits:
        if edit.kind in (INIT, JOIN):
            version = _api_version(CLUSTER)
            of_nodes[edit.kind] = edited(of_nodes.get(edit.kind, {}), edit, schema, version)
        else:
            kind = _chosen(edit.kind, current)
            found[kind] = edited(found[kind], edit, schema, _api_version(kind))
    return RequestedDocuments(documents=found, of_nodes=of_nodes)


def _api_version(kind: str) -> str:
    return COMPONENT_KINDS.get(kind) or "kubeadm.k8s.io/v1beta4"


def _known_kind(each: GivenDocument, current: Documents, default: str = "") -> str:
    kind = each.kind or default
    if not isinstance(each.content, dict) or kind not in (*STORED_KINDS, INIT, JOIN):
        raise BadDocument(
            f"{each.source}: {kind or 'a document without a kind'} is no configuration that a cluster stores",
            hint=f"a change is about {CLUSTER}, {KUBELET} and {KUBE_PROXY}",
            error_class="unsupported-kind",
        )
    _refuse_version(each, kind)
    return kind if kind in (INIT, JOIN) else _chosen(kind, current)


def _refuse_version(each: GivenDocument, kind: str) -> None:
    given = each.content.get("apiVersion") if isinstance(each.content, dict) else None
    is_right = given == COMPONENT_KINDS[kind] if kind in COMPONENT_KINDS else given in _KUBEADM_VERSIONS
    if given is not None and not is_right:
        wanted = COMPONENT_KINDS.get(kind, "kubeadm.k8s.io/v1beta4")
        raise BadDocument(f"{each.source}: {kind} has the apiVersion {given!r}", hint=f"write {wanted}")


def _chosen(kind: str, current: Documents) -> str:
    if kind not in (*STORED_KINDS, INIT, JOIN):
        raise BadUsage(f"--kind {kind} is no configuration", hint=f"it is one of {', '.join(STORED_KINDS)}")
    if kind in current or kind in (INIT, JOIN):
        return kind
    raise BadDocument(
        "the cluster has no ConfigMap kube-system/kube-proxy, so there is no KubeProxyConfiguration to change",
        hint="where another program replaces kube-proxy, change that one",
    )
