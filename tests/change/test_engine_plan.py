"""A plan of a change as a plan of the engine: what coordinators and nodes would carry out."""

import msgspec
import pytest

from garboard.change.engine_plan import cluster_plan, without_actions
from garboard.change.observing import at
from garboard.change.plan import ChangePlan, PlannedObject
from garboard.engine import (
    AwaitGate,
    ClusterPart,
    ClusterPlan,
    ControlService,
    DeletePods,
    EvictPods,
    Issue,
    NodePart,
    PatchObject,
    PlanCodec,
    PutObject,
    RemoveFile,
    SaveSnapshot,
    WriteFile,
    cluster_plan_as_text,
    refuse_units,
)
from garboard.engine.pre_image import digest_of
from garboard.model.paths import manifest_path
from garboard.node.runs import plan_codec
from garboard.phases.gates import CertificateServed, KubeProxySettled
from tests.support.change.requests import patch, planned, sets
from tests.support.change.snapshots import f1, f2

PATCH_OF_PROXY = '{"kind": "KubeProxyConfiguration", "mode": "nftables", "healthzBindAddress": "0.0.0.0:10257"}'
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
    for edit in ("apiServer.certSANs+=api.example.com", "KubeProxyConfiguration:mode=nftables",
                 "imageRepository=mirror.example.com/k8s"):  # fmt: skip
        assert without_actions(planned(f1(), edit)) == ()
    workload = PlannedObject(kind="DaemonSet", name="kube-proxy", cause="", diff="more than images")
    assert without_actions(ChangePlan(parts=(workload,))) == ("DaemonSet",)


def test_a_name_is_one_certificate_that_has_to_be_served_and_no_restart() -> None:
    snapshot = f2(is_seen=True)
    parts = cluster_plan(planned(snapshot, "apiServer.certSANs+=api.example.com"), snapshot).parts
    for part, node in zip([each for each in parts if isinstance(each, NodePart)], snapshot.control_planes, strict=True):
        issue, wait = part.plan.steps
        assert isinstance(issue.action, Issue)
        assert [file.path for file in issue.action.files] == [
            f"/etc/kubernetes/pki/apiserver.{end}" for end in ("key", "crt")
        ]
        names = issue.action.request.describe()["names"]
        assert isinstance(names, list)
        assert "api.example.com" in names
        assert node.name in names
        assert isinstance(wait.action, AwaitGate)
        gate = wait.action.gate
        assert node.endpoint is not None
        assert isinstance(gate, CertificateServed)
        assert (gate.host, gate.port) == (node.endpoint.advertise_address, 6443)
        assert not any(step.restarts for step in part.plan.steps)


@pytest.mark.parametrize(
    ("edit", "ports"),
    [("etcd.local.serverCertSANs+=etcd.example.com", [2379]), ("etcd.local.peerCertSANs+=etcd.example.com", [2380])],
)
def test_certificates_of_etcd_are_looked_at_where_it_serves_them(edit: str, ports: list[int]) -> None:
    snapshot = f1(is_seen=True)
    parts = cluster_plan(planned(snapshot, edit), snapshot).parts
    gates = [step.action.gate for step in parts[0].plan.steps if isinstance(step.action, AwaitGate)]
    assert [gate.port for gate in gates if isinstance(gate, CertificateServed)] == ports


def test_kube_proxy_is_its_map_and_then_its_pods_node_by_node() -> None:
    snapshot = f1()
    edit = PATCH_OF_PROXY
    parts = cluster_plan(planned(snapshot, patch(edit)), snapshot).parts
    assert [part.title for part in parts] == ["kube-proxy", "cp1", "w1", "w2"]
    for part in parts[1:]:
        delete, wait = (step.action for step in part.plan.steps)
        assert isinstance(delete, DeletePods)
        assert (delete.node_name, delete.selector) == (part.title, (("k8s-app", "kube-proxy"),))
        assert isinstance(wait, AwaitGate)
        assert isinstance(wait.gate, KubeProxySettled)
        assert wait.gate.url == "http://127.0.0.1:10257/healthz"


def test_workloads_get_other_images_and_nothing_else() -> None:
    snapshot = f1()
    parts = cluster_plan(planned(snapshot, "imageRepository=mirror.example.com/k8s"), snapshot).parts
    patches = [step.action for part in parts for step in part.plan.steps if isinstance(step.action, PatchObject)]
    assert [(each.kind, each.name) for each in patches] == [("DaemonSet", "kube-proxy"), ("Deployment", "coredns")]
    for each in patches:
        containers = at(each.content, "spec", "template", "spec", "containers")
        assert isinstance(containers, list)
        (container,) = containers
        assert isinstance(container, dict)
        assert set(container) == {"name", "image"}
        assert str(container["image"]).startswith("mirror.example.com/k8s/")


def test_the_kubelet_is_a_unit_that_goes_back_with_its_file() -> None:
    snapshot = f2(is_seen=True)
    plan = cluster_plan(planned(snapshot, "KubeletConfiguration:maxPods=250"), snapshot).parts[0].plan
    assert {step.unit for step in plan.steps} == {"kubelet"}
    refuse_units(plan)
    written = next(step for step in plan.steps if isinstance(step.action, WriteFile))
    node = snapshot.node("cp1")
    assert node is not None
    assert written.preconditions[0].sha256 == digest_of((node.kubelet_config or "").encode())


def test_a_node_that_its_owner_has_cordoned_stays_cordoned() -> None:
    snapshot = f1()
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    nodes = [
        msgspec.structs.replace(each, settings=msgspec.structs.replace(each.settings, taints=taints))
        for each in snapshot.nodes
    ]
    snapshot = msgspec.structs.replace(snapshot, nodes=nodes)
    plan = planned(snapshot, "KubeletConfiguration:topologyManagerPolicy=best-effort", "drain-needed")
    actions = [step.action for part in cluster_plan(plan, snapshot).parts for step in part.plan.steps]
    assert any(isinstance(each, EvictPods) for each in actions)
    assert not any(isinstance(each, PatchObject) and each.kind == "Node" for each in actions)


def test_a_blocked_plan_has_no_parts() -> None:
    snapshot = f1()
    assert cluster_plan(planned(snapshot, "certificatesDir=/srv"), snapshot).parts == ()


def test_it_is_stored_and_shown_like_every_other_plan() -> None:
    snapshot = f2(is_seen=True)
    plan = cluster_plan(planned(snapshot, FLAG), snapshot)
    codec: PlanCodec = plan_codec()
    assert codec.decode(codec.encode(plan)) == plan
    assert "cp1: garboard change node --yes" in cluster_plan_as_text(plan)
