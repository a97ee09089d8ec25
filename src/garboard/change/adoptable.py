"""Which hand edits a configuration may be able to say, and how: proposals, which are tried out by rendering them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from garboard.change.attribute import ALL_PODS, CLUSTER, KUBELET
from garboard.change.drift_names import DriftNames
from garboard.change.drifting import ClusterDrift
from garboard.change.field_edits import SECTIONS
from garboard.change.merging import merged
from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import Json
from garboard.drift import DriftKind, FlagStep, LeafPath, with_fields
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.patches.fieldpath import Pick
from garboard.patches.json_values import Absent, JsonOrAbsent
from garboard.values import dataclass

_Values = Mapping[LeafPath, JsonOrAbsent]
_Edits = dict[LeafPath, JsonOrAbsent]
_DELETED = {"$patch": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Differences of a component that a document would say: by a partial document, or by the very fields."""

    kind: str
    component: str
    paths: frozenset[LeafPath]
    patch: Json = None
    values: _Values = field(default_factory=dict)

    def said_in(self, document: Mapping[str, Json]) -> dict[str, Json]:
        """Return a document that says it."""
        found = merged(dict(document), self.patch) if self.patch is not None else with_fields(
            dict(document), self.values
        )  # fmt: skip
        return found if isinstance(found, dict) else {}


def proposals(drift: ClusterDrift, snapshot: ClusterSnapshot, names: DriftNames) -> Iterator[Proposal]:
    """Yield what could be said of hand edits that all nodes of a component have in the same way."""
    control_planes = [each.name for each in snapshot.control_planes]
    for component in ALL_PODS:
        shared = _shared(drift, component, control_planes, names)
        yield from _of_pod(component, shared)
    kubelets = _shared(drift, KUBELET_TARGET, [each.name for each in snapshot.nodes], names)
    for path, value in kubelets.items():
        yield Proposal(kind=KUBELET, component=KUBELET_TARGET, paths=frozenset({path}), values={path: value})


def _shared(drift: ClusterDrift, component: str, nodes: Sequence[str], names: DriftNames) -> _Edits:
    """Return the edits that each of the nodes has, with the same value; nothing if not all of them were looked at."""
    edits = {
        part.node: {
            each.path: each.actual.value
            for each in part.differences
            if each.component == component and each.path and each.kind is DriftKind.HAND_EDIT
            and names.selects(part.node, each)
        }
        for part in drift.nodes
    }  # fmt: skip
    first, *others = [edits.get(name, {}) for name in nodes] or [{}]
    return {path: value for path, value in first.items() if all(each.get(path, _NOTHING) == value for each in others)}


_NOTHING = object()


def _of_pod(component: str, shared: _Values) -> Iterator[Proposal]:
    main = ("spec", "containers", Pick(component, "name"))
    for path, value in shared.items():
        if path[:-1] == (*main, "command") and isinstance(path[-1], FlagStep):
            yield from _flag(component, path, value)
    yield from _variables(component, shared, (*main, "env"))
    yield from _volumes(component, shared, (*main, "volumeMounts"))


def _said(component: str, paths: Iterable[LeafPath], members: Mapping[str, Json]) -> Proposal:
    patch: Json = {**members}
    for name in reversed(SECTIONS[component].split(".")):
        patch = {name: patch}
    return Proposal(kind=CLUSTER, component=component, paths=frozenset(paths), patch=patch)


def _flag(component: str, path: LeafPath, value: JsonOrAbsent) -> Iterator[Proposal]:
    name = str(path[-1]).removeprefix("--")
    values = [] if isinstance(value, Absent) else value if isinstance(value, list) else [value]
    # A flag that stands alone means `true`, and kubeadm writes it so.
    texts: list[Json] = ["true" if each is True else each for each in values]
    items: list[Json] = [{"name": name, "value": each} for each in texts] or [{"name": name, **_DELETED}]
    yield _said(component, [path], {"extraArgs": items})


def _variables(component: str, shared: _Values, at: LeafPath) -> Iterator[Proposal]:
    for pick, fields in _elements(shared, at).items():
        if [*fields] == [("value",)]:
            value = fields[("value",)]
            item: Json = {"name": pick, **_DELETED} if isinstance(value, Absent) else {"name": pick, "value": value}
            yield _said(component, [(*at, Pick(pick, "name"), "value")], {"extraEnvs": [item]})


def _volumes(component: str, shared: _Values, mounts_at: LeafPath) -> Iterator[Proposal]:
    """Yield volumes of the host that were added together with one mount."""
    at: LeafPath = ("spec", "volumes")
    mounts = _elements(shared, mounts_at, "mountPath")
    for name, fields in _elements(shared, at).items():
        own = {path: each for path, each in mounts.items() if each.get(("name",)) == name}
        if len(own) == 1 and set(fields) <= {("hostPath", "path"), ("hostPath", "type")}:
            ((mount, there),) = own.items()
            item = {
                "name": name,
                "hostPath": fields.get(("hostPath", "path")),
                "mountPath": mount,
                "pathType": fields.get(("hostPath", "type")),
                "readOnly": there.get(("readOnly",)),
            }
            given: dict[str, Json] = {key: each for key, each in item.items() if not isinstance(each, Absent | None)}
            paths = [(*at, Pick(name, "name"), *each) for each in fields]
            paths += [(*mounts_at, Pick(mount, "mountPath"), *each) for each in there]
            yield _said(component, paths, {"extraVolumes": [given]})


def _elements(shared: _Values, at: LeafPath, key: str = "name") -> dict[str, _Edits]:
    """Return the edits below the elements of a list, by what names each element."""
    found: dict[str, _Edits] = {}
    for path, value in shared.items():
        step = path[len(at)] if len(path) > len(at) + 1 and path[: len(at)] == at else None
        if isinstance(step, Pick) and step.key == key:
            found.setdefault(step.value, {})[path[len(at) + 1 :]] = value
    return found
