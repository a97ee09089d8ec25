"""Comparing a component: every field that differs, once, and what it is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.drift import (
    Difference,
    DriftKind,
    FoundDocument,
    compare,
    compare_all,
    leaves_of,
    show_leaf,
    with_command,
    with_fields,
)
from garboard.drift.leaves import Leaf
from garboard.drift.surroundings import surrounding_of
from garboard.model import KubernetesVersion
from garboard.patches.json_values import ABSENT, JsonOrAbsent
from tests.support.drift.subjects import NEWEST, STATIC_PODS, VERSIONS, patch, rendered_target, running, subject

COMPONENTS = (*STATIC_PODS, "kubeletconfiguration", "corednsdeployment")
KINDS = DriftKind


def flags(*words: str) -> Callable[[Any], Any]:
    """Return the edit that adds words to the command of a static Pod."""

    def edit(document: Any) -> Any:
        container(document)["command"] += [*words]
        return document

    return edit


def container(document: Any) -> dict[str, Any]:
    found: dict[str, Any] = document["spec"]["containers"][0]
    return found


def kinds(found: Sequence[Difference]) -> list[tuple[str, str]]:
    return [(each.field, each.kind.value) for each in found]


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("component", COMPONENTS)
def test_what_is_as_declared_does_not_differ(component: str, version: KubernetesVersion) -> None:
    assert compare(running(subject(component, version=version))) == ()


@given(st.data())
def test_every_changed_leaf_is_reported_exactly_once(data: st.DataObject) -> None:
    component = data.draw(st.sampled_from(COMPONENTS))
    target = rendered_target(component)
    known = subject(component)
    leaves = leaves_of(target.document, known.shape)
    chosen = data.draw(
        st.lists(st.sampled_from([*leaves.values()]), min_size=1, max_size=4, unique_by=lambda x: x.path)
    )
    values = {leaf.path: data.draw(_another(leaf)) for leaf in chosen}
    edited = subject(component, lambda document: with_fields(document, values))
    found = compare(edited)
    assert sorted(each.field for each in found if each.path) == sorted(show_leaf(leaf.path) for leaf in chosen)
    for each in found:
        is_of_surroundings = surrounding_of(component, each.path) or each.path[-1:] == ("image",)
        expected = KINDS.ENVIRONMENTAL if is_of_surroundings else KINDS.HAND_EDIT
        assert each.kind in (expected, KINDS.COSMETIC, KINDS.HAND_EDIT)


def _another(leaf: Leaf) -> st.SearchStrategy[JsonOrAbsent]:
    """Return strategies of values that are not the one of a leaf, among them that it is not there."""
    value = leaf.value
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int):
        return st.integers(1, 40_000).filter(lambda other: other != value)
    if isinstance(value, str):
        return st.one_of(st.just(ABSENT), st.just(f"{value}x"), st.just("other"))
    return st.just("other") if value is None else st.just(["other"])


def test_a_flag_added_by_hand_is_named_with_what_is_declared() -> None:
    (found,) = compare(subject("kube-apiserver", flags("--profiling=false")))
    assert found.field == "spec.containers[name=kube-apiserver].command[--profiling]"
    assert found.kind is KINDS.HAND_EDIT
    assert found.on_disk.value == "false"
    assert found.declared.source == "not declared"
    assert found.on_disk.source == "/etc/kubernetes/manifests/kube-apiserver.yaml"


def test_a_flag_that_is_repeated_is_one_field() -> None:
    (found,) = compare(subject("kube-apiserver", flags("--event-ttl=2h", "--event-ttl=3h")))
    assert found.on_disk.value == ["2h", "3h"]


def test_a_flag_changed_by_hand_names_the_source_of_the_declared_value() -> None:
    def edit(document: Any) -> Any:
        words = container(document)["command"]
        container(document)["command"] = [str(each).replace("Node,RBAC", "RBAC") for each in words]
        return document

    (found,) = compare(subject("kube-apiserver", edit))
    assert (found.declared.value, found.on_disk.value) == ("Node,RBAC", "RBAC")
    assert found.declared.source == f"the default of Kubernetes {NEWEST.as_minor}"


PATCH = patch("spec: {priority: 7}")


def test_what_a_patch_has_put_on_disk_is_told_apart_from_a_hand_edit() -> None:
    (found,) = compare(subject("etcd", patches=(PATCH,)))
    assert (found.field, found.kind) == ("spec.priority", KINDS.PATCH)
    assert found.declared.source.startswith("patch.yaml:1:")
    assert (found.rendered.value, found.declared.value) == (2000001000, 7)
    assert not found.is_drift


def test_what_only_a_former_set_of_patches_explains_is_no_hand_edit() -> None:
    newer = patch("spec: {priority: 8}")

    def edit(document: Any) -> Any:
        document["spec"]["priority"] = 7
        return document

    (found,) = compare(subject("etcd", edit, patches=(newer,), others=((PATCH,),)))
    assert (found.kind, found.on_disk.value, found.declared.value) == (KINDS.PATCH, 7, 8)


def test_a_patch_that_is_not_on_disk_yet_is_pending() -> None:
    def edit(document: Any) -> Any:
        document["spec"]["priority"] = 2000001000
        return document

    (found,) = compare(subject("etcd", edit, patches=(PATCH,)))
    assert found.kind is KINDS.PENDING


def test_a_configuration_that_changed_since_the_file_was_written_is_pending() -> None:
    edited = subject("kube-scheduler", flags("--profiling=false"))
    assert edited.on_disk is not None
    (found,) = compare(replace(edited, written=edited.on_disk.document))
    assert found.kind is KINDS.PENDING


def test_what_is_on_disk_and_not_running_is_stale() -> None:
    def edit(document: Any) -> Any:
        return with_command(document, "kube-scheduler", ["kube-scheduler", "--leader-elect=false"])

    found = compare(running(subject("kube-scheduler"), edit))
    assert {each.kind for each in found} == {KINDS.STALE}
    elected = next(each for each in found if each.field.endswith("[--leader-elect]"))
    assert (elected.declared.value, elected.on_disk.value, elected.running.value) == ("true", "true", "false")


def test_a_hand_edit_that_does_not_run_is_one_difference() -> None:
    edited = subject("kube-scheduler", flags("--profiling=false"))
    before = subject("kube-scheduler").on_disk
    assert before is not None
    (found,) = compare(replace(edited, running=FoundDocument(before.document, "the process")))
    assert (found.kind, found.on_disk.value, found.running.value) == (KINDS.HAND_EDIT, "false", ABSENT)


def proxy(document: Any) -> Any:
    container(document)["env"] = [{"name": "HTTPS_PROXY", "value": "http://192.0.2.1"}]
    return document


def threshold(number: int) -> Callable[[Any], Any]:
    def edit(document: Any) -> Any:
        container(document)["startupProbe"]["failureThreshold"] = number
        return document

    return edit


def authorities(document: Any) -> Any:
    container(document)["volumeMounts"].append(
        {"mountPath": "/etc/ca-certificates", "name": "etc-ca-certificates", "readOnly": True}
    )
    volume: Json = {"hostPath": {"path": "/etc/ca-certificates"}, "name": "etc-ca-certificates"}
    document["spec"]["volumes"].append(volume)
    return document


def joined(document: Any) -> Any:
    container(document)["command"] = [
        "--initial-cluster=a=https://192.0.2.1:2380" if str(each).startswith("--initial-cluster=") else each
        for each in container(document)["command"]
    ]
    return flags("--initial-cluster-state=existing")(document)


@pytest.mark.parametrize(
    ("component", "edit", "reason"),
    [
        pytest.param("kube-apiserver", proxy, "proxy", id="a proxy of the shell"),
        pytest.param("kube-controller-manager", authorities, "certificates", id="folders of certificates of the host"),
        pytest.param("etcd", joined, "joined", id="how a member of etcd joined"),
        pytest.param(
            "kubeletconfiguration",
            lambda document: {**document, "resolvConf": "/run/systemd/resolve/resolv.conf"},
            "systemd-resolved",
            id="systemd-resolved",
        ),
    ],
)
def test_differences_of_the_surroundings_are_told_apart(
    component: str, edit: Callable[[Any], Any], reason: str
) -> None:
    found = compare(subject(component, edit))
    assert found
    assert {each.kind for each in found} == {KINDS.ENVIRONMENTAL}
    assert all(reason in each.reason for each in found)


def test_a_timeout_that_all_components_were_rendered_with_is_environmental() -> None:
    found = compare_all(subject(name, threshold(48)) for name in STATIC_PODS)
    assert [each.kind for each in found] == [KINDS.ENVIRONMENTAL] * 4


def test_a_startup_threshold_of_one_component_alone_is_a_hand_edit() -> None:
    found = compare_all([subject("etcd", threshold(48)), *(subject(name) for name in STATIC_PODS[1:])])
    assert kinds(found) == [("spec.containers[name=etcd].startupProbe.failureThreshold", "hand-edit")]


def test_a_proxy_that_the_patches_set_is_no_matter_of_the_surroundings() -> None:
    text = "spec: {containers: [{name: kube-apiserver, env: [{name: HTTPS_PROXY, value: 'http://192.0.2.7'}]}]}"
    (found,) = compare(subject("kube-apiserver", proxy, patches=(patch(text),)))
    assert found.kind is KINDS.HAND_EDIT


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        pytest.param(lambda spec: spec.update(restartPolicy="Always"), "spec.restartPolicy", id="an explicit default"),
        pytest.param(
            lambda spec: spec["containers"][0]["resources"]["requests"].update(cpu="0.25"),
            "spec.containers[name=kube-apiserver].resources.requests.cpu",
            id="another spelling of a quantity",
        ),
        pytest.param(lambda spec: spec["volumes"].reverse(), ".", id="another order of volumes"),
        pytest.param(lambda spec: spec["containers"][0]["command"].append(spec["containers"][0]["command"].pop(1)), ".",
                     id="another order of flags"),
    ],
)  # fmt: skip
def test_what_means_the_same_is_cosmetic(edit: Callable[[dict[str, Any]], object], field: str) -> None:
    def change(document: Any) -> Any:
        edit(document["spec"])
        return document

    assert kinds(compare(subject("kube-apiserver", change))) == [(field, "cosmetic")]


def test_comments_are_cosmetic() -> None:
    found = compare(subject("etcd", text=lambda text: f"# edited by nobody\n{text}"))
    assert kinds(found) == [(".", "cosmetic")]


def test_a_file_that_is_not_there_is_one_difference() -> None:
    gone = replace(subject("etcd"), on_disk=None, is_missing=True)
    assert kinds(compare(gone)) == [(".", "hand-edit")]


def test_a_mirror_pod_alone_is_compared_with_what_is_declared() -> None:
    edited = running(subject("kube-apiserver"), flags("--profiling=false"))
    (found,) = compare(replace(edited, on_disk=None))
    assert (found.kind, found.running.value, found.on_disk.is_known) == (KINDS.HAND_EDIT, "false", False)


def test_only_written_files_are_compared_where_nothing_is_declared() -> None:
    edited = subject("kube-scheduler", flags("--profiling=false"))
    alone = replace(edited, rendered=None)
    assert compare(alone) == ()
    written = subject("kube-scheduler").on_disk
    assert written is not None
    (found,) = compare(replace(alone, written=written.document))
    assert found.kind is KINDS.HAND_EDIT
    assert found.on_disk.value == "false"
