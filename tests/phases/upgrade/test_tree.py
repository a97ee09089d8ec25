"""What the phases of an upgrade leave in the cluster of a node's patches."""

from dataclasses import dataclass, replace

import pytest

from garboard.documents import Json
from garboard.engine import Note, PatchObject, Step
from garboard.errors import NotReady
from garboard.phases.node.records import ANNOTATION, RECORD, content_of
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.tree import plan_patch_record
from tests.support.phases.upgraded_nodes import MemoryObjects, patch_files, upgraded_node

PATCHES = patch_files(kubeletconfiguration="maxPods: 99\n")


@dataclass
class Refusing(MemoryObjects):
    """A cluster without a record: nobody has said who may read it."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        if kind == "ConfigMap":
            raise NotReady("forbidden")
        return super().find(kind, namespace, name)


def worker(objects: MemoryObjects) -> UpgradeContext:
    return replace(upgraded_node(is_first=False, patches=PATCHES), manifests={}, objects=objects)


def test_worker_notes_the_patches_that_a_control_plane_has_recorded() -> None:
    content = content_of(PATCHES)
    assert content is not None
    record: dict[str, Json] = {"data": {f"set.{content.digest}": content.packed()}}
    found = list(plan_patch_record(worker(MemoryObjects({("ConfigMap", RECORD): record}))))
    (patch,) = (each.action for each in found if isinstance(each, Step) and isinstance(each.action, PatchObject))
    assert (patch.kind, patch.name) == ("Node", "node-1")
    assert content.digest in str(patch.content)


@pytest.mark.parametrize(
    "objects", [MemoryObjects(), MemoryObjects({("ConfigMap", RECORD): {"data": {"set.0": ""}}}), Refusing()],
    ids=["none", "other sets", "unreadable"],
)  # fmt: skip
def test_worker_notes_no_set_that_the_cluster_does_not_have_and_says_so(objects: MemoryObjects) -> None:
    (note,) = plan_patch_record(worker(objects))
    assert isinstance(note, Note)
    assert note.is_warning
    assert "--patches" in note.text


def test_worker_notes_a_set_once_and_nothing_of_patches_that_are_not_for_its_kubelet() -> None:
    content = content_of(PATCHES)
    assert content is not None
    noted: dict[str, Json] = {"metadata": {"annotations": {ANNOTATION: f"sha256:{content.digest}"}}}
    assert list(plan_patch_record(worker(MemoryObjects({("Node", "node-1"): noted})))) == []
    others = patch_files(etcd="metadata: {labels: {a: b}}\n")
    assert list(plan_patch_record(replace(worker(MemoryObjects()), patches=others))) == []


def test_control_plane_records_its_patches_itself() -> None:
    found = [each.action for each in plan_patch_record(upgraded_node(patches=PATCHES)) if isinstance(each, Step)]
    assert RECORD in [getattr(each, "name", "") for each in found]
