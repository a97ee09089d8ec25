"""Revisions as steps: what a cluster is configured as goes on record when it is made, upgraded or changed.

Who makes or upgrades a cluster leaves nothing for nodes to follow: the revision is the target, committed at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import msgspec

from garboard.engine import DeleteObject, PutObject, Step
from garboard.manifests.objects import BOOTSTRAP_GROUP, KUBE_SYSTEM, NODES_GROUP, binding, group, role, rule
from garboard.manifests.uploaded import CONFIG_KEYS, KUBEADM_CONFIG
from garboard.phases.change_record import ChangeRecord
from garboard.phases.node.records import RECORD, node_sets
from garboard.phases.revision import BASELINE, ROLE, TARGET, ChangeTarget, Revision, revision_name, superseded
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

    def found_in(self, record: ChangeRecord, *, first: str, created: str = "") -> Revision | None:
        """Return the revision that records what is there, if the newest one does not: `first` is said of none."""
        current = record.current
        known = record.revisions.get(current) if current is not None else None
        number = record.next_number
        found = self.revision(number, created=created, parent=current, base=number)
        if known is None:
            return msgspec.structs.replace(found, message=first if current is None else _FOUND)
        if known.digest == found.digest:
            return None
        return msgspec.structs.replace(found, message=_PATCHED if self._differs_in_nodes(known) else _FOUND)

    def is_declared_by(self, known: Revision) -> bool:
        """Say whether a revision has the same version and the same documents, whatever patches its nodes have."""
        return (known.kubernetes_version, known.documents) == (self.kubernetes_version, {**self.documents})

    def _differs_in_nodes(self, known: Revision) -> bool:
        """Say whether a revision has the same for all nodes, and for each that it names with patches."""
        both = known.patch_sets.keys() & self.patch_sets.keys()
        return self.is_declared_by(known) and all(known.patch_sets[each] == self.patch_sets[each] for each in both)

    def after(self, version: str, stored: Mapping[str, Mapping[str, str]]) -> "RecordedConfiguration":
        """Return the configuration of a version once ConfigMaps have been stored, given by name."""
        documents = {name: stored[name][key] for name, key in CONFIG_KEYS.items() if key in stored.get(name, {})}
        return RecordedConfiguration(
            kubernetes_version=version,
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


def record_first_revision(configuration: RecordedConfiguration, node: str, author: str) -> Iterator[Step]:
    """Plan to record what a cluster was made with; one that has a record, such as in a restored etcd, keeps it."""
    if not configuration.is_whole:
        return
    made = configuration.revision(BASELINE, author=author, message="the cluster was made", request="init")
    yield from revision_steps([made], (), keeps_existing=True)
    yield target_step(committed_target(made, node), keeps_existing=True)


def record_next_revision(
    record: ChangeRecord, before: RecordedConfiguration, after: RecordedConfiguration, node: str, **about: Any
) -> Iterator[Step]:
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
    yield from revision_steps([each for each in (found, made) if each is not None], record.revisions)
    yield target_step(committed_target(made, node), version=record.target_version)
    kept = {number, *(() if parent is None else (parent,))}
    yield from removal_steps({*record.revisions, *kept}, keeps=kept)


def revision_steps(
    made: Iterable[Revision], recorded: Iterable[int], *, keeps_existing: bool = False
) -> Iterator[Step]:
    """Plan to store revisions beside those that are recorded, and that nodes may read them and the target."""
    new = [*made]
    for each in new:
        yield _put(each.as_object().content, "nodes read from it what they shall be", keeps_existing)
    names = [TARGET, *(revision_name(each) for each in sorted({*recorded, *(each.number for each in new)}))]
    for each_object in (
        role(ROLE, [rule(["configmaps"], ["get"], names=names)], KUBE_SYSTEM),
        binding(ROLE, ROLE, (group(NODES_GROUP), group(BOOTSTRAP_GROUP)), KUBE_SYSTEM),
    ):
        yield _put(each_object.content, "nodes may read no other ConfigMaps", keeps_existing)


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


def recorded_step(action: PutObject | DeleteObject, cause: str) -> Step:
    return Step(action, cause, phase=RECORD_PHASE)


def _put(content: dict[str, Any], cause: str, keeps_existing: bool) -> Step:
    return recorded_step(PutObject.of(content, keeps_existing=keeps_existing), cause)
