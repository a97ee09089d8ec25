"""Differences that shall stay, as patches: applied, they leave no hand edit."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.drift import (
    CapturedFile,
    Difference,
    DriftKind,
    DriftSubject,
    can_keep,
    capture,
    compare,
    leaves_of,
    marker_file,
    needs_marker,
    patched_from,
    with_fields,
)
from garboard.errors import BadUsage
from garboard.model import KubernetesVersion
from garboard.patches import NodeFacts, PatchFile, PatchSubject, find_target, read_directory, read_patch_tree
from garboard.patches.json_values import ABSENT
from garboard.schema import load_schema
from tests.support.drift.subjects import NEWEST, VERSIONS, rendered_target, subject

SCHEMA = load_schema(NEWEST)
SIDECAR: Json = {"name": "logs", "image": "logs:1", "command": ["logs", "--follow"]}


def with_flags(document: Any, *words: str) -> Any:
    command = document["spec"]["containers"][0]["command"]
    command[:] = [each for each in command if not str(each).startswith("--profiling")] + [*words]
    return document


def with_sidecar(document: Any) -> Any:
    document["spec"]["containers"].append(SIDECAR)
    return document


def unexplained(found: Sequence[Difference]) -> list[Difference]:
    return [each for each in found if each.kind is DriftKind.HAND_EDIT]


def patched(of: DriftSubject, files: Sequence[CapturedFile], *, by_kubeadm: bool) -> DriftSubject:
    """Return a component as it is declared with captured patches, read by our rules or kubeadm's."""
    listed = [PatchFile(each.name, each.name, partial(bytes, each.text.encode())) for each in files]
    if by_kubeadm:
        found = read_directory(listed, SCHEMA)
    else:
        found = read_patch_tree([*listed, PatchFile(marker_file().name, "", bytes)], SCHEMA, NodeFacts())
    target = find_target(of.component, NEWEST)
    assert of.rendered is not None
    declared = patched_from(of.rendered, found.for_target(target), PatchSubject.of_target(target, SCHEMA))
    return replace(of, patched=(declared,))


@pytest.mark.parametrize("is_for_kubeadm", [False, True], ids=["for garboard", "for kubeadm"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_captured_patches_leave_no_hand_edit(is_for_kubeadm: bool, data: st.DataObject) -> None:
    component = data.draw(st.sampled_from(["kube-apiserver", "etcd", "kubeletconfiguration"]))
    leaves = [*leaves_of(rendered_target(component).document, subject(component).shape).values()]
    texts = [
        each for each in leaves if isinstance(each.value, str | int) and each.path[0] not in ("apiVersion", "kind")
    ]
    chosen = data.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=4, unique_by=lambda leaf: leaf.path))
    values = {each.path: _another(each.value) for each in chosen}
    edited = subject(component, lambda document: with_fields(document, values))
    found = [each for each in compare(edited) if each.kind is DriftKind.HAND_EDIT]
    files = capture([edited], found, SCHEMA, is_for_kubeadm=is_for_kubeadm)
    assert unexplained(compare(patched(edited, files, by_kubeadm=is_for_kubeadm))) == []
    assert {kept.field for each in files for kept in each.keeps} == {each.field for each in found}


def _another(value: Json) -> Json:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"1{value}"


def test_flags_become_a_flag_patch_that_survives_another_command() -> None:
    edited = subject("kube-apiserver", lambda document: with_flags(document, "--profiling=false", "--event-ttl=2h"))
    (file,) = capture([edited], compare(edited), SCHEMA)
    assert (file.name, file.text) == ("kube-apiserver~found+args.yaml", 'event-ttl: 2h\nprofiling: "false"\n')
    assert needs_marker([file])


def test_a_flag_that_was_taken_away_by_hand_is_kept_away() -> None:
    def edit(document: Any) -> Any:
        command = document["spec"]["containers"][0]["command"]
        command[:] = [each for each in command if not str(each).startswith("--leader-elect")]
        return document

    edited = subject("kube-scheduler", edit)
    (file,) = capture([edited], compare(edited), SCHEMA)
    assert file.text == "leader-elect: null\n"
    assert unexplained(compare(patched(edited, [file], by_kubeadm=False))) == []


def test_only_what_is_kept_is_captured() -> None:
    edited = subject("kube-apiserver", lambda document: with_flags(document, "--profiling=false", "--event-ttl=2h"))
    kept = [each for each in compare(edited) if "--event-ttl" in each.field]
    files = capture([edited], kept, SCHEMA)
    left = unexplained(compare(patched(edited, files, by_kubeadm=False)))
    assert [each.path[-1] for each in left] == [each.path[-1] for each in compare(edited) if each not in kept]


def test_a_container_beside_the_component_is_captured_whole() -> None:
    edited = subject("etcd", with_sidecar)
    (file,) = capture([edited], compare(edited), SCHEMA)
    assert "+strategic" in file.name
    assert unexplained(compare(patched(edited, [file], by_kubeadm=True))) == []


def test_what_no_patch_can_hold_is_refused() -> None:
    edited = replace(subject("etcd", with_sidecar), component="kube-dns", where="Service kube-system/kube-dns")
    found = compare(edited)
    assert not any(can_keep(each, SCHEMA) for each in found)
    with pytest.raises(BadUsage, match="has no patches for kube-dns"):
        capture([edited], found, SCHEMA)


@pytest.mark.parametrize(
    ("version", "can"), [(version, version.minor >= 37) for version in VERSIONS], ids=[str(each) for each in VERSIONS]
)
def test_kube_proxy_can_be_patched_from_1_37_on(version: KubernetesVersion, can: bool) -> None:
    edited = replace(subject("etcd", with_sidecar), component="kubeproxydaemonset")
    assert can_keep(compare(edited)[0], load_schema(version)) is can


def test_a_field_that_is_taken_away_leaves_no_empty_holder() -> None:
    changed = with_fields({"a": {"b": {"c": 1}}, "d": 2}, {("a", "b", "c"): ABSENT})
    assert changed == {"d": 2}
