"""What somebody has edited on nodes, taken out again: each file as it is, but for the fields that are not as declared.

The steps are those of every change: a component is rendered with the edits and without them, and what differs is
carried over to the file. What comes from the surroundings of a node stays as it is, as does what was not named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from garboard.change.attribute import ALL_PODS, KUBELET
from garboard.change.codes import Weight
from garboard.change.configuration import StoredConfiguration, completed, endpoint_of, read_configuration
from garboard.change.control_plane_steps import ETCD, ControlPlaneChange, NodeRenderings
from garboard.change.differences import AttributeChange, differences
from garboard.change.drift_names import DriftNames
from garboard.change.drifting import ClusterDrift
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.members import member_findings, quorum_text
from garboard.change.node_steps import kubelet_work
from garboard.change.node_work import PlanOptions
from garboard.change.observations import observations
from garboard.change.patch_sets import PatchSets
from garboard.change.plan import ChangePlan, NodeChange, PlannedAttribute, PlannedStep
from garboard.change.rendering import ClusterRendering, RenderedPod
from garboard.change.request import DriftCorrection
from garboard.change.rulings import Findings, findings_of, refuse_codes, ruled
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import HIDDEN, Json
from garboard.drift import Difference, DriftKind, LeafPath, Seen, with_fields
from garboard.errors import GarboardError
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.patches.json_values import Absent, JsonOrAbsent
from garboard.values import dataclass

CAUSE = "it was edited by hand"
_GOES, _COMES = "it was edited by hand: it becomes as it is declared", "it is declared, and not there: it comes"
_COMPONENTS = (*ALL_PODS, KUBELET_TARGET)


def correction_of(drift: ClusterDrift, names: DriftNames, *, node: str = "") -> DriftCorrection:
    """Return what becomes as it is declared: of one node, or of all."""
    found: dict[str, tuple[Difference, ...]] = {}
    left: list[str] = []
    for part in (*drift.nodes, drift.objects):
        if node and part.node != node:
            continue
        own = [each for each in part.differences if names.selects(part.node, each)]
        if corrected := tuple(each for each in own if part.node and _is_correctable(each)):
            found[part.node] = corrected
        left += [_left(part.node, each) for each in own if not (part.node and _is_correctable(each))]
    return DriftCorrection(differences=found, names=names.texts, left=tuple(left))


def _is_correctable(difference: Difference) -> bool:
    return bool(difference.path) and difference.component in _COMPONENTS


def _left(node: str, difference: Difference) -> str:
    """Say what is not put back: a file that is not there has nothing to be carried over to, an object is no file."""
    where = f"{difference.where} on {node}" if node else difference.where
    how = "garboard upgrade or kubectl renders it" if node else "kubectl edit puts it back"
    return f"{where}: {difference.field} stays as it is: {how}"


def plan_correction(snapshot: ClusterSnapshot, request: DriftCorrection, options: PlanOptions) -> ChangePlan:
    """Return the plan by which nodes become as they are declared; nothing that nodes share is written."""
    refuse_codes(options.accepted)
    planner = _Correction.of(snapshot, request, options)
    attributes = tuple(each for node in planner.nodes for each in planner.attributes(node))
    parts = (NodeChange(node=node.name, steps=steps) for node in planner.nodes if (steps := planner.steps(node)))
    plan = ChangePlan(
        attributes=attributes,
        parts=tuple(parts),
        observed=observations(snapshot),
        warnings=request.left,
        corrects=request.names,
    )
    return plan.without_parts() if plan.is_blocked else plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Correction:
    """The nodes that have something to correct, as they are declared."""

    snapshot: ClusterSnapshot
    request: DriftCorrection
    options: PlanOptions
    context: ChangeContext
    rendering: ClusterRendering

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, request: DriftCorrection, options: PlanOptions) -> "_Correction":
        current = read_configuration(snapshot)
        files = PatchSets.of(snapshot, None).files
        return cls(
            snapshot=snapshot,
            request=request,
            options=options,
            context=ChangeContext(snapshot=snapshot, current=current, target=current),
            rendering=ClusterRendering(current, snapshot, files, accepted=options.accepted),
        )

    @property
    def nodes(self) -> tuple[SnapshotNode, ...]:
        """The nodes in their order, control planes first, and before all of them the one where it begins."""
        return tuple(
            each for each in self.snapshot.in_order(self.options.first) if each.name in self.request.differences
        )

    def steps(self, node: SnapshotNode) -> tuple[PlannedStep, ...]:
        own = [*self._control_plane(node)] if node.is_control_plane else []
        return (*own, *self._kubelet(node))

    def _edits(self, node: SnapshotNode, component: str) -> dict[LeafPath, JsonOrAbsent]:
        return {each.path: each.actual.value for each in self._own(node) if each.component == component}

    def _own(self, node: SnapshotNode) -> tuple[Difference, ...]:
        return self.request.differences[node.name]

    def _control_plane(self, node: SnapshotNode) -> tuple[PlannedStep, ...]:
        pods = self.rendering.static_pods(node, node.patch_set)
        declared = NodeRenderings(
            pods=pods, certificates={}, kubeconfigs=self.rendering.kubeconfigs(node), inputs=self.rendering.inputs(node)
        )
        edited = {name: self._edited_pod(node, pod) for name, pod in pods.items()}
        first = next(iter(self.snapshot.in_order(self.options.first)), None)
        return ControlPlaneChange(
            node=node,
            before=replace(declared, pods=edited),
            after=declared,
            changes=(),
            certificates_dir=self.context.current.cluster.certificates_dir,
            patch_cause=CAUSE,
            quorum=quorum_text(self.context),
            is_first=first is not None and node.name == first.name,
        ).work().steps  # fmt: skip

    def _edited_pod(self, node: SnapshotNode, pod: RenderedPod) -> RenderedPod:
        document = with_fields(pod.document, self._edits(node, pod.plain.name))
        return RenderedPod(document if isinstance(document, dict) else {}, pod.plain)

    def _kubelet(self, node: SnapshotNode) -> tuple[PlannedStep, ...]:
        declared = self.rendering.kubelet(node, node.patch_set)
        edited = with_fields(declared, self._edits(node, KUBELET_TARGET))
        before: Mapping[str, Json] = edited if isinstance(edited, dict) else {}
        changes, findings = self._kubelet_changes(node)
        drains = self.options.drains or any(node.name in each.drains for own in findings.values() for each in own)
        return kubelet_work(node, before, declared, changes, patch_cause=CAUSE, is_drained=drains).steps

    def attributes(self, node: SnapshotNode) -> Iterator[PlannedAttribute]:
        """Yield each difference as an attribute with its verdict."""
        for each in self._own(node):
            own = [ChangeFinding(reason=_COMES if each.kind is DriftKind.PENDING else _GOES)]
            if each.component == ETCD:
                own += member_findings(self.context)
            if each.component == KUBELET_TARGET:
                changes, findings = self._kubelet_changes(node)
                labels = dict.fromkeys(change.label for change in changes if change.path[0] == each.path[0])
                # What is merely said of a field is said where somebody asks for it.
                own += [found for label in labels for found in findings[label] if found.weight is Weight.CONFIRM]
            yield edit_attribute(node.name, each, own, self.options.accepted, before=each.actual, after=each.declared)

    def _kubelet_changes(self, node: SnapshotNode) -> tuple[tuple[AttributeChange, ...], Findings]:
        """Return what changes for a kubelet, and what there is to say about that, such as that fewer pods fit."""
        own = [each for each in self._own(node) if each.component == KUBELET_TARGET]
        try:
            edited = self._with_kubelet({each.path: each.actual.value for each in own})
            declared = self._with_kubelet({each.path: each.declared.value for each in own})
        except GarboardError:  # a configuration that no kubelet takes says nothing of what runs
            return (), {}
        changes = differences({KUBELET: edited.documents[KUBELET]}, {KUBELET: declared.documents[KUBELET]})
        alone = msgspec.structs.replace(self.snapshot, nodes=[node])
        return changes, findings_of(changes, ChangeContext(snapshot=alone, current=edited, target=declared))

    def _with_kubelet(self, values: Mapping[LeafPath, JsonOrAbsent]) -> StoredConfiguration:
        current = self.context.current
        document = with_fields(current.documents[KUBELET], values)
        documents = {**current.documents, KUBELET: document if isinstance(document, dict) else {}}
        return completed(documents, current, endpoint_of(self.snapshot))


def edit_attribute(
    node: str,
    difference: Difference,
    findings: list[ChangeFinding],
    accepted: tuple[str, ...],
    *,
    before: Seen,
    after: Seen,
) -> PlannedAttribute:
    """Return a difference as an attribute of a plan; values of variables may be secrets, and are not shown."""
    label = f"{difference.component} on {node}: {difference.field}"
    (found,) = ruled((), {label: findings}, accepted)
    is_secret = "env" in difference.path
    return replace(found, before=_shown(before, is_secret=is_secret), after=_shown(after, is_secret=is_secret))


def _shown(seen: Seen, *, is_secret: bool) -> Json:
    value = seen.value
    return None if isinstance(value, Absent) else HIDDEN if is_secret else value
