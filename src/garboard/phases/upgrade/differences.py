"""What a node has that an upgrade would drop: its files and the addons compared with what its cluster declares.

Declared is what was rendered for the version that the node has now, by the configuration that the cluster stores, with
the patches that are recorded for the node or given. Whatever differs from that was edited by hand, and stops the
upgrade until somebody has chosen: kept, it becomes a patch of the node, which is recorded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from garboard.drift import (
    CapturedFile,
    Difference,
    DriftKind,
    DriftSubject,
    can_keep,
    capture,
    compare_all,
    differences_as_text,
    has_folders_for_kubeadm,
    placed_files,
)
from garboard.engine import Note
from garboard.errors import BadDocument, NotReady
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET
from garboard.manifests.static_pods import CONTROL_PLANE
from garboard.patches import (
    Finding,
    NodeFacts,
    PatchChecks,
    PatchFile,
    Severity,
    lint_tree,
    targets_of,
    with_exceptions,
)
from garboard.phases.patching import NodePatches
from garboard.phases.static_pods import ETCD
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.drift_choices import DriftChoice, DriftChoices, NodeDrift, hand_edits
from garboard.phases.upgrade.drift_subjects import (
    ADDONS,
    DNS,
    PROXY,
    RECORDED,
    drift_subjects,
    own_cluster,
    render_target,
    upgrades_addons,
)
from garboard.phases.workflow import Blocked
from garboard.schema import load_schema

_LINT_CHECK = "patchesfit"  # as --ignore-preflight-errors has it
_WRITTEN = {
    "control-plane": (*CONTROL_PLANE, ETCD),
    "kubelet-config": (KUBELET,),
    "addon/coredns": (DNS,),
    "addon/kube-proxy": (PROXY,),
}


def find_drift(
    context: UpgradeContext,
    choices: DriftChoices,
    ask: Callable[[Difference], DriftChoice] | None = None,
    recorded: NodePatches | None = None,
    written: Mapping[str, bytes] | None = None,
) -> UpgradeContext:
    """Return the context with what differs on this node and what becomes of that; kept fields are among its patches.

    `recorded` is the patch set that the cluster has for the node, `written` what garboard wrote last. Where nothing was
    chosen, `ask` does; without it nothing is chosen.
    """
    subjects = tuple(drift_subjects(context, recorded, written or {}))
    found = compare_all(subjects)
    own = tuple(each for each in found if each.component not in ADDONS or upgrades_addons(context))
    chosen = tuple(
        (each, choice)
        for each in hand_edits(own)
        if (choice := choices.of(each) or (ask(each) if ask else _unasked(context, each)))
    )
    kept = _kept(context, subjects, [each for each, choice in chosen if choice is DriftChoice.KEEP])
    patched = replace(context, patches=_with_files(context, kept))
    findings, former = _findings(patched)
    drift = NodeDrift(
        differences=own,
        chosen=chosen,
        kept=kept,
        later=hand_edits([each for each in found if each not in own]),
        unused=choices.unused(own),
        findings=findings,
        former_findings=former,
    )
    return replace(patched, drift=drift)


def _unasked(context: UpgradeContext, difference: Difference) -> DriftChoice | None:
    """Return what becomes of a difference without a choice: an addon that can be patched is kept as it is.

    It was edited in the cluster, as users do with objects. The node that upgrades it comes last: to stop there would
    leave the cluster half upgraded.
    """
    is_kept = difference.component in ADDONS and can_keep(difference, load_schema(context.cluster.release))
    return DriftChoice.KEEP if is_kept else None


def plan_differences(context: UpgradeContext) -> Iterator[Note | Blocked]:
    """Say what differs on this node and what becomes of it; what nobody has chosen about blocks the plan."""
    drift = context.drift
    yield from _lint_notes(context)
    yield from (
        Note(f"--drift names {name}, and there is no such difference", is_warning=True) for name in drift.unused
    )
    for each, choice in drift.chosen:
        fate = "is kept as a patch of this node" if choice is DriftChoice.KEEP else f"is dropped: {_value(each)} goes"
        if choice is not DriftChoice.ABORT:
            yield Note(f"{each.where}: {each.field} was edited by hand, and {fate}", is_warning=True)
    for each in drift.differences:
        if each.kind is DriftKind.PENDING or (each.kind is DriftKind.PATCH and each.reason.startswith(RECORDED)):
            text = f"{each.where}: {each.field} becomes {_declared(each)}, it is {_value(each)}: {each.reason}"
            yield Note(text, is_warning=True)
    for each in drift.later:
        text = f"{each.where}: {each.field} was edited by hand. The last control plane, which upgrades it, decides"
        yield Note(text, is_warning=True)
    if drift.stopping:
        yield _blocked(drift.stopping)


def written_by(phases: Iterable[str]) -> frozenset[str]:
    """Return the components that phases of an upgrade write."""
    return frozenset(name for each in phases for name in _WRITTEN.get(each, ()))


def refuse_stopping(context: UpgradeContext, components: frozenset[str]) -> None:
    """Refuse to go on without preflight, if what would be written has differences that stop an upgrade."""
    found = [each for each in context.drift.stopping if each.component in components]
    if found:
        raise _blocked(found).error


def _blocked(differences: Sequence[Difference]) -> Blocked:
    count = f"{len(differences)} live {'difference' if len(differences) == 1 else 'differences'}"
    text = f"{count} that neither the configuration nor a patch explains: an upgrade would drop what was edited by hand"
    first = differences[0]
    error = NotReady(
        f"{text}\n{differences_as_text(differences).rstrip()}",
        hint="choose what becomes of it: --drift keep makes patches of it, which are recorded; --drift drop lets it go;"
        f" or field by field, such as --drift '{_shortest(first)}=keep'",
        error_class="unexplained-difference",
    )
    notes = (Note(f"blocked: {text}", is_warning=True), *(_difference_note(each) for each in differences))
    return Blocked(notes, error)


def _difference_note(difference: Difference) -> Note:
    text = f"{difference.where}: {difference.field} is {_value(difference)}, declared is {_declared(difference)}"
    return Note(text, is_warning=True)


def _shortest(difference: Difference) -> str:
    return f"{difference.component}:{difference.field}"


def _value(difference: Difference) -> str:
    return difference.actual.text


def _declared(difference: Difference) -> str:
    return difference.declared.text


def _kept(
    context: UpgradeContext, subjects: Sequence[DriftSubject], kept: Sequence[Difference]
) -> tuple[CapturedFile, ...]:
    """Return the patch files that keep differences; what no patch of the target's minor can hold is refused."""
    schema = load_schema(context.cluster.release)
    for each in kept:
        if not can_keep(each, schema):
            raise NotReady(
                f"{each.where}: {each.field} cannot be kept: no patch of Kubernetes {schema.version.as_minor} holds it",
                hint=f"store it in the configuration of the cluster, or drop it: --drift '{_shortest(each)}=drop'",
                error_class="not-patchable",
            )
    if not kept:
        return ()
    names = [each.path for each in (context.patches.list_files() if context.patches.list_files else ())]
    return capture(subjects, kept, schema, is_for_kubeadm=has_folders_for_kubeadm(names))


