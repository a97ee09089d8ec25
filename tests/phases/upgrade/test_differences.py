"""What stops an upgrade: live differences that neither the configuration nor patches explain, and the choices."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from garboard.documents import read_yaml
from garboard.drift import Difference, DriftKind
from garboard.engine import Note
from garboard.errors import BadUsage, GarboardError, NotReady
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.phases.node.records import content_of
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.control_plane import render_pods
from garboard.phases.upgrade.differences import find_drift, plan_differences, refuse_stopping, written_by
from garboard.phases.upgrade.drift_choices import DriftChoice, DriftChoices
from garboard.phases.upgrade.tree import plan_preflight
from garboard.phases.workflow import Blocked
from tests.support.phases.machines import MemoryMachine
from tests.support.phases.upgraded_nodes import (
    FORMER,
    MemoryObjects,
    edited,
    loaded,
    manifests_of,
    patch_files,
    upgraded_node,
    with_manifest,
    yaml,
)

FLAG = "    - --allow-privileged=true\n"
PROFILING = f"{FLAG}    - --profiling=false\n"
NOBODY = DriftChoices()


def with_flag(context: UpgradeContext) -> UpgradeContext:
    return edited(context, "kube-apiserver", FLAG, PROFILING)


def flags(data: bytes) -> list[str]:
    document: Any = read_yaml(data, source="")
    found: list[str] = document["spec"]["containers"][0]["command"]
    return found


def notes(context: UpgradeContext) -> list[str]:
    return [each.text for each in plan_differences(context) if isinstance(each, Note)]


def blocked(context: UpgradeContext) -> list[GarboardError]:
    return [each.error for each in plan_differences(context) if isinstance(each, Blocked)]


def fields(context: UpgradeContext, kind: DriftKind = DriftKind.HAND_EDIT) -> list[str]:
    return [each.field for each in context.drift.differences if each.kind is kind]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="defaults"),
        pytest.param("apiServer: {extraArgs: [{name: event-ttl, value: 2h}]}\n", id="extra arguments"),
        pytest.param("apiServer: {extraEnvs: [{name: HTTPS_PROXY, value: x}]}\n", id="extra variables"),
        pytest.param("etcd: {external: {endpoints: ['https://192.0.2.9:2379']}}\n", id="external etcd"),
        pytest.param("imageRepository: registry.example/k8s\n", id="another registry"),
        pytest.param("networking: {podSubnet: 10.244.0.0/16}\n", id="a subnet of pods"),
        pytest.param("dns: {imageTag: v9.9.9}\n", id="another CoreDNS"),
    ],
)
def test_a_node_as_it_was_made_has_no_difference(text: str) -> None:
    assert find_drift(upgraded_node(text), NOBODY).drift.differences == ()


def test_a_flag_that_was_added_by_hand_stops_the_upgrade_with_what_it_is() -> None:
    found = find_drift(with_flag(upgraded_node()), NOBODY)
    assert fields(found) == ["spec.containers[name=kube-apiserver].command[--profiling]"]
    (error,) = blocked(found)
    assert isinstance(error, NotReady)
    assert error.error_class == "unexplained-difference"
    assert "command[--profiling]" in error.message
    assert error.hint is not None
    assert "--drift keep" in error.hint


def test_preflight_is_where_an_upgrade_stops() -> None:
    found = find_drift(with_flag(upgraded_node()), NOBODY)
    assert [each.error.error_class for each in plan_preflight(found) if isinstance(each, Blocked)] == [
        "unexplained-difference"
    ]


PATCHES = patch_files(kube_apiserver="metadata: {annotations: {team: blue}}")


def test_what_given_patches_explain_stops_nothing() -> None:
    found = find_drift(upgraded_node(patches=PATCHES), NOBODY)
    assert (fields(found), fields(found, DriftKind.PATCH)) == ([], ["metadata.annotations.team"])
    assert blocked(found) == []


def test_what_recorded_patches_explain_stops_nothing_and_is_told_if_others_are_given() -> None:
    node = replace(upgraded_node(patches=PATCHES), patches=patch_files(etcd="spec: {priority: 7}"))
    found = find_drift(node, NOBODY, recorded=PATCHES)
    assert blocked(found) == []
    assert any("metadata.annotations.team becomes not there" in each for each in notes(found))


def test_patches_that_nobody_gives_again_stop_the_upgrade() -> None:
    node = replace(upgraded_node(patches=PATCHES), patches=patch_files(etcd="spec: {priority: 7}"))
    assert fields(find_drift(node, NOBODY)) == ["metadata.annotations.team"]


def test_a_kept_flag_is_rendered_for_the_target_and_recorded() -> None:
    found = find_drift(with_flag(upgraded_node()), DriftChoices.parse(["keep"]))
    assert blocked(found) == []
    (pod,) = (each for each in render_pods(found)[1] if each.component == "kube-apiserver")
    assert "--profiling=false" in flags(pod.manifest)
    assert b"kube-apiserver:v1.37.1" in pod.manifest
    content = content_of(found.patches)
    assert content is not None
    assert dict(content.files) == {"garboard.yaml": b"", "kube-apiserver~found+args.yaml": b'profiling: "false"\n'}


def test_after_a_kept_field_has_been_recorded_nothing_differs() -> None:
    node = with_flag(upgraded_node())
    kept = find_drift(node, DriftChoices.parse(["keep"])).patches
    again = find_drift(replace(node, patches=kept), NOBODY)
    assert (fields(again), blocked(again)) == ([], [])


def test_a_dropped_flag_goes() -> None:
    found = find_drift(with_flag(upgraded_node()), DriftChoices.parse(["drop"]))
    assert blocked(found) == []
    (pod,) = (each for each in render_pods(found)[1] if each.component == "kube-apiserver")
    assert "--profiling=false" not in flags(pod.manifest)
    assert any("is dropped" in each for each in notes(found))


def test_fields_are_chosen_one_by_one() -> None:
    node = edited(with_flag(upgraded_node()), "kube-scheduler", "--leader-elect=true", "--leader-elect=false")
    field = "spec.containers[name=kube-scheduler].command[--leader-elect]"
    found = find_drift(node, DriftChoices.parse(["kube-apiserver:--profiling=keep", f"kube-scheduler:{field}=drop"]))
    assert [choice for _, choice in found.drift.chosen] == [DriftChoice.KEEP, DriftChoice.DROP]
    assert blocked(found) == []


def test_a_field_without_a_choice_stops_the_upgrade_beside_others_with_one() -> None:
    node = edited(with_flag(upgraded_node()), "kube-scheduler", "--leader-elect=true", "--leader-elect=false")
    found = find_drift(node, DriftChoices.parse(["kube-apiserver=keep"]))
    assert [each.component for each in found.drift.stopping] == ["kube-scheduler"]


def test_the_more_exact_choice_counts() -> None:
    choices = DriftChoices.parse(["drop", "kube-apiserver=abort", "kube-apiserver:--profiling=keep"])
    found = find_drift(with_flag(upgraded_node()), choices)
    assert [choice for _, choice in found.drift.chosen] == [DriftChoice.KEEP]


def test_a_choice_for_what_does_not_differ_is_told() -> None:
    found = find_drift(upgraded_node(), DriftChoices.parse(["etcd=keep"]))
    assert any("--drift names etcd" in each for each in notes(found))


@pytest.mark.parametrize("word", ["", "retain", "etcd=", "etcd:--name"])
def test_what_is_no_choice_is_refused(word: str) -> None:
    with pytest.raises(BadUsage, match="is none of keep, drop, abort"):
        DriftChoices.parse([word])


def test_who_is_asked_decides() -> None:
    asked: list[str] = []

    def ask(difference: Difference) -> DriftChoice:
        asked.append(difference.field)
        return DriftChoice.DROP

    found = find_drift(with_flag(upgraded_node()), NOBODY, ask)
    assert (len(asked), blocked(found)) == (1, [])


def test_an_answer_to_abort_stops_the_upgrade() -> None:
    found = find_drift(with_flag(upgraded_node()), NOBODY, lambda _: DriftChoice.ABORT)
    assert [each.error_class for each in blocked(found)] == ["unexplained-difference"]


def proxy(context: UpgradeContext) -> UpgradeContext:
    old = "    name: kube-scheduler\n"
    new = f"    env:\n    - name: HTTPS_PROXY\n      value: http://192.0.2.1\n{old}"
    return edited(context, "kube-scheduler", old, new)


def timeout(context: UpgradeContext) -> UpgradeContext:
    for name in context.manifests:
        context = edited(context, name, "failureThreshold: 24", "failureThreshold: 48")
    return context


def joined(context: UpgradeContext) -> UpgradeContext:
    old = "    - --initial-cluster=node-1=https://192.0.2.10:2380\n"
    return edited(
        context, "etcd", old, f"    - --initial-cluster=a=b,{old[24:]}    - --initial-cluster-state=existing\n"
    )


def older_etcd(context: UpgradeContext) -> UpgradeContext:
    return edited(context, "etcd", "etcd:3.6.8-0", "etcd:3.6.5-0")


@pytest.mark.parametrize("edit", [proxy, timeout, joined, older_etcd], ids=lambda edit: str(edit.__name__))
@pytest.mark.parametrize("target", ["v1.37.1", FORMER])
def test_surroundings_stop_nothing(edit: Callable[[UpgradeContext], UpgradeContext], target: str) -> None:
    found = find_drift(edit(upgraded_node(target=target)), NOBODY)
    assert fields(found, DriftKind.ENVIRONMENTAL)
    assert (blocked(found), found.drift.unlike_declared) == ([], ())


def test_a_configuration_that_has_more_than_the_files_is_pending() -> None:
    text = "scheduler: {extraArgs: [{name: profiling, value: 'false'}]}\n"
    plain = manifests_of(loaded())
    found = find_drift(with_manifest(upgraded_node(text), "kube-scheduler", plain["kube-scheduler"]), NOBODY)
    assert fields(found, DriftKind.PENDING) == ["spec.containers[name=kube-scheduler].command[--profiling]"]
    assert blocked(found) == []


def already(context: UpgradeContext) -> list[object]:
    return [each.error.error_class if isinstance(each, Blocked) else each.text for each in plan_preflight(context)]  # type: ignore[union-attr]


def test_the_same_version_again_is_nothing_to_do() -> None:
    found = find_drift(timeout(upgraded_node(target=FORMER)), NOBODY)
    assert already(found) == ["the cluster has v1.36.4 already: there is nothing to do"]


def test_the_same_version_with_an_edited_coredns_is_nothing_to_do() -> None:
    node = upgraded_node(target=FORMER)
    live_dns(node)["spec"]["minReadySeconds"] = 5
    assert already(find_drift(node, NOBODY)) == ["the cluster has v1.36.4 already: there is nothing to do"]


def test_the_same_version_with_a_hand_edit_is_for_change() -> None:
    found = find_drift(with_flag(upgraded_node(target=FORMER)), NOBODY)
    assert already(found) == ["not-an-upgrade"]


def test_the_same_version_with_another_configuration_is_for_change() -> None:
    text = "apiServer: {extraArgs: [{name: event-ttl, value: 2h}]}\n"
    node = upgraded_node(text, target=FORMER)
    plain = manifests_of(loaded())["kube-apiserver"]
    assert already(find_drift(with_manifest(node, "kube-apiserver", plain), NOBODY)) == ["not-an-upgrade"]


def test_an_edited_configuration_of_the_kubelet_is_kept_as_a_patch() -> None:
    node = upgraded_node()
    assert isinstance(node.machine, MemoryMachine)
    document: Any = read_yaml(node.machine.files[CONFIG_FILE], source="")
    node.machine.files[CONFIG_FILE] = yaml({**document, "maxPods": 50})
    assert fields(find_drift(node, NOBODY)) == ["maxPods"]
    content = content_of(find_drift(node, DriftChoices.parse(["keep"])).patches)
    assert content is not None
    assert dict(content.files) == {"kubeletconfiguration~found+strategic.yaml": b"maxPods: 50\n"}


def live_dns(context: UpgradeContext) -> dict[str, Any]:
    assert isinstance(context.objects, MemoryObjects)
    found: dict[str, Any] = context.objects.objects["Deployment", "coredns"]
    return found


def test_an_edited_coredns_is_kept_by_the_node_that_upgrades_it() -> None:
    node = upgraded_node()
    live_dns(node)["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] = 1
    found = find_drift(node, NOBODY)
    assert blocked(found) == []
    content = content_of(found.patches)
    assert content is not None
    assert b"periodSeconds: 1" in content.files["corednsdeployment~found+strategic.yaml"]


@pytest.mark.parametrize(("word", "errors"), [("corednsdeployment=drop", 0), ("abort", 1)])
def test_an_edited_coredns_is_not_kept_against_a_choice(word: str, errors: int) -> None:
    node = upgraded_node()
    live_dns(node)["spec"]["minReadySeconds"] = 5
    found = find_drift(node, DriftChoices.parse([word]))
    assert (len(blocked(found)), content_of(found.patches)) == (errors, None)


def test_an_edited_kube_proxy_stops_where_it_cannot_be_patched() -> None:
    node = upgraded_node(target="v1.36.5")
    assert isinstance(node.objects, MemoryObjects)
    node.objects.objects["DaemonSet", "kube-proxy"]["spec"]["minReadySeconds"] = 5  # type: ignore[index,call-overload]
    assert [each.error_class for each in blocked(find_drift(node, NOBODY))] == ["unexplained-difference"]


def test_an_edited_coredns_is_told_on_nodes_that_leave_it_alone() -> None:
    node = upgraded_node(others=["node-2"])
    live_dns(node)["spec"]["minReadySeconds"] = 5
    found = find_drift(node, NOBODY)
    assert blocked(found) == []
    assert any("The last control plane, which upgrades it, decides" in each for each in notes(found))


def test_a_worker_compares_its_kubelet_alone() -> None:
    class OfWorker(MemoryObjects):
        def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            assert kind == "Node", f"a kubelet may not read {kind} {name}"
            return super().find(kind, namespace, name)

    node = replace(upgraded_node(is_first=False), manifests={}, objects=OfWorker())
    assert isinstance(node.machine, MemoryMachine)
    node.machine.files[CONFIG_FILE] += b"maxPods: 50\n"
    assert fields(find_drift(node, NOBODY)) == ["maxPods"]


def test_more_replicas_of_coredns_are_no_difference() -> None:
    node = upgraded_node()
    live_dns(node)["spec"]["replicas"] = 5
    assert find_drift(node, NOBODY).drift.differences == ()


def test_kept_patches_come_after_the_layers_of_a_tree() -> None:
    tree = patch_files(garboard="", kube_apiserver__args="event-ttl: 2h")
    node = edited(upgraded_node(patches=tree), "kube-apiserver", "--event-ttl=2h", "--event-ttl=3h")
    found = find_drift(node, DriftChoices.parse(["keep"]))
    content = content_of(found.patches)
    assert content is not None
    assert content.files["node/node-1/kube-apiserver~found+args.yaml"] == b"event-ttl: 3h\n"
    (pod,) = (each for each in render_pods(found)[1] if each.component == "kube-apiserver")
    assert "--event-ttl=3h" in flags(pod.manifest)


def test_a_second_set_of_kept_fields_gets_a_name_of_its_own() -> None:
    node = with_flag(upgraded_node())
    first = find_drift(node, DriftChoices.parse(["keep"])).patches
    node = edited(replace(node, patches=first), "kube-apiserver", PROFILING, f"{PROFILING}    - --event-ttl=2h\n")
    content = content_of(find_drift(node, DriftChoices.parse(["keep"])).patches)
    assert content is not None
    assert sorted(content.files) == [
        "garboard.yaml",
        "kube-apiserver~found+args.yaml",
        "node/node-1/kube-apiserver~found+args.yaml",
    ]


def test_single_phases_stop_for_what_they_write() -> None:
    found = find_drift(with_flag(upgraded_node()), NOBODY)
    refuse_stopping(found, written_by(["kubelet-config", "upload-config/kubeadm"]))
    with pytest.raises(NotReady, match="profiling"):
        refuse_stopping(found, written_by(["control-plane"]))


def test_patches_that_only_the_target_refuses_stop_the_upgrade() -> None:
    patches = patch_files(garboard="", etcd__args="experimental-compaction-batch-limit: 100")
    found = find_drift(upgraded_node(patches=patches), NOBODY)
    assert [each.error_class for each in blocked(found)] == ["patches-do-not-fit"]
    assert "experimental-compaction-batch-limit" in blocked(found)[0].message
    assert blocked(replace(found, ignored_checks=frozenset({"patchesfit"}))) == []


def test_strict_patches_stop_for_every_error() -> None:
    patches = replace(patch_files(etcd="spec: {priorit: 7}"), is_strict=True)
    found = find_drift(replace(upgraded_node(), patches=patches), NOBODY)
    assert [each.error_class for each in blocked(found)] == ["patches-do-not-fit"]


def test_findings_of_lint_are_told() -> None:
    found = find_drift(upgraded_node(patches=patch_files(etcd="spec: {priorit: 7}")), NOBODY)
    assert any(each.startswith("lint: [unknown-field] etcd") for each in notes(found))
    assert blocked(found) == []
