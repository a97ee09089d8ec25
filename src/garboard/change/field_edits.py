"""Fields that somebody has changed by hand in the manifests of components which a change has to replace.

Flags of the component itself are left to `hand_edits`. What comes from the surroundings of a node is no edit, as
`drift` judges it: proxy variables, authorities of the distribution, startup thresholds, how a member of etcd joined.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from garboard.change.control_plane_steps import NodeRenderings
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.flag_judges import PROGRAMS
from garboard.change.rendering import RenderedPod
from garboard.change.snapshot import MirrorPod, SnapshotNode
from garboard.change.validation import PlacedFinding
from garboard.documents import Json
from garboard.drift import (
    DeclaredDocument,
    Difference,
    DriftKind,
    DriftSubject,
    FlagStep,
    FoundDocument,
    Leaf,
    LeafPath,
    compare_all,
    leaves_of,
    rendered_from,
    same_meaning,
    show_leaf,
)
from garboard.model.paths import manifest_path
from garboard.patches import copy_of, find_target
from garboard.patches.fieldpath import Pick
from garboard.patches.json_values import Absent
from garboard.schema import load_schema
from garboard.values import dataclass

SECTIONS: Mapping[str, str] = {
    program: "etcd.local" if program == "etcd" else section for section, program in PROGRAMS.items()
}
_EXTRA = {"volumes": "extraVolumes", "volumeMounts": "extraVolumes", "env": "extraEnvs"}
_Leaves = Mapping[LeafPath, Leaf]


def field_edits(
    context: ChangeContext,
    node: SnapshotNode,
    renderings: tuple[NodeRenderings, NodeRenderings],
    touched: frozenset[str],
) -> Iterator[PlacedFinding]:
    """Yield each edited place of the touched components of a node; of what the change itself asks for, nothing."""
    if not touched:
        return
    before, after = renderings
    # Whether a startup threshold is an edit, the other components of the node say; without its files none has one.
    names = [name for name in before.pods if node.manifests is not None or name in touched]
    subjects = [each for name in names if (each := _subject(context, node, name, before.pods[name])) is not None]
    edits = [each for each in compare_all(subjects) if each.kind is DriftKind.HAND_EDIT]
    for subject in subjects:
        component = subject.component
        if component in touched and component in after.pods:
            manifests = before.pods[component].document, after.pods[component].document
            rendered, wanted = (leaves_of(each, subject.shape) for each in manifests)
            found = subject.on_disk or subject.running
            assert found is not None
            live = leaves_of(found.document, subject.shape)
            own = [
                each
                for each in edits
                if each.component == component
                and not _is_flag(each.path, component)
                and same_meaning(rendered.get(each.path), wanted.get(each.path))  # else the change is about it
            ]
            for edit in _edited_places(own, rendered, live):
                yield PlacedFinding(f"{component} on {node.name}: {edit.place}", edit.finding(component, node.name))


def _subject(context: ChangeContext, node: SnapshotNode, component: str, pod: RenderedPod) -> DriftSubject | None:
    """Return a component as it is rendered now, and as its file has it, else as far as the API shows it."""
    path, release = manifest_path(component), context.current.cluster.release
    declared = rendered_from(pod.plain.document, pod.plain.sources.of, str(context.current.cluster.facts.minor))
    text, mirror = (node.manifests or {}).get(component), node.mirror_pods.get(component)
    on_disk = running = None
    if text is not None:
        on_disk = FoundDocument.of_file(path, text.encode())
    elif mirror is not None and mirror.image and node.manifests is None:
        running = FoundDocument(_as_shown(pod.document, mirror), "API")
    else:
        return None
    return DriftSubject(
        component=component,
        where=path,
        shape=find_target(component, release).shape(load_schema(release)),
        rendered=declared,
        patched=(DeclaredDocument(pod.document, declared.origin),),
        on_disk=on_disk,
        running=running,
    )


def _as_shown(rendered: Json, mirror: MirrorPod) -> Json:
    """Return a manifest with what a snapshot keeps of its mirror pod: the image, and which variables there are."""
    document = copy_of(rendered)
    spec = document.get("spec") if isinstance(document, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    if isinstance(first, dict):
        env = first.get("env")
        declared = {str(each["name"]): each for each in env if isinstance(each, dict)} if isinstance(env, list) else {}
        variables: list[Json] = [declared.get(name, {"name": name}) for name in mirror.variables]
        first["image"] = mirror.image
        first["env"] = variables
        if not variables:
            del first["env"]
    return document


def _is_flag(path: LeafPath, component: str) -> bool:
    picks = [each.value for each in path if isinstance(each, Pick)]
    return isinstance(path[-1], FlagStep) and picks == [component] if path else False


@dataclass(frozen=True, slots=True)
class _EditedPlace:
    """A field, or a whole element of a list that somebody has added or taken out."""

    path: LeafPath
    change: str  # what happened to it
    found: Json = None

    @property
    def place(self) -> str:
        return show_leaf(self.path)

    def finding(self, component: str, node: str) -> ChangeFinding:
        extra = next((_EXTRA[step] for step in self.path if isinstance(step, str) and step in _EXTRA), "")
        section = f"put it into {SECTIONS[component]}.{extra}, " if extra else ""
        route = (
            f"{section}make it a patch (on {node}: garboard change drift --capture DIR; then change plan --patches"
            " DIR), undo it, or keep it where it is"
        )
        return ChangeFinding(code="hand-edit", reason=f"{self.place} {self.change}", route=route, found=self.found)


def _edited_places(edits: Sequence[Difference], rendered: _Leaves, live: _Leaves) -> Iterator[_EditedPlace]:
    """Yield each place once; an element that one side lacks as a whole is one place."""
    told: set[LeafPath] = set()
    for each in edits:
        added, gone = _element_not_in(rendered, each.path), _element_not_in(live, each.path)
        if added or gone:
            change = "was added by hand" if added else "was taken out by hand"
            place = _EditedPlace(added or gone, f"{change}: neither the configuration nor a patch has it so")
        else:
            place = _changed(each)
        if place.path not in told:
            told.add(place.path)
            yield place


def _changed(edit: Difference) -> _EditedPlace:
    if "env" in edit.path:  # a value may be a secret
        return _EditedPlace(edit.path, "was changed by hand")
    value = edit.actual.value
    change = f"was changed by hand: it is {edit.actual.text}, and declared as {edit.declared.text}"
    return _EditedPlace(edit.path, change, None if isinstance(value, Absent) else value)


def _element_not_in(leaves: Iterable[LeafPath], path: LeafPath) -> LeafPath:
    """Return the outermost element of a list on the way to a field that a document has nothing of."""
    known = [*leaves]
    prefixes = (path[: index + 1] for index, step in enumerate(path) if isinstance(step, Pick))
    return next((each for each in prefixes if not any(other[: len(each)] == each for other in known)), ())
