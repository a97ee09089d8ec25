"""From a snapshot and a request to a plan: merged, validated, judged, and rendered twice to see what it touches."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from garboard.change.adopting import plan_adoption
from garboard.change.attribute import CLUSTER
from garboard.change.configuration import StoredConfiguration, completed, endpoint_of, read_configuration
from garboard.change.correcting import plan_correction
from garboard.change.differences import AttributeChange, differences
from garboard.change.findings import ChangeContext
from garboard.change.hand_edits import adoptable, hand_edits
from garboard.change.node_work import ClusterWork, PlanOptions, planned_work
from garboard.change.objects import object_parts, proxy_parts
from garboard.change.observations import observations
from garboard.change.patch_sets import PatchSets, patch_attribute, record_part, unread_files
from garboard.change.plan import ChangePlan, NodeChange, PlannedAttribute, PlannedObject
from garboard.change.request import (
    ChangeRequest,
    DriftAdoption,
    DriftCorrection,
    NewPatchSet,
    RecordedState,
    RequestedDocuments,
    requested,
    with_edits,
)
from garboard.change.rulings import (
    default_label,
    left_out_findings,
    node_attributes,
    refuse_codes,
    ruled,
    with_placed,
)
from garboard.change.snapshot import ClusterSnapshot
from garboard.change.validation import refuse_invalid, whole_findings
from garboard.schema import load_schema

_HAND_EDIT = "hand-edit"


def plan_change(
    snapshot: ClusterSnapshot,
    request: ChangeRequest,
    accepted: Sequence[str] = (),
    *,
    options: PlanOptions | None = None,
) -> ChangePlan:
    """Return what a request would do to a cluster; equal inputs give equal plans.

    A request that makes no sense, or that kubeadm would refuse, is refused with an error. What is dangerous is not: the
    plan says so, and holds no steps while it is blocked. `options` are given instead of the accepted codes alone.
    """
    options = options or PlanOptions(accepted=tuple(accepted))
    if isinstance(request, DriftCorrection):
        return plan_correction(snapshot, request, options)
    if isinstance(request, DriftAdoption):
        return plan_adoption(snapshot, request, options)
    if options.drift == "keep":
        options = replace(options, accepted=(*options.accepted, _HAND_EDIT))
    accepted = options.accepted
    refuse_codes(accepted)
    current = read_configuration(snapshot)
    schema = load_schema(current.cluster.release)
    wanted = requested(request, current.documents, schema)
    version, wanted = _without_version(wanted, current.cluster.kubernetes_version)
    patch_sets = _patch_sets(snapshot, request)
    context, changes, work = _worked_out(snapshot, current, wanted, version, patch_sets, options)
    if options.drift == "adopt" and (edits := adoptable(context, work)):
        wanted = with_edits(wanted, edits, load_schema(current.cluster.release))
        context, changes, work = _worked_out(snapshot, current, wanted, version, patch_sets, options)
    attributes = (
        *_attributes(changes, context, wanted, work, options),
        *patch_attribute(patch_sets, snapshot),
        *node_attributes(wanted.of_nodes),
    )
    unread = unread_files(request.content, schema) if isinstance(request, NewPatchSet) else ()
    plan = ChangePlan(
        attributes=attributes,
        parts=tuple(_parts(context, changes, work, patch_sets, options.first)),
        follow_ups=work.follow_ups,
        observed=observations(snapshot),
        warnings=(*current.warnings, *unread),
    )
    return plan.without_parts() if plan.is_blocked else plan


def _worked_out(
    snapshot: ClusterSnapshot,
    current: StoredConfiguration,
    wanted: RequestedDocuments,
    version: tuple[AttributeChange, ...],
    patch_sets: PatchSets,
    options: PlanOptions,
) -> tuple[ChangeContext, tuple[AttributeChange, ...], ClusterWork]:
    """Return what is asked for with its defaults, what that changes, and what is done for it."""
    target = completed(wanted.documents, current, endpoint_of(snapshot))
    refuse_invalid(current, target)
    changes = (*version, *differences(current.documents, target.documents))
    context = ChangeContext(snapshot=snapshot, current=current, target=target)
    return context, changes, planned_work(context, changes, patch_sets, options)


def _patch_sets(snapshot: ClusterSnapshot, request: ChangeRequest) -> PatchSets:
    wanted = request.content if isinstance(request, NewPatchSet) else None
    recorded = request.patch_sets if isinstance(request, RecordedState) else None
    return PatchSets.of(snapshot, wanted, recorded)


def _without_version(
    wanted: RequestedDocuments, current: str
) -> tuple[tuple[AttributeChange, ...], RequestedDocuments]:
    """Take another version out of a request, and return it as a change: all else is planned for the one that runs."""
    document = dict(wanted.documents[CLUSTER])
    given = document.get("kubernetesVersion")
    if given == current:
        return (), wanted
    kept = wanted.with_document(CLUSTER, {**document, "kubernetesVersion": current})
    if given is None:
        return (), kept
    change = AttributeChange(kind=CLUSTER, path=("kubernetesVersion",), before=current, after=given)
    return (change,), kept


def _attributes(
    changes: tuple[AttributeChange, ...],
    context: ChangeContext,
    wanted: RequestedDocuments,
    work: ClusterWork,
    options: PlanOptions,
) -> tuple[PlannedAttribute, ...]:
    findings = work.judged
    placed = [
        *whole_findings(changes, context),
        *left_out_findings(changes, wanted.left_out, wanted.rewritten),
        *work.placed,
        *hand_edits(context, work, overwrites=options.drift == "overwrite"),
    ]
    return ruled(changes, with_placed(findings, placed, default_label(changes, "")), options.accepted)


def _parts(
    context: ChangeContext, changes: tuple[AttributeChange, ...], work: ClusterWork, patch_sets: PatchSets, first: str
) -> Iterator[NodeChange | PlannedObject]:
    """Yield the work in order: one control plane, what is stored, the others, workers; then kube-proxy and CoreDNS.

    Nodes that have something to do begin with `first`, if it is one of them.
    """
    stored = [*object_parts(context, changes), *record_part(patch_sets, context.snapshot)]
    canary, *others = work.nodes or (None,)
    if canary is not None:
        yield canary
    yield from stored
    yield from (each for each in others if each is not None)
    yield from proxy_parts(context, changes, first)
    yield from work.shared
