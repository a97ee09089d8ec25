"""Hand edits, recorded as they are: in the configuration where it can say them, and else as patches of their nodes.

The configuration can say an edit which every node that it is about has in the same way: a flag, a volume of the host,
a variable, a field of all kubelets. Whether it does is found out by rendering: what still differs becomes a patch. So
no node is touched, and nothing restarts.
"""

from collections.abc import Callable, Mapping

import msgspec

from garboard.change.adoptable import Proposal, proposals
from garboard.change.attribute import CLUSTER, KUBELET
from garboard.change.codes import Weight
from garboard.change.configuration import (
    MAP_OF_KIND,
    StoredConfiguration,
    completed,
    endpoint_of,
    read_configuration,
    stored_data,
    with_data,
)
from garboard.change.correcting import edit_attribute
from garboard.change.differences import differences
from garboard.change.drift_names import DriftNames
from garboard.change.drifting import ClusterDrift, ComparedNode
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.node_work import PlanOptions
from garboard.change.objects import object_parts
from garboard.change.observations import observations
from garboard.change.patch_sets import PatchSets, patch_attribute, record_part
from garboard.change.plan import ChangePlan, PlannedAttribute
from garboard.change.request import Documents, DriftAdoption
from garboard.change.rulings import default_label, findings_of, refuse_codes, ruled, with_placed
from garboard.change.snapshot import ClusterSnapshot
from garboard.change.validation import refuse_invalid, whole_findings
from garboard.drift import Difference, DriftKind, can_keep, capture, has_folders_for_kubeadm, placed_files
from garboard.errors import GarboardError
from garboard.phases.node.records import PatchSetContent
from garboard.schema import load_schema
from garboard.values import dataclass

DriftOf = Callable[[ClusterSnapshot], ClusterDrift]
_AS_IT_IS = "it is so on all of its nodes: it is recorded, and nothing restarts"
_AS_PATCH = "it is recorded as a patch of the node, and nothing restarts"


def adoption_of(snapshot: ClusterSnapshot, drift_of: DriftOf, names: DriftNames) -> DriftAdoption:
    """Return what has to be recorded so that the hand edits which are meant are none any more.

    `drift_of` compares the nodes, as they were seen, with what a cluster stores.
    """
    adopter = _Adopter(snapshot, drift_of, names, read_configuration(snapshot))
    documents, after = adopter.documents()
    patched = {part.node: kept for part in after.nodes if (kept := adopter.kept(part))}
    contents = {node: adopter.content(part, patched[node]) for part in after.nodes if (node := part.node) in patched}
    known = {node.name: node.patch_set for node in snapshot.nodes if node.patch_set}
    return DriftAdoption(
        documents=documents,
        patch_sets={**known, **{node: content.digest for node, content in contents.items()}},
        contents={content.digest: content for content in contents.values()},
        patched=patched,
        left=tuple(adopter.left(after)),
    )


