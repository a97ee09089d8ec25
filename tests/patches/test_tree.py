"""Patch trees: layers only with the marker, in a fixed order."""

import pytest

from garboard.errors import BadDocument
from garboard.model import DEFAULT_VERSION
from garboard.patches import NodeFacts, PatchFile, read_patch_tree
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
PATHS = (
    "etcd.yaml",
    "common/etcd.yaml",
    "role/control-plane/etcd.yaml",
    "role/worker/etcd.yaml",
    "node/cp1/etcd.yaml",
    "node/cp2/etcd.yaml",
    "other/etcd.yaml",
)


def tree(*, marker: str | None) -> list[PatchFile]:
    texts = {path: f"a: {path}\n" for path in PATHS} | ({"garboard.yaml": marker} if marker is not None else {})
    return [PatchFile(path, path, text.encode) for path, text in texts.items()]


def order(files: list[PatchFile], node: NodeFacts) -> list[str]:
    return [each.patch.source.name for each in read_patch_tree(files, SCHEMA, node).patches]


def test_layers_go_from_the_general_to_the_particular() -> None:
    assert order(tree(marker=""), NodeFacts("cp1", "control-plane")) == [
        "etcd.yaml",
        "common/etcd.yaml",
        "role/control-plane/etcd.yaml",
        "node/cp1/etcd.yaml",
    ]


def test_layers_of_others_are_ignored_with_a_reason() -> None:
    ignored = read_patch_tree(tree(marker=""), SCHEMA, NodeFacts("cp1", None)).ignored
    assert {each.shown: each.reason for each in ignored} == {
        "node/cp2/etcd.yaml": "the layer of another node than cp1",
        "other/etcd.yaml": "not in a layer: common/, role/ROLE/ or node/NAME/",
        "role/control-plane/etcd.yaml": "no role is given",
        "role/worker/etcd.yaml": "no role is given",
    }


def test_without_the_marker_a_directory_is_kubeadm_s() -> None:
    assert order(tree(marker=None), NodeFacts("cp1", "control-plane")) == sorted(PATHS)


@pytest.mark.parametrize("marker", ["", "# a comment\n", "apiVersion: garboard.dev/v1alpha1\nkind: PatchTree\n"])
def test_marker_may_be_empty_or_named(marker: str) -> None:
    assert order(tree(marker=marker), NodeFacts()) == ["etcd.yaml", "common/etcd.yaml"]


@pytest.mark.parametrize("marker", ["1", "[]", "layers: []\n", "kind: PatchSet\n", "apiVersion: v1\n", "a: ["])
def test_wrong_marker_is_refused(marker: str) -> None:
    with pytest.raises(BadDocument) as failure:
        read_patch_tree(tree(marker=marker), SCHEMA, NodeFacts())
    assert failure.value.hint
