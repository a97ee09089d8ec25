"""Revisions as steps: what a cluster is configured as goes on record when it is made, upgraded or changed.

Who makes or upgrades a cluster leaves nothing for nodes to follow: the revision is the target, committed at once. It
holds no Lease by then, so that a record which somebody else has written meanwhile stays; the next change adds the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import msgspec

from garboard.engine import DeleteObject, Note, PutObject, Step
from garboard.errors import BadDocument
from garboard.manifests.objects import BOOTSTRAP_GROUP, KUBE_SYSTEM, NODES_GROUP, binding, group, role, rule
from garboard.manifests.uploaded import CONFIG_KEYS, KUBEADM_CONFIG
from garboard.phases.change_record import ChangeRecord
from garboard.phases.node.records import RECORD, node_sets
from garboard.phases.revision import (
    BASELINE,
    KEPT,
    ROLE,
    TARGET,
    TOO_LARGE,
    ChangeTarget,
    Revision,
    revision_name,
    superseded,
)
from garboard.values import dataclass

RECORD_PHASE = "record"
_FOUND = "what was found: changed by other means"
_FIRST = "what was there before the first upgrade or change"
_PATCHED = "what was found: the patches of nodes that have joined, left or been upgraded"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedConfiguration:
    """What nodes are made from: the version, the texts of the configuration by ConfigMap, the patch sets of nodes."""

    kubernetes_version: str
    documents: Mapping[str, str] = field(default_factory=dict)
    patch_sets: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the cluster has a configuration that a node can be made from."""
        return KUBEADM_CONFIG in self.documents

    def revision(self, number: int, **about: Any) -> Revision:
        return Revision(
            number=number,
            kubernetes_version=self.kubernetes_version,
            documents={**self.documents},
            patch_sets={**self.patch_sets},
            **about,
        )

    def is_recorded_as(self, known: Revision) -> bool:
        """Say whether a revision has the same, whatever nodes without patches it names."""
        return self.is_declared_by(known) and _patched(known.patch_sets) == _patched(self.patch_sets)

    def found_in(self, record: ChangeRecord, *, first: str, created: str = "") -> Revision | None:
        """Return the revision that records what is there, if the newest one does not: `first` is said of none."""
        current = record.current
        known = record.revisions.get(current) if current is not None else None
        number = record.next_number
        found = self.revision(number, created=created, parent=current, base=number)
        if known is None:
            return msgspec.structs.replace(found, message=first if current is None else _FOUND)
        if self.is_recorded_as(known):
            return None
        return msgspec.structs.replace(found, message=_PATCHED if self._differs_in_nodes(known) else _FOUND)

    def is_declared_by(self, known: Revision) -> bool:
        """Say whether a revision has the same version and the same documents, whatever patches its nodes have."""
        return (known.kubernetes_version, known.documents) == (self.kubernetes_version, {**self.documents})

    def _differs_in_nodes(self, known: Revision) -> bool:
        """Say whether a revision has the same for all nodes, and for each that it names with patches."""
        before, now = _patched(known.patch_sets), _patched(self.patch_sets)
        return self.is_declared_by(known) and all(before[each] == now[each] for each in before.keys() & now.keys())

    def after(self, version: str, stored: Mapping[str, Mapping[str, str]]) -> "RecordedConfiguration":
        """Return the configuration once ConfigMaps have been stored, given by name; one of them names the version."""
        documents = {name: stored[name][key] for name, key in CONFIG_KEYS.items() if key in stored.get(name, {})}
        return RecordedConfiguration(
            kubernetes_version=version if KUBEADM_CONFIG in documents else self.kubernetes_version,
            documents={**self.documents, **documents},
            patch_sets={**self.patch_sets, **node_sets(stored.get(RECORD, {}))},
        )


def committed_target(revision: Revision, node: str) -> ChangeTarget:
    """Return the target that nobody has to follow: what nodes have was made with it."""
    return ChangeTarget(
        revision=revision.number,
        digest=revision.digest,
        state="committed",
        parent=revision.number if revision.parent is None else revision.parent,
        canary=node,
        author=revision.author,
    )


