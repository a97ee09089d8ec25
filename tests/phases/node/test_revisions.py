"""A cluster is on record from its beginning: what it was made with, and what an upgrade has made of that."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from garboard.change.record import documents_of, patch_sets_of
from garboard.change.rollout import Rollout, version_of
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode, StoredConfig
from garboard.engine import DeleteObject, Note, Plan, PutObject, Step
from garboard.manifests.uploaded import CONFIG_KEYS, KUBEADM_CONFIG
from garboard.phases import plan_workflow, select
from garboard.phases.change_record import ChangeRecord
from garboard.phases.init import INIT, InitOptions
from garboard.phases.node.records import RECORD
from garboard.phases.node.records import patch_sets_of as recorded_sets
from garboard.phases.node.revisions import (
    RECORD_PHASE,
    RecordedConfiguration,
    record_first_revision,
    record_next_revision,
)
from garboard.phases.revision import KEPT, ChangeTarget, Revision, read_revision, read_target
from garboard.phases.upgrade.tree import plan_upgraded_revision
from tests.support.change.rollouts import rollout
from tests.support.phases.machines import MemoryMachine, context_on
from tests.support.phases.upgraded_nodes import FORMER, TARGET, MemoryObjects, patch_files, upgraded_node

BEFORE = RecordedConfiguration(
    kubernetes_version="v1.36.4",
    documents={KUBEADM_CONFIG: "kubernetesVersion: v1.36.4\n", "kube-proxy": "mode: iptables\n"},
    patch_sets={"cp1": "aa"},
)
AFTER = replace(
    BEFORE, kubernetes_version="v1.37.1", documents={**BEFORE.documents, KUBEADM_CONFIG: "kubernetesVersion: v1.37.1\n"}
)


def contents(steps: Iterable[Step]) -> dict[str, dict[str, Any]]:
    """Return the ConfigMaps that steps put, by name; later ones count."""
    actions = [each.action for each in steps if isinstance(each.action, PutObject) and each.action.kind == "ConfigMap"]
    return {each.name: each.content for each in actions if isinstance(each.content, dict)}


def recorded(steps: Iterable[Step]) -> tuple[list[Revision], ChangeTarget | None]:
    found = contents(steps)
    revisions = [read_revision(each) for name, each in found.items() if name.startswith("garboard-revision-")]
    return revisions, read_target(found.get("garboard-change"))


def after_steps(record: ChangeRecord, steps: Iterable[Step]) -> ChangeRecord:
    revisions, target = recorded(steps)
    return replace(
        record, revisions={**record.revisions, **{each.number: each for each in revisions}}, target=target,
        target_version="7",
    )  # fmt: skip


def init_plan(*skip: str, **options: Any) -> Plan:
    context = context_on(MemoryMachine(services=set()), options=InitOptions(author="alice@cp1", **options))
    context = replace(context, patches=patch_files(kubeletconfiguration="maxPods: 99\n"))
    return plan_workflow(select(INIT, skip=skip), context)


def snapshot_after(plan: Plan) -> ClusterSnapshot:
    """Return what the next change sees of a cluster that init has made."""
    found = contents(plan.steps)
    maps = {name: StoredConfig(data=found[name]["data"]) for name in CONFIG_KEYS if name in found}
    sets = recorded_sets(MemoryObjects({("ConfigMap", RECORD): found[RECORD]}), [{"metadata": {"name": "node-1"}}])
    return ClusterSnapshot(config_maps=maps, nodes=[SnapshotNode(name="node-1", patch_set=sets["node-1"])])


def test_init_records_what_it_stores_as_revision_0_and_nobody_has_to_follow() -> None:
    plan = init_plan()
    (made,), target = recorded(plan.steps)
    stored = contents(plan.steps)
    assert (made.number, made.parent, made.base, made.author, made.request) == (0, None, 0, "alice@cp1", "init")
    assert made.documents == {name: stored[name]["data"][key] for name, key in CONFIG_KEYS.items()}
    assert list(made.patch_sets) == ["node-1"]
    assert target == ChangeTarget(
        revision=0, digest=made.digest, state="committed", canary="node-1", author="alice@cp1"
    )
    assert target.is_settled


def test_the_first_change_finds_on_record_what_init_has_made() -> None:
    plan = init_plan()
    snapshot = snapshot_after(plan)
    (made,), _ = recorded(plan.steps)
    seen = RecordedConfiguration(
        kubernetes_version=version_of(snapshot), documents=documents_of(snapshot), patch_sets=patch_sets_of(snapshot)
    )
    assert seen.revision(0).digest == made.digest
    assert seen.found_in(after_steps(ChangeRecord(), plan.steps), first="the first") is None


def test_a_record_that_is_there_already_stays() -> None:
    """Such as in an etcd that was restored below a new control plane, or in an external one."""
    assert [each for each in init_plan(has_cluster=True).steps if each.phase == RECORD_PHASE] == []
    steps = [each.action for each in init_plan().steps if each.phase == RECORD_PHASE]
    kept = [each.name for each in steps if isinstance(each, PutObject) and each.keeps_existing]
    assert kept == ["garboard-revision-0", "garboard-change"]


def test_a_configuration_that_no_revision_has_room_for_is_a_warning_and_no_error() -> None:
    large = replace(AFTER, documents={KUBEADM_CONFIG: "- x\n" * 150_000})
    for found in (
        record_first_revision(large, "cp1", "bob"),
        record_next_revision(on_record(BEFORE), BEFORE, large, "cp1"),
    ):
        (note,) = found
        assert isinstance(note, Note)
        assert note.is_warning
        assert "no revision records this: revision" in note.text


@pytest.mark.parametrize("skip", ["record", "upload-config", "upload-config/kubeadm"])
def test_init_that_stores_no_configuration_records_none(skip: str) -> None:
    assert recorded(init_plan(skip).steps) == ([], None)


def test_init_without_kube_proxy_records_the_other_two() -> None:
    (made,), _ = recorded(init_plan("addon/kube-proxy").steps)
    assert sorted(made.documents) == ["kubeadm-config", "kubelet-config"]


def test_a_plan_of_init_does_not_depend_on_the_time() -> None:
    assert [each.created for each in recorded(init_plan().steps)[0]] == [""]


def next_steps(
    record: ChangeRecord, before: RecordedConfiguration = BEFORE, after: RecordedConfiguration = AFTER
) -> list[Step]:
    found = record_next_revision(record, before, after, "cp1", author="bob", message="upgraded")
    return [each for each in found if isinstance(each, Step)]


def on_record(*configurations: RecordedConfiguration) -> ChangeRecord:
    """Return the record of a cluster that was configured like this, one after the other."""
    revisions = {
        number: each.revision(number, parent=number - 1 if number else None, base=number)
        for number, each in enumerate(configurations)
    }
    newest = revisions[len(revisions) - 1]
    target = ChangeTarget(revision=newest.number, digest=newest.digest, state="committed")
    return ChangeRecord(revisions=revisions, target=target, target_version="41")


def test_the_first_upgrade_of_a_cluster_records_what_was_there_too() -> None:
    found, made = recorded(next_steps(ChangeRecord()))[0]
    assert (found.number, found.parent, found.kubernetes_version) == (0, None, "v1.36.4")
    assert (made.number, made.parent, made.base, made.kubernetes_version) == (1, 0, 1, "v1.37.1")
    assert (made.author, made.message) == ("bob", "upgraded")


def test_an_upgrade_of_what_is_on_record_is_one_revision_in_place_of_that_very_target() -> None:
    steps = next_steps(on_record(BEFORE))
    (made,), target = recorded(steps)
    assert (made.number, made.parent) == (1, 0)
    assert target is not None
    assert (target.revision, target.digest, target.state, target.nodes) == (1, made.digest, "committed", [])
    puts = [each.action for each in steps if isinstance(each.action, PutObject)]
    actions = {(each.kind, each.name): each for each in puts}
    assert actions["ConfigMap", "garboard-change"].resource_version == "41"
    role = actions["Role", "garboard:change"]
    assert "garboard-revision-0" in str(role.content)
    assert "garboard-revision-1" in str(role.content)


def test_what_is_on_record_as_it_will_be_is_not_recorded_again() -> None:
    """Such as by the nodes that follow `upgrade apply`."""
    record = after_steps(on_record(BEFORE), next_steps(on_record(BEFORE)))
    assert next_steps(record, AFTER, AFTER) == []
    assert next_steps(on_record(BEFORE), BEFORE, BEFORE) == []


def test_what_others_have_changed_before_an_upgrade_is_recorded_as_that() -> None:
    edited = replace(BEFORE, documents={**BEFORE.documents, "kube-proxy": "mode: nftables\n"})
    found, made = recorded(next_steps(on_record(BEFORE), edited))[0]
    assert (found.message, found.parent) == ("what was found: changed by other means", 0)
    assert made.parent == found.number == 1


def test_patches_of_other_nodes_make_no_revision_of_an_upgrade_and_are_in_the_next() -> None:
    """Such as on control planes of kubeadm, each of which records its patches as it goes up."""
    patched = replace(AFTER, patch_sets={"cp1": "aa", "cp2": "bb"})
    record = after_steps(on_record(BEFORE), next_steps(on_record(BEFORE)))
    assert next_steps(record, patched, replace(patched, patch_sets={**patched.patch_sets, "cp3": "cc"})) == []
    later = replace(patched, documents={**patched.documents, "kube-proxy": "mode: nftables\n"})
    (made,) = recorded(next_steps(record, patched, later))[0]
    assert (made.number, made.parent, made.patch_sets) == (2, 1, patched.patch_sets)


def test_nodes_that_have_joined_with_patches_are_no_change_by_other_means() -> None:
    joined = replace(BEFORE, patch_sets={**BEFORE.patch_sets, "cp2": "bb"})
    found = joined.found_in(on_record(BEFORE), first="")
    assert found is not None
    assert "have joined" in found.message
    repatched = replace(BEFORE, patch_sets={"cp1": "cc"}).found_in(on_record(BEFORE), first="")
    assert repatched is not None
    assert "by other means" in repatched.message


def test_a_revision_that_the_target_names_and_nobody_kept_is_recorded_anew() -> None:
    record = replace(on_record(BEFORE), revisions={})
    found, made = recorded(next_steps(record))[0]
    assert (found.documents, made.documents) == (BEFORE.documents, AFTER.documents)


def test_the_oldest_of_too_many_revisions_goes() -> None:
    several = [replace(BEFORE, kubernetes_version=f"v1.36.{number}") for number in range(KEPT)]
    actions = [each.action for each in next_steps(on_record(*several), several[-1])]
    assert [each.name for each in actions if isinstance(each, DeleteObject)] == ["garboard-revision-0"]


def test_a_cluster_without_a_stored_configuration_has_nothing_to_record() -> None:
    assert next_steps(ChangeRecord(), replace(BEFORE, documents={}), AFTER) == []


def test_an_upgrade_records_the_texts_that_it_stores() -> None:
    context = upgraded_node()
    upgraded = replace(context.upgraded, documents={**BEFORE.documents, "kubelet-config": "maxPods: 110\n"})
    stored = {"kubelet-config": {"kubelet": "maxPods: 99\n"}, RECORD: {"node.node-1": "dd", "set.dd": "packed"}}
    config = {KUBEADM_CONFIG: {"ClusterConfiguration": f"kubernetesVersion: {TARGET}\n"}}
    context = replace(context, upgraded=upgraded)
    planned = plan_upgraded_revision(replace(context, stored_maps={**stored, **config}))
    found, made = recorded(each for each in planned if isinstance(each, Step))[0]
    assert (found.kubernetes_version, made.kubernetes_version) == (FORMER, TARGET)
    assert made.documents == {
        **BEFORE.documents, "kubelet-config": "maxPods: 99\n", KUBEADM_CONFIG: f"kubernetesVersion: {TARGET}\n"
    }  # fmt: skip
    assert made.patch_sets == {"node-1": "dd"}
    assert made.message == f"upgraded from {FORMER} to {TARGET}"
    assert made.request == f"upgrade apply {TARGET}"


def test_an_upgrade_that_does_not_store_the_version_records_the_one_that_is_stored() -> None:
    """With --skip-phases upload-config/kubeadm."""
    context = upgraded_node()
    context = replace(context, upgraded=replace(context.upgraded, documents=BEFORE.documents))
    stored = {"kubelet-config": {"kubelet": "maxPods: 99\n"}}
    planned = plan_upgraded_revision(replace(context, stored_maps=stored))
    _, made = recorded(each for each in planned if isinstance(each, Step))[0]
    assert (made.kubernetes_version, made.documents[KUBEADM_CONFIG]) == (FORMER, BEFORE.documents[KUBEADM_CONFIG])
    assert made.message == f"upgraded to {TARGET}"


def test_a_change_after_an_upgrade_sets_out_from_what_the_upgrade_recorded() -> None:
    found: Rollout = rollout(snapshot_after(init_plan()), "scheduler.extraArgs[v]=1", here="node-1")
    record = after_steps(ChangeRecord(), init_plan().steps)
    first = replace(found, record=record)
    assert first.found is None
    assert (first.revision.number, first.revision.parent, first.revision.base) == (1, 0, 0)
