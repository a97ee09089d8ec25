"""What a change does on every node, and what the rules say of the results, each distinct case looked at once."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from garboard.change.configuration import StoredConfiguration
from garboard.change.control_plane_steps import ControlPlaneChange, NodeRenderings
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.members import quorum_text
from garboard.change.node_steps import KUBELET, NodeWork, kubelet_work
from garboard.change.objects import workload_parts
from garboard.change.patch_sets import CAUSE as PATCH_CAUSE
from garboard.change.patch_sets import PatchSets
from garboard.change.plan import NodeChange, PlannedObject
from garboard.change.rendering import ClusterRendering
from garboard.change.rulings import Findings, default_label, findings_of
from garboard.change.snapshot import SnapshotNode
from garboard.change.validation import PlacedFinding, kubelet_findings, pod_findings
from garboard.values import Json, dataclass

# Refused; kept on the node; put into the configuration as well; or taken out.
DriftPolicy: TypeAlias = Literal["fail", "keep", "adopt", "overwrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How a request is to be carried out: what was accepted, where it begins, and whether nodes are drained for it.

    It begins on the first control plane by name, if none is named. `drift` says what becomes of flags that somebody
    has typed into the manifests which are replaced.
    """

    accepted: tuple[str, ...] = ()
    first: str = ""
    drains: bool = False
    drift: DriftPolicy = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWork:
    """What is done on nodes, control planes first, and what there is to say about it."""

    nodes: tuple[NodeChange, ...]
    shared: tuple[PlannedObject, ...]
    judged: Findings
    placed: tuple[PlacedFinding, ...]
    renderings: dict[str, tuple[NodeRenderings, NodeRenderings]] = field(repr=False)  # of control planes

    @property
    def follow_ups(self) -> tuple[str, ...]:
        found = [text for own in self.judged.values() for each in own for text in each.follow_ups]
        return tuple(dict.fromkeys(found))

    @property
    def touched(self) -> dict[str, frozenset[str]]:
        """The components that are replaced, by node."""
        return {
            each.node: frozenset(name for step in each.steps if step.files for name in step.restarts)
            for each in self.nodes
        }


def planned_work(
    context: ChangeContext, changes: tuple[AttributeChange, ...], patch_sets: PatchSets, options: PlanOptions
) -> ClusterWork:
    """Render every node before and after, and return what differs."""
    judged = findings_of(changes, context)
    nodes = context.snapshot.in_order(options.first)
    drained = frozenset(name for own in judged.values() for each in own for name in each.drains)
    if options.drains:
        drained = frozenset(node.name for node in nodes)
    planner = _NodePlanner(
        context=context,
        changes=changes,
        patch_sets=patch_sets,
        drained=drained,
        accepted=options.accepted,
        first=options.first or (nodes[0].name if nodes else ""),
        overwrites=options.drift == "overwrite",
    )
    works = [(node, planner.work(node)) for node in nodes]
    return ClusterWork(
        nodes=tuple(NodeChange(node=node.name, steps=work.steps) for node, work in works if work.steps),
        shared=tuple(workload_parts(*planner.renderers, patch_sets, changes)),
        judged=judged,
        placed=(*planner.findings(), *_conflicts(works)),
        renderings=planner.control_planes,
    )


def _value_of(found: Json) -> Json:
    """Return the value of a flag, if what was found is one."""
    words = [str(each).partition("=")[2] for each in found] if isinstance(found, list) else []
    return found if not isinstance(found, list) else words[0] if len(words) == 1 else [*words]


