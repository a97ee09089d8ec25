"""A compiled tree gives kubeadm what the tree gives us."""

from pathlib import Path

import pytest

from garboard.documents import Json, read_yaml
from garboard.errors import PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    NodeFacts,
    PatchFile,
    PatchSet,
    compile_patches,
    find_target,
    patch_target,
    read_directory,
    read_patch_tree,
)
from garboard.schema import load_schema

EXAMPLES = Path(__file__).parents[2] / "examples" / "patches"
SCHEMA = load_schema(DEFAULT_VERSION)
APISERVER = find_target("kube-apiserver", DEFAULT_VERSION)


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
    ours = patch_target(base(), tree.for_target(APISERVER), APISERVER, SCHEMA, is_watched=False).document
    theirs = patch_target(base(), plain.for_target(APISERVER), APISERVER, SCHEMA, is_watched=False).document
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
        patch_target(other, patches, APISERVER, SCHEMA, is_watched=False)
    assert caught.value.error_class == "test-failed"


def test_flag_patch_without_its_manifest_is_refused_with_the_option() -> None:
    with pytest.raises(PatchFailed) as caught:
        compile_patches(example_tree(), {}, SCHEMA)
    assert caught.value.error_class == "base-missing"
    assert "-f kube-apiserver.yaml" in str(caught.value.hint)
