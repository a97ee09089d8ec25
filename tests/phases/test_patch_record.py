"""The patch set of a node in the cluster: by content, found again, capped."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.engine import AwaitGate, PatchObject, PutObject
from garboard.errors import BadDocument
from garboard.model.node import Timeouts
from garboard.patches import PatchFile
from garboard.phases.patch_record import (
    ANNOTATION,
    PatchSetContent,
    record_on_control_plane,
    record_on_worker,
    recorded_set,
    unpack,
)
from garboard.phases.patching import NodePatches

FILES = {"etcd.yaml": b"metadata: {}\n", "nodes/cp1/kube-apiserver+json.json": b"[]"}


def patches(files: dict[str, bytes]) -> NodePatches:
    return NodePatches(lambda: [PatchFile(path, path, lambda data=data: data) for path, data in files.items()])  # type: ignore[misc]


@given(st.dictionaries(st.text(min_size=1), st.binary()))
def test_what_is_packed_comes_out_again(files: dict[str, bytes]) -> None:
    content = PatchSetContent(files)
    assert unpack(content.packed()) == content
    assert unpack(content.packed()).digest == content.digest


def test_digest_is_of_the_content_and_not_of_its_order() -> None:
    turned = dict(reversed(FILES.items()))
    assert PatchSetContent(FILES).digest == PatchSetContent(turned).digest
    assert PatchSetContent(FILES).digest != PatchSetContent({**FILES, "etcd.yaml": b""}).digest


def test_control_plane_keeps_the_content_beside_that_of_others() -> None:
    record, *rbac = [step.action for step in record_on_control_plane("cp1", patches(FILES))]
    assert isinstance(record, PutObject)
    assert record.keeps_other_data
    assert isinstance(record.content, dict)
    assert recorded_set(record.content, "cp1") == PatchSetContent(FILES)
    assert recorded_set(record.content, "cp2") is None
    assert [(each.kind, each.name) for each in rbac if isinstance(each, PutObject)] == [
        ("Role", "garboard:patches"), ("RoleBinding", "garboard:patches")
    ]  # fmt: skip


def test_worker_notes_the_digest_on_its_own_node() -> None:
    files = {**FILES, "common/kubeletconfiguration1.yaml": b"maxPods: 7\n"}
    wait, patch = (step.action for step in record_on_worker("w1", patches(files), Timeouts()))
    assert isinstance(wait, AwaitGate)
    assert isinstance(patch, PatchObject)
    expected: Json = {"metadata": {"annotations": {ANNOTATION: f"sha256:{PatchSetContent(files).digest}"}}}
    assert (patch.kind, patch.name, patch.content) == ("Node", "w1", expected)


def test_worker_has_nothing_to_note_of_patches_that_are_not_for_its_kubelet() -> None:
    assert list(record_on_worker("w1", patches(FILES), Timeouts())) == []


@pytest.mark.parametrize("none", [NodePatches(), patches({})])
def test_without_patches_nothing_is_kept(none: NodePatches) -> None:
    assert list(record_on_control_plane("cp1", none)) == []
    assert list(record_on_worker("w1", none, Timeouts())) == []


def test_too_much_is_refused_with_the_way_out() -> None:
    with pytest.raises(BadDocument, match="192 KiB at most") as refused:
        list(record_on_control_plane("cp1", patches({"etcd.yaml": os.urandom(200_000)})))
    assert refused.value.error_class == "too-large"


@pytest.mark.parametrize("text", ["", "x", "eJwDAAAAAAE=", "bnVsbA=="])
def test_a_broken_record_is_told(text: str) -> None:
    with pytest.raises(BadDocument, match="garboard-patches"):
        unpack(text)


def test_no_record_means_nobody_knows() -> None:
    assert recorded_set(None, "cp1") is None
    assert recorded_set({"data": {}}, "cp1") is None
