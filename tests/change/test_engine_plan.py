"""A plan of a change as a plan of the engine: what coordinators and nodes would carry out."""

import pytest

from garboard.change.engine_plan import cluster_plan, without_actions
from garboard.engine import (
    ClusterPart,
    ClusterPlan,
    ControlService,
    NodePart,
    PlanCodec,
    PutObject,
    RemoveFile,
    SaveSnapshot,
    WriteFile,
    cluster_plan_as_text,
)
from garboard.model.paths import manifest_path
from garboard.node.runs import plan_codec
from tests.support.change.requests import planned, sets
from tests.support.change.snapshots import f1, f2

FLAG = "apiServer.extraArgs[profiling]=false"


def titles(plan: ClusterPlan) -> list[str]:
    return [part.title for part in plan.parts]


@pytest.mark.parametrize(
    "edit", [FLAG, "etcd.local.extraArgs[snapshot-count]=20000", "KubeletConfiguration:maxPods=250"]
)
def test_parts_stand_in_the_order_of_the_plan_and_each_on_its_node(edit: str) -> None:
    snapshot = f2(is_seen=True)
    plan = planned(snapshot, edit)
    found = cluster_plan(plan, snapshot)
    assert titles(found) == [getattr(part, "node", getattr(part, "name", "")) for part in plan.parts]
    assert [*found.misplaced()] == []
    assert without_actions(plan) == ()


def test_what_is_written_is_what_the_plan_shows() -> None:
    snapshot = f2(is_seen=True)
    plan = planned(snapshot, sets(FLAG, "KubeletConfiguration:maxPods=250"))
    shown = {(each.node, file.path): file.content for each in plan.nodes for step in each.steps for file in step.files}
    written = {
        (part.node, step.action.path): step.action.content
        for part in cluster_plan(plan, snapshot).parts
        if isinstance(part, NodePart)
        for step in part.plan.steps
        if isinstance(step.action, WriteFile)
    }
    assert written == shown


def test_every_component_that_the_plan_restarts_is_restarted_by_a_step_and_no_other() -> None:
    snapshot = f2(is_seen=True)
    for edit in (FLAG, "etcd.local.extraArgs[snapshot-count]=20000", "KubeletConfiguration:maxPods=250"):
        plan = planned(snapshot, edit)
        wanted = {each.node: {name for step in each.steps for name in step.restarts} for each in plan.nodes}
        found = {
            part.node: {name for step in part.plan.steps for name in step.restarts}
            for part in cluster_plan(plan, snapshot).parts
            if isinstance(part, NodePart)
        }
        assert found == wanted


def test_files_that_were_seen_are_preconditions_and_assumed_ones_are_none() -> None:
    for is_seen in (True, False):
        snapshot = f1(is_seen=is_seen)
        (part,) = (each for each in cluster_plan(planned(snapshot, FLAG), snapshot).parts if isinstance(each, NodePart))
        paths = {each.path for step in part.plan.steps for each in step.preconditions}
        assert paths == ({manifest_path("kube-apiserver")} if is_seen else set())


def test_a_config_map_keeps_its_other_keys_and_its_version_is_looked_at() -> None:
    snapshot = f1()
    parts = cluster_plan(planned(snapshot, FLAG), snapshot).parts
    (part,) = (each for each in parts if isinstance(each, ClusterPart))
    action = part.plan.steps[0].action
    assert isinstance(action, PutObject)
    assert (action.name, action.keeps_other_data, action.resource_version) == ("kubeadm-config", True, "100")


def test_etcd_is_saved_once_and_a_state_file_goes_while_the_kubelet_is_stopped() -> None:
    snapshot = f2(is_seen=True)
    plan = cluster_plan(planned(snapshot, "etcd.local.extraArgs[snapshot-count]=20000"), snapshot)
    saved = [part.title for part in plan.parts for step in part.plan.steps if isinstance(step.action, SaveSnapshot)]
    assert saved == ["cp1"]
    drained = planned(snapshot, "KubeletConfiguration:topologyManagerPolicy=best-effort", "drain-needed")
    actions = [step.action for step in cluster_plan(drained, snapshot).parts[0].plan.steps]
    verbs = [each.verb if isinstance(each, ControlService) else "remove" for each in actions
             if isinstance(each, ControlService | RemoveFile)]  # fmt: skip
    assert verbs == ["stop", "remove", "start"]


def test_what_has_no_action_yet_is_told() -> None:
    assert without_actions(planned(f1(), "apiServer.certSANs+=api.example.com")) == ("certs/apiserver",)
    assert without_actions(planned(f1(), "KubeProxyConfiguration:mode=nftables")) == ("kube-proxy",)
    assert without_actions(planned(f1(), "imageRepository=mirror.example.com/k8s")) == ("DaemonSet", "Deployment")


def test_a_blocked_plan_has_no_parts() -> None:
    snapshot = f1()
    assert cluster_plan(planned(snapshot, "certificatesDir=/srv"), snapshot).parts == ()


def test_it_is_stored_and_shown_like_every_other_plan() -> None:
    snapshot = f2(is_seen=True)
    plan = cluster_plan(planned(snapshot, FLAG), snapshot)
    codec: PlanCodec = plan_codec()
    assert codec.decode(codec.encode(plan)) == plan
    assert "cp1: garboard change node sha256:" in cluster_plan_as_text(plan)