def record_first_revision(configuration: RecordedConfiguration, node: str, author: str) -> Iterator[Step | Note]:
    """Plan to record what a cluster was made with; one that has a record already, in an external etcd, keeps it."""
    if not configuration.is_whole:
        return
    made = configuration.revision(BASELINE, author=author, message="the cluster was made", request="init")
    yield from _unless_too_large(lambda: _committed([made], (), node))


def record_next_revision(
    record: ChangeRecord, before: RecordedConfiguration, after: RecordedConfiguration, node: str, **about: Any
) -> Iterator[Step | Note]:
    """Plan to record what a cluster is from now on, and what it was before if that is not on record.

    That only patches of nodes differ is no reason: each node that goes up would make a revision of its own.
    """
    current = record.current
    known = record.revisions.get(current) if current is not None else None
    if not before.is_whole or (known and before.is_declared_by(known) and after.is_declared_by(known)):
        return
    found = None if known and before.is_declared_by(known) else before.found_in(record, first=_FIRST)
    parent = found.number if found else current
    number = record.next_number + (found is not None)
    made = after.revision(number, parent=parent, base=number, **about)
    if found and after.is_declared_by(found):
        return
    new = [each for each in (found, made) if each is not None]
    yield from _unless_too_large(lambda: _committed(new, record.revisions, node, record.target_version))


def _committed(made: Sequence[Revision], recorded: Iterable[int], node: str, version: str = "") -> Iterator[Step]:
    newest = made[-1]
    yield from revision_steps(made, recorded, keeps_existing=True)
    yield target_step(committed_target(newest, node), version=version, keeps_existing=True)
    kept = {newest.number} if newest.parent is None else {newest.number, newest.parent}
    yield from removal_steps({*recorded, *kept}, keeps=kept)


def _unless_too_large(steps: Callable[[], Iterable[Step]]) -> Iterable[Step | Note]:
    """Return the steps, or a warning in their place: a cluster must not fail because of what is only a record of it."""
    try:
        return tuple(steps())
    except BadDocument as error:
        if error.error_class != TOO_LARGE:
            raise
        return (Note(f"no revision records this: {error.message}", is_warning=True),)


def revision_steps(
    made: Iterable[Revision], recorded: Iterable[int], *, keeps_existing: bool = False
) -> Iterator[Step]:
    """Plan to store revisions beside those that are recorded, and that nodes may read them and the target.

    They may read the next ones too: who puts this Role does not know of a revision that was made since it was planned.
    """
    new = [*made]
    for each in new:
        yield _put(each.as_object().content, "nodes read from it what they shall be", keeps_existing)
    known = {*recorded, *(each.number for each in new)}
    names = [TARGET, *map(revision_name, sorted({*known, *range(max(known), max(known) + KEPT)}))]
    for each_object in (
        role(ROLE, [rule(["configmaps"], ["get"], names=names)], KUBE_SYSTEM),
        binding(ROLE, ROLE, (group(NODES_GROUP), group(BOOTSTRAP_GROUP)), KUBE_SYSTEM),
    ):
        yield _put(each_object.content, "nodes may read no other ConfigMaps")


def target_step(
    target: ChangeTarget, cause: str = "garboard change status and history tell it", *,
    version: str = "", keeps_existing: bool = False,
) -> Step:  # fmt: skip
    """Return the step that stores the target; with a version, in place of exactly that one."""
    content = target.as_object().content
    action = PutObject.of(content, resource_version=version, keeps_existing=keeps_existing)
    return recorded_step(action, cause)


def removal_steps(numbers: Iterable[int], *, keeps: Iterable[int]) -> Iterator[Step]:
    """Plan to delete the oldest revisions of too many."""
    for number in superseded(numbers, keeps=keeps):
        gone = DeleteObject(api_version="v1", kind="ConfigMap", name=revision_name(number), namespace=KUBE_SYSTEM)
        yield recorded_step(gone, "only the newest are kept")


def _patched(patch_sets: Mapping[str, str]) -> dict[str, str]:
    """Return the nodes that have patches."""
    return {name: digest for name, digest in patch_sets.items() if digest}


def recorded_step(action: PutObject | DeleteObject, cause: str) -> Step:
    return Step(action, cause, phase=RECORD_PHASE)


def _put(content: dict[str, Any], cause: str, keeps_existing: bool = False) -> Step:
    return recorded_step(PutObject.of(content, keeps_existing=keeps_existing), cause)