@dataclass(frozen=True, slots=True)
class _Adopter:
    """What was seen, and what is looked for in it."""

    snapshot: ClusterSnapshot
    drift_of: DriftOf
    names: DriftNames
    current: StoredConfiguration

    def documents(self) -> tuple[Documents, ClusterDrift]:
        """Return the documents with all that they can say, and what differs from them then."""
        before = self.drift_of(self.snapshot)
        said = [each for each in proposals(before, self.snapshot, self.names) if self._is_sayable(each)]
        while said:
            documents = _with_all(self.current.documents, said)
            after = self.drift_of(self._with_documents(documents))
            failed = [each for each in said if _is_unlike(each, before, after)]
            if not failed:
                return documents, after
            said = [each for each in said if each not in failed]
        return self.current.documents, before

    def _is_sayable(self, proposal: Proposal) -> bool:
        """Say whether the configuration takes it: some flags are decided by other fields, and may not stand there."""
        try:
            target = self._completed(_with_all(self.current.documents, [proposal]))
            refuse_invalid(self.current, target)
        except GarboardError:
            return False
        changes = differences(self.current.documents, target.documents)
        context = ChangeContext(snapshot=self.snapshot, current=self.current, target=target)
        found = [each for own in findings_of(changes, context).values() for each in own]
        return bool(changes) and all(each.weight < Weight.BLOCKED for each in found)

    def _completed(self, documents: Documents) -> StoredConfiguration:
        return completed(documents, self.current, endpoint_of(self.snapshot))

    def _with_documents(self, documents: Documents) -> ClusterSnapshot:
        target, maps = self._completed(documents), dict(self.snapshot.config_maps)
        for kind in (CLUSTER, KUBELET):
            found = maps[MAP_OF_KIND[kind]]
            data = with_data(found, stored_data(kind, target, endpoint_of(self.snapshot)))
            maps[MAP_OF_KIND[kind]] = msgspec.structs.replace(found, data=data)
        return msgspec.structs.replace(self.snapshot, config_maps=maps)

    def _selected(self, part: ComparedNode) -> list[Difference]:
        edits = (each for each in part.differences if each.kind is DriftKind.HAND_EDIT)
        return [each for each in edits if self.names.selects(part.node, each)]

    def kept(self, part: ComparedNode) -> tuple[Difference, ...]:
        """Return the edits of a node that a patch has to hold."""
        schema = load_schema(self.current.cluster.release)
        return tuple(each for each in self._selected(part) if can_keep(each, schema))

    def content(self, part: ComparedNode, kept: tuple[Difference, ...]) -> PatchSetContent:
        """Return the patches of a node with those that hold its edits, which come last."""
        node = self.snapshot.node(part.node)
        recorded = self.snapshot.patch_sets.get(node.patch_set, {}) if node else {}
        schema = load_schema(self.current.cluster.release)
        files = capture(part.subjects, kept, schema, is_for_kubeadm=has_folders_for_kubeadm(recorded))
        added = placed_files(recorded, files, part.node)
        return PatchSetContent({path: text.encode() for path, text in {**recorded, **added}.items()})

    def left(self, after: ClusterDrift) -> list[str]:
        """Return what nothing can record: files that are not there, flags of a kubelet, workloads of addons."""
        kept = {part.node: self.kept(part) for part in after.nodes}
        return [
            f"{each.where}{f' on {part.node}' if part.node else ''}: {each.field} cannot be recorded by a change"
            + ("" if part.node else "; garboard upgrade keeps it as a patch, where one can hold it")
            for part in (*after.nodes, after.objects)
            for each in self._selected(part)
            if each not in kept.get(part.node, ())
        ]


def _with_all(documents: Documents, said: list[Proposal]) -> Documents:
    for each in said:
        documents = {**documents, each.kind: each.said_in(documents[each.kind])}
    return documents


def _is_unlike(proposal: Proposal, before: ClusterDrift, after: ClusterDrift) -> bool:
    """Say whether nodes are still not as they would be rendered: by what was to be said, or by anything new."""
    known = _places(before)
    return any(
        component == proposal.component and (path in proposal.paths or (node, component, path) not in known)
        for node, component, path in _places(after)
    )


def _places(drift: ClusterDrift) -> set[tuple[str, str, object]]:
    kinds = (DriftKind.HAND_EDIT, DriftKind.PENDING)
    return {(part.node, each.component, each.path) for part in drift.nodes for each in part.differences
            if each.kind in kinds}  # fmt: skip


def plan_adoption(snapshot: ClusterSnapshot, request: DriftAdoption, options: PlanOptions) -> ChangePlan:
    """Return the plan by which edits are recorded; it has no part for any node."""
    refuse_codes(options.accepted)
    current = read_configuration(snapshot)
    target = completed(request.documents, current, endpoint_of(snapshot))
    refuse_invalid(current, target)
    changes = differences(current.documents, target.documents)
    context = ChangeContext(snapshot=snapshot, current=current, target=target)
    patch_sets = PatchSets.of(snapshot, None, request.patch_sets, request.contents)
    findings = {each.label: [ChangeFinding(reason=_AS_IT_IS)] for each in changes}
    placed = [each for each in whole_findings(changes, context) if each.finding.weight >= Weight.BLOCKED]
    attributes = (
        *ruled(changes, with_placed(findings, placed, default_label(changes, "")), options.accepted),
        *_patched(request.patched),
        *patch_attribute(patch_sets, snapshot),
    )
    plan = ChangePlan(
        attributes=attributes,
        parts=(*object_parts(context, changes), *record_part(patch_sets, snapshot)),
        observed=observations(snapshot),
        warnings=(*current.warnings, *request.left),
    )
    return plan.without_parts() if plan.is_blocked else plan


def _patched(patched: Mapping[str, tuple[Difference, ...]]) -> list[PlannedAttribute]:
    finding = [ChangeFinding(reason=_AS_PATCH)]
    return [
        edit_attribute(node, each, finding, (), before=each.declared, after=each.actual)
        for node, own in patched.items()
        for each in own
    ]