def _with_files(context: UpgradeContext, kept: Sequence[CapturedFile]) -> NodePatches:
    """Return the patches of the node with those that keep differences, which come last."""
    if not kept:
        return context.patches
    files = list(context.patches.list_files() if context.patches.list_files else ())
    added = placed_files([each.path for each in files], kept, context.node_name)
    files += [_file(path, text) for path, text in added.items()]
    role = "control-plane" if context.is_control_plane else "worker"
    return replace(context.patches, list_files=lambda: files, node_name=context.node_name, role=role)


def _file(path: str, text: str) -> PatchFile:
    return PatchFile(path, f"kept on this node: {path}", partial(bytes, text.encode()))


def _findings(context: UpgradeContext) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return what lint finds in the patches of this node: against the target, and against the version it has."""
    if context.patches.list_files is None or not (files := context.patches.list_files()):
        return (), ()
    former = replace(context, cluster=own_cluster(context))
    target, before = (tuple(_lint(each, files)) for each in (context, former))
    return target, before


def _lint(context: UpgradeContext, files: Sequence[PatchFile]) -> list[Finding]:
    schema = load_schema(context.cluster.release)
    rendered = (render_target(context, target) for target in targets_of(context.cluster.release))
    documents = [each.document for each in rendered if each is not None]
    node = NodeFacts(context.node_name, "control-plane" if context.is_control_plane else "worker")
    found = lint_tree(files, PatchChecks(schema), node, documents)
    return list(with_exceptions(found, accepted=context.patches.accepted))


def _lint_notes(context: UpgradeContext) -> Iterator[Note | Blocked]:
    drift, minor = context.drift, context.cluster.minor
    known = {(each.file, each.position, each.error_class) for each in drift.former_findings}
    broken = [
        each
        for each in drift.findings
        if each.severity is Severity.ERROR
        and (context.patches.is_strict or (each.file, each.position, each.error_class) not in known)
    ]
    for each in drift.findings:
        yield Note(f"lint: [{each.error_class}] {each.where}: {each.message}", is_warning=True)
    if broken and not {"all", _LINT_CHECK} & context.ignored_checks:
        lines = "".join(f"\n  {each.where}: [{each.error_class}] {each.message}" for each in broken)
        error = BadDocument(
            f"the patches of this node do not fit Kubernetes {minor}:{lines}",
            hint="correct them and pass them with --patches; garboard patch lint DIR --to VERSION tells when they fit",
            error_class="patches-do-not-fit",
        )
        yield Blocked((), error)
