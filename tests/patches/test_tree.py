"""Patch trees: layers only with the marker, in a fixed order; a compiled tree gives kubeadm what the tree gives us."""

from pathlib import Path

import pytest

from garboard.documents import Json, read_yaml
from garboard.errors import BadDocument, PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    NodeFacts,
    PatchFile,
    PatchSet,
    PatchSubject,
    apply_patches,
    compile_patches,
    find_target,
    read_directory,
    read_patch_tree,
)
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


def test_layer_that_no_node_has_is_refused() -> None:
    files = [PatchFile(path, path, b"".strip) for path in ("garboard.yaml", "role/workers/etcd.yaml")]
    with pytest.raises(BadDocument, match=r"role/workers/etcd\.yaml: no node has the role 'workers'"):
        read_patch_tree(files, SCHEMA, NodeFacts())


def test_other_files_beside_layers_are_left_alone() -> None:
    files = [PatchFile(path, path, b"".strip) for path in ("garboard.yaml", "role/README.md")]
    assert read_patch_tree(files, SCHEMA, NodeFacts()).patches == ()


EXAMPLES = Path(__file__).parents[2] / "examples" / "patches"
APISERVER = find_target("kube-apiserver", DEFAULT_VERSION)
SUBJECT = PatchSubject.of_target(APISERVER, SCHEMA)


def base() -> Json:
    return read_yaml((EXAMPLES / "manifests" / "kube-apiserver.yaml").read_bytes(), source="kube-apiserver.yaml")


def example_tree() -> PatchSet:
    root = EXAMPLES / "tree"
    files = [
        PatchFile(path.relative_to(root).as_posix(), str(path), path.read_bytes)
        for path in root.rglob("*")
        if path.is_file()
    ]
    return read_patch_tree(files, SCHEMA, NodeFacts("cp1", "control-plane"))


def test_compiled_directory_gives_the_same_result_as_the_tree() -> None:
    tree = example_tree()
    compiled = compile_patches(tree, {"kube-apiserver": base()}, SCHEMA)
    files = [PatchFile(file.name, file.name, file.text.encode) for file in compiled]
    plain = read_directory(files, SCHEMA)
    assert [each.patch.source.name for each in plain.patches] == [file.name for file in compiled], (
        "kubeadm's order is the order of the tree"
    )
    ours = apply_patches(base(), tree.for_target(APISERVER), SUBJECT).document
    theirs = apply_patches(base(), plain.for_target(APISERVER), SUBJECT).document
    assert ours == theirs


def test_compiled_flag_patch_fails_when_the_command_is_another() -> None:
    compiled = compile_patches(example_tree(), {"kube-apiserver": base()}, SCHEMA)
    files = [PatchFile(file.name, file.name, file.text.encode) for file in compiled]
    other = base()
    assert isinstance(other, dict)
    command = other["spec"]["containers"][0]["command"]  # type: ignore[index, call-overload]
    command.insert(1, "--new=flag")  # type: ignore[union-attr]
    patches = read_directory(files, SCHEMA).for_target(APISERVER)
    with pytest.raises(PatchFailed) as caught:
        apply_patches(other, patches, SUBJECT)
    assert caught.value.error_class == "test-failed"


def test_flag_patch_without_its_manifest_is_refused_with_the_option() -> None:
    with pytest.raises(PatchFailed) as caught:
        compile_patches(example_tree(), {}, SCHEMA)
    assert caught.value.error_class == "base-missing"
    assert "-f kube-apiserver.yaml" in str(caught.value.hint)
