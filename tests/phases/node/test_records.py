"""What the cluster keeps of a node: its marks, and its patch set by content, found again, capped."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.engine import AwaitGate, PatchObject, Plan, PutObject, SharedKey
from garboard.errors import BadDocument
from garboard.manifests import NodeHost
from garboard.model.node import NodeRegistration
from garboard.patches import PatchFile
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT, InitContext
from garboard.phases.node.context import NodeContext
from garboard.phases.node.records import (
    ANNOTATION,
    PatchSetContent,
    record_on_control_plane,
    record_on_worker,
    recorded_set,
    unpack,
)
from garboard.phases.patching import NodePatches
from tests.support.phases.machines import CONFIG, NOW, MemoryMachine, context_on

FILES = {"etcd.yaml": b"metadata: {}\n", "nodes/cp1/kube-apiserver+json.json": b"[]"}


class Cluster:
    """The objects that a record is read from."""

    def __init__(self, record: dict[str, Json] | None = None, annotation: str = "") -> None:
        self.record = record
        self.node: dict[str, Json] = {"metadata": {"annotations": {ANNOTATION: annotation} if annotation else {}}}

    def find(self, kind: str, _namespace: str, _name: str) -> dict[str, Json] | None:
        return self.node if kind == "Node" else self.record


def patches(files: dict[str, bytes]) -> NodePatches:
    return NodePatches(lambda: [PatchFile(path, path, lambda data=data: data) for path, data in files.items()])  # type: ignore[misc]


def node(name: str, patches: NodePatches) -> NodeContext:
    return NodeContext(
        node_registration=NodeRegistration(name=name),
        machine=MemoryMachine(),
        host=NodeHost(hostname=name),
        now=NOW,
        patches=patches,
    )


def marking(context: InitContext) -> Plan:
    return plan_workflow(select(INIT, only="mark-control-plane"), context)


def test_node_is_marked_once_it_is_there_and_keeps_other_taints() -> None:
    wait, patch = (step.action for step in marking(context_on(MemoryMachine())).steps)
    assert isinstance(wait, AwaitGate)
    assert isinstance(patch, PatchObject)
    assert wait.gate.name == "Node node-1 in the cluster"
    assert patch.content == {
        "metadata": {
            "labels": {
                "node-role.kubernetes.io/control-plane": "",
                "node.kubernetes.io/exclude-from-external-load-balancers": "",
            }
        },
        "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
    }
    assert patch.united == (("spec", "taints"),)


def test_no_taints_leave_those_that_are_there_alone() -> None:
    text = CONFIG.replace("localAPIEndpoint", "nodeRegistration: {taints: []}\nlocalAPIEndpoint")
    patch = marking(context_on(MemoryMachine(), text)).steps[-1].action
    assert isinstance(patch, PatchObject)
    assert "spec" not in str(patch.content)
    assert patch.united == ()


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
    *rbac, record = [step.action for step in record_on_control_plane(node("cp1", patches(FILES)))]
    assert isinstance(record, PutObject)
    assert record.keeps_other_data
    assert isinstance(record.content, dict)
    assert recorded_set(Cluster(record.content), "cp1", is_worker=False) == PatchSetContent(FILES)
    assert recorded_set(Cluster(record.content), "cp2", is_worker=False) is None
    assert [(each.kind, each.name) for each in rbac if isinstance(each, PutObject)] == [
        ("Role", "garboard:patches"), ("RoleBinding", "garboard:patches")
    ]  # fmt: skip


def test_undo_is_told_who_else_may_use_the_set() -> None:
    *rbac, record = [step.action for step in record_on_control_plane(node("cp1", patches(FILES)))]
    assert isinstance(record, PutObject)
    digest = PatchSetContent(FILES).digest
    assert record.shared_keys == (SharedKey(f"set.{digest}", digest, ANNOTATION, f"sha256:{digest}"),)
    assert {each.serves for each in rbac if isinstance(each, PutObject)} == {
        ("ConfigMap", "kube-system", "garboard-patches")
    }


def test_worker_notes_the_digest_on_its_own_node() -> None:
    files = {**FILES, "common/kubeletconfiguration1.yaml": b"maxPods: 7\n"}
    wait, patch = (step.action for step in record_on_worker(node("w1", patches(files))))
    assert isinstance(wait, AwaitGate)
    assert isinstance(patch, PatchObject)
    expected: Json = {"metadata": {"annotations": {ANNOTATION: f"sha256:{PatchSetContent(files).digest}"}}}
    assert (patch.kind, patch.name, patch.content) == ("Node", "w1", expected)


def test_worker_has_nothing_to_note_of_patches_that_are_not_for_its_kubelet() -> None:
    assert list(record_on_worker(node("w1", patches(FILES)))) == []


@pytest.mark.parametrize("none", [NodePatches(), patches({})])
def test_without_patches_nothing_is_kept(none: NodePatches) -> None:
    assert list(record_on_control_plane(node("cp1", none))) == []
    assert list(record_on_worker(node("w1", none))) == []


def test_too_much_is_refused_with_the_way_out() -> None:
    with pytest.raises(BadDocument, match="192 KiB at most") as refused:
        list(record_on_control_plane(node("cp1", patches({"etcd.yaml": os.urandom(200_000)}))))
    assert refused.value.error_class == "too-large"


@pytest.mark.parametrize("text", ["", "x", "eJwDAAAAAAE=", "bnVsbA=="])
def test_a_broken_record_is_told(text: str) -> None:
    with pytest.raises(BadDocument, match="garboard-patches"):
        unpack(text)


def test_no_record_means_nobody_knows() -> None:
    assert recorded_set(Cluster(), "cp1", is_worker=False) is None
    assert recorded_set(Cluster({"data": {}}), "cp1", is_worker=False) is None


def test_worker_finds_the_set_that_its_node_notes_and_asks_for_no_other() -> None:
    content = PatchSetContent(FILES)
    record: dict[str, Json] = {"data": {f"set.{content.digest}": content.packed()}}
    assert recorded_set(Cluster(record, f"sha256:{content.digest}"), "w1", is_worker=True) == content
    assert recorded_set(Cluster(record), "w1", is_worker=True) is None


@pytest.mark.parametrize("packed", [None, PatchSetContent({"etcd.yaml": b"{}"}).packed()])
def test_set_that_is_noted_and_has_gone_is_refused(packed: str | None) -> None:
    digest = PatchSetContent(FILES).digest
    data: dict[str, Json] = {"node.cp1": digest, **({f"set.{digest}": packed} if packed else {})}
    with pytest.raises(BadDocument) as refused:
        recorded_set(Cluster({"data": data}), "cp1", is_worker=False)
    assert refused.value.error_class == "lost-patches"
    assert "--patches" in str(refused.value.hint)