def _conflicts(works: Sequence[tuple[SnapshotNode, NodeWork]]) -> Iterator[PlacedFinding]:
    for node, work in works:
        for component, each in work.conflicts:
            place = " ".join(step for step in each.path if step not in ("spec", "containers", component, "command"))
            found, wanted = _value_of(each.found), _value_of(each.wanted)
            reason = f"on {node.name} it was changed by hand to {found!r}, and {wanted!r} is asked for"
            route = "garboard change drift shows it; undo the edit first, or ask for what is there"
            finding = ChangeFinding(code="conflicting-edit", reason=reason, route=route, found=found)
            yield PlacedFinding(f"{component} on {node.name}: {place}", finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodePlanner:
    """Plans node after node; what many nodes have in common is rendered and compared once."""

    context: ChangeContext
    changes: tuple[AttributeChange, ...]
    patch_sets: PatchSets
    drained: frozenset[str]
    accepted: Sequence[str]
    first: str
    overwrites: bool
    control_planes: dict[str, tuple[NodeRenderings, NodeRenderings]] = field(default_factory=dict)
    kubelets: dict[tuple[object, ...], tuple[NodeWork, tuple[dict[str, object], dict[str, object]]]] = field(
        default_factory=dict
    )

    @property
    def renderers(self) -> tuple[ClusterRendering, ClusterRendering]:
        return self._renderer(self.context.current, is_new=False), self._renderer(self.context.target, is_new=True)

    def _renderer(self, configuration: StoredConfiguration, *, is_new: bool) -> ClusterRendering:
        return ClusterRendering(
            configuration=configuration,
            snapshot=self.context.snapshot,
            patch_sets=self.patch_sets.files,
            is_strict=is_new and self.patch_sets.is_changed,
            accepted=tuple(self.accepted),
        )

    def work(self, node: SnapshotNode) -> NodeWork:
        control_plane = self._control_plane(node) if node.is_control_plane else NodeWork()
        kubelet = self._kubelet(node)
        return NodeWork(
            steps=(*control_plane.steps, *kubelet.steps), conflicts=(*control_plane.conflicts, *kubelet.conflicts)
        )

    def _control_plane(self, node: SnapshotNode) -> NodeWork:
        before, after = (
            NodeRenderings(
                pods=renderer.static_pods(node, patches),
                certificates=renderer.certificates(node),
                kubeconfigs=renderer.kubeconfigs(node),
                inputs=renderer.inputs(node),
            )
            for renderer, patches in zip(self.renderers, self.patch_sets.of_node(node), strict=True)
        )
        self.control_planes[node.name] = before, after
        return ControlPlaneChange(
            node=node,
            before=before,
            after=after,
            changes=self.changes,
            certificates_dir=self.context.current.cluster.certificates_dir,
            patch_cause=PATCH_CAUSE,
            quorum=quorum_text(self.context),
            is_first=node.name == self.first,
            overwrites=self.overwrites,
        ).work()

    def _kubelet(self, node: SnapshotNode) -> NodeWork:
        """Return the work on a kubelet, which is that of another node where everything it depends on is the same."""
        sets = self.patch_sets.of_node(node)
        is_drained = node.name in self.drained
        own = self.patch_sets.facts_of(node)  # layers of a tree
        key = (node.settings.cri_socket, *sets, node.kubelet_config, node.is_control_plane, own, is_drained)
        name = node.name if is_drained else ""
        if (*key, name) not in self.kubelets:
            before, after = (
                renderer.kubelet(node, patches) for renderer, patches in zip(self.renderers, sets, strict=True)
            )
            work = kubelet_work(node, before, after, self.changes, patch_cause=PATCH_CAUSE, is_drained=is_drained)
            self.kubelets[(*key, name)] = work, (before, after)  # type: ignore[assignment]
        return self.kubelets[(*key, name)][0]

    def findings(self) -> Iterator[PlacedFinding]:
        """Yield what the rules say of the results; a finding that several nodes have is the same finding."""
        for before, after in self.control_planes.values():
            for name, new in after.pods.items():
                old = before.pods.get(name)
                if old is None or old.document == new.document:
                    continue
                for each in pod_findings(name, old, new, self.changes, self.context):
                    yield self._placed(each, name)
        for _, (before_kubelet, after_kubelet) in self.kubelets.values():
            if before_kubelet != after_kubelet:
                for each in kubelet_findings(before_kubelet, after_kubelet, self.changes, self.context):  # type: ignore[arg-type]
                    yield self._placed(each, KUBELET)

    def _placed(self, each: PlacedFinding, component: str) -> PlacedFinding:
        if each.label:
            return each
        default = "patches" if self.patch_sets.is_changed else default_label(self.changes, component)
        return PlacedFinding(default, each.finding)
