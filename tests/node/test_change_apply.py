"""A change that was planned elsewhere is the same one where it begins, or it is refused."""

from dataclasses import replace
from typing import Literal

import msgspec
import pytest

from garboard.change.coordinated import begins_on, coordinated_plan, handed_change, read_handed
from garboard.change.document import plan_document
from garboard.change.drift_request import AskedChange, DriftRequest
from garboard.change.node_files import ObservedFiles, with_files
from garboard.change.node_work import PlanOptions
from garboard.change.observations import observations
from garboard.change.outcomes import ChangeStale
from garboard.change.planning import plan_change
from garboard.change.request import ChangeRequest, NewPatchSet, RecordedState
from garboard.change.rollout import ChangeIntent
from garboard.change.saved_plan import SavedPlan
from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import Json, read_yaml
from garboard.engine import NodePart
from garboard.errors import BadDocument
from garboard.manifests.kubelet import CONFIG_FILE, INSTANCE_CONFIG_FILE
from garboard.node.change_apply import from_elsewhere, options_of, stale_request
from garboard.node.change_drift import resolved
from garboard.node.change_observe import ObservedCluster
from garboard.phases.node.records import PatchSetContent
from tests.support.change.edited_nodes import API_SERVER, edited, with_flag, with_volume
from tests.support.change.requests import new_version, patch, sets
from tests.support.change.rollouts import rollout
from tests.support.change.snapshots import f2

FLAG = sets("scheduler.extraArgs[v]=9")
PATCHES = NewPatchSet(content=PatchSetContent({"kube-scheduler.yaml": b"metadata: {labels: {owner: us}}\n"}))


def unseen() -> ClusterSnapshot:
    """Return what the API server shows of a cluster of today: nobody notes sockets there any more."""
    snapshot = f2()
    nodes = [
        msgspec.structs.replace(each, settings=msgspec.structs.replace(each.settings, cri_socket=""))
        for each in snapshot.nodes
    ]
    return msgspec.structs.replace(snapshot, nodes=nodes, members=None)


def on_node(snapshot: ClusterSnapshot, name: str) -> ClusterSnapshot:
    """Return what that node itself sees: its files, and the members of etcd."""
    seen = f2(is_seen=True).node(name)
    assert seen is not None
    files = ObservedFiles(
        manifests={component: text.encode() for component, text in (seen.manifests or {}).items()},
        kubelet={
            CONFIG_FILE: (seen.kubelet_config or "").encode(),
            INSTANCE_CONFIG_FILE: (seen.instance_config or "").encode(),
        },
    )
    nodes = [with_files(each, files) if each.name == name else each for each in snapshot.nodes]
    return msgspec.structs.replace(snapshot, nodes=nodes, members=f2().members)


def test_a_node_can_look_at_its_cluster_as_others_do() -> None:
    seen = on_node(unseen(), "cp1")
    assert observations(seen) != observations(unseen())
    assert from_elsewhere(seen) == unseen()


@pytest.mark.parametrize("request_", [FLAG, sets("KubeletConfiguration:maxPods=250"), PATCHES,
                                      patch('{"kind": "KubeProxyConfiguration", "mode": "nftables"}')])  # fmt: skip
def test_what_a_coordinator_hands_over_is_carried_out_by_the_first_node(request_: ChangeRequest) -> None:
    found = rollout(unseen(), request_)
    expected = plan_change(unseen(), request_, options=PlanOptions(first="cp1"))
    handed = read_handed(handed_change(found, request_, expected))
    assert handed.intent == found.intent
    observed = ObservedCluster(snapshot=on_node(unseen(), "cp1"), here="cp1")
    request, intent = stale_request(handed.saved, handed.request, handed.intent, observed)
    assert intent.accepted == ()
    assert not isinstance(request, DriftRequest)
    again = plan_change(unseen(), request, options=PlanOptions(first="cp1"))
    assert plan_document(again) == plan_document(found.plan)


def with_edits() -> ObservedCluster:
    """Return what the first node sees of a cluster whose API servers were edited by hand, as the volumes of cp2."""
    seen = edited(API_SERVER, with_flag("--profiling=false"), node="*", make=f2)
    found = edited(API_SERVER, with_volume, node="cp2", make=f2).node("cp2")
    assert found is not None
    nodes = [msgspec.structs.replace(each, manifests=found.manifests) if each.name == "cp2" else each
             for each in seen.nodes]  # fmt: skip
    mirrors: dict[str, dict[str, Json]] = {
        each.name: {name: read_yaml(text, source=name) for name, text in (each.manifests or {}).items()}
        for each in nodes
    }
    unseen_nodes = [
        msgspec.structs.replace(each, manifests=None, kubelet_config=None, kubelet_flags=None) for each in nodes
    ]
    cluster = msgspec.structs.replace(seen, nodes=unseen_nodes, members=None)
    files = ObservedFiles(manifests={name: text.encode() for name, text in (seen.nodes[0].manifests or {}).items()},
                          kubelet={CONFIG_FILE: (seen.nodes[0].kubelet_config or "").encode()})  # fmt: skip
    own = [with_files(each, files) if each.name == "cp1" else each for each in cluster.nodes]
    return ObservedCluster(
        snapshot=msgspec.structs.replace(cluster, nodes=own, members=f2().members), mirrors=mirrors, here="cp1"
    )


@pytest.mark.parametrize("policy", ["adopt", "overwrite"])
def test_what_becomes_of_hand_edits_is_handed_over_as_well(policy: Literal["adopt", "overwrite"]) -> None:
    """The coordinator sees what runs; the first node finds its own edits, or records those that were seen."""
    on_first = with_edits()
    elsewhere = replace(on_first, snapshot=from_elsewhere(on_first.snapshot), here="")
    asked: AskedChange = DriftRequest(policy=policy)
    request = resolved(asked, elsewhere)
    found = rollout(elsewhere.snapshot, request)
    handed_request = asked if policy == "overwrite" else request
    handed = read_handed(handed_change(found, handed_request, found.plan))
    again, _ = stale_request(handed.saved, handed.request, handed.intent, on_first)
    plan = plan_change(on_first.snapshot, resolved(again, on_first), options=PlanOptions(first="cp1"))
    assert [each.node for each in plan.nodes] == ([] if policy == "adopt" else ["cp1", "cp2", "cp3"])
    assert [each.name for each in plan.objects] == (["garboard-patches"] if policy == "adopt" else [])
    patched = {name for name, digest in found.revision.patch_sets.items() if digest}
    assert patched == ({"cp1", "cp2", "cp3"} if policy == "adopt" else set())


def test_what_takes_the_place_of_an_unfinished_change_says_so() -> None:
    found = rollout(unseen(), FLAG)
    for is_rollback in (True, False):
        handed = handed_change(found, FLAG, found.plan, replaces_unfinished=is_rollback)
        assert read_handed(handed).replaces_unfinished is is_rollback


def test_nodes_are_drained_where_a_coordinator_says_so_for_a_plan_that_was_saved_without() -> None:
    asked = sets("KubeletConfiguration:maxPods=250")
    found = rollout(unseen(), asked)
    draining = replace(found, intent=replace(found.intent, drains=True))
    handed = read_handed(handed_change(draining, asked, found.plan))
    observed = ObservedCluster(snapshot=on_node(unseen(), "cp1"), here="cp1")
    request, intent = stale_request(handed.saved, handed.request, handed.intent, observed)
    plan = plan_change(unseen(), resolved(request, observed), options=options_of(intent, "cp1"))
    phases = {each.node: [step.phase for step in each.steps] for each in plan.nodes}
    assert set(phases) == {each.name for each in unseen().nodes}
    assert all(each == ["drain", "kubelet-config", "gates", "drain"] for each in phases.values())


def test_what_moved_on_the_way_is_refused_with_who_wrote_it() -> None:
    found = rollout(unseen(), FLAG)
    handed = read_handed(handed_change(found, FLAG, found.plan))
    map_ = unseen().config_maps["kubelet-config"]
    text = map_.data["kubelet"].replace("rotateCertificates: true", "rotateCertificates: false")
    moved = msgspec.structs.replace(
        unseen(),
        config_maps={**unseen().config_maps, "kubelet-config": msgspec.structs.replace(map_, data={"kubelet": text})},
    )
    observed = ObservedCluster(
        snapshot=on_node(moved, "cp1"), last_writers={"kubelet-config": "kubectl-edit at noon", "kube-proxy": ""}
    )
    told = r"kube-system/kubelet-config has moved \(last written: kubelet-config by kubectl-edit at noon\)"
    with pytest.raises(ChangeStale, match=told) as refused:
        stale_request(handed.saved, handed.request, handed.intent, observed)
    assert (refused.value.error_class, refused.value.exit_code) == ("stale-plan", 16)


def test_nodes_are_told_in_the_order_of_the_plan_and_the_first_one_at_the_end_again() -> None:
    found = rollout(unseen(), sets("KubeletConfiguration:maxPods=250"), here="cp2")
    plan = coordinated_plan(found, b"{}")
    told = [(part.node, part.words[:2], part.stdin) for part in plan.parts if isinstance(part, NodePart)]
    assert told[0] == ("cp2", ("change", "apply"), b"{}")
    assert [node for node, _, _ in told] == ["cp2", "cp1", "cp3", "w1", "w2", "w3", "cp2"]
    assert {(words, stdin) for _, words, stdin in told[1:]} == {(("change", "node"), b"")}


def test_a_control_plane_that_comes_last_says_itself_that_all_is_done() -> None:
    plan = coordinated_plan(rollout(unseen(), FLAG), b"{}")
    assert [part.node for part in plan.parts if isinstance(part, NodePart)] == ["cp1", "cp2", "cp3"]


def test_it_begins_on_a_control_plane_that_has_something_to_do() -> None:
    """As one does that goes back from what cp2 alone has got."""
    of_all = rollout(unseen(), FLAG).plan
    of_one = replace(of_all, parts=tuple(each for each in of_all.parts if getattr(each, "node", "cp2") == "cp2"))
    assert [each.node for each in of_one.nodes] == ["cp2"]
    assert [begins_on(each, unseen(), "cp1") for each in (of_all, of_one)] == ["cp1", "cp2"]
    assert begins_on(replace(of_one, parts=()), unseen(), "cp1") == "cp1"


def test_a_change_of_one_node_is_told_to_that_alone() -> None:
    found = rollout(unseen(), FLAG)
    single = replace(found, plan=replace(found.plan, parts=found.plan.parts[:2]))
    assert [part.node for part in coordinated_plan(single, b"").parts if isinstance(part, NodePart)] == ["cp1"]


def test_codes_that_were_accepted_when_a_plan_was_saved_still_are() -> None:
    edit = sets("scheduler.extraArgs[no-such-flag]=1")
    plan = plan_change(unseen(), edit, ("unknown-flag",))
    saved = SavedPlan(plan_document(plan), "plan.json")
    observed = ObservedCluster(snapshot=on_node(unseen(), "cp1"))
    request, intent = stale_request(saved, None, ChangeIntent(accepted=("shrinks-capacity",)), observed)
    assert isinstance(request, RecordedState)
    assert intent.accepted == ("unknown-flag", "shrinks-capacity")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"plan": {}, "texts": {}, "observed": {}, "more": 1}', b"\xff",
                                  b'{"plan": {}, "texts": {}, "observed": {}, "patches": {"a": "%"}}'])  # fmt: skip
def test_what_is_no_change_of_a_coordinator_is_refused(data: bytes) -> None:
    with pytest.raises(BadDocument, match="holds no change of a coordinator"):
        read_handed(data)


def test_a_new_version_that_changes_nothing_has_no_parts() -> None:
    assert plan_change(unseen(), new_version()).parts == ()


def test_how_a_node_is_doing_makes_no_plan_stale() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    own = {"key": "example.com/dedicated", "effect": "NoSchedule"}

    def with_taints(*taints: dict[str, str]) -> ClusterSnapshot:
        nodes = [
            msgspec.structs.replace(each, settings=msgspec.structs.replace(each.settings, taints=[*taints]))
            for each in unseen().nodes
        ]
        return msgspec.structs.replace(unseen(), nodes=nodes)

    assert observations(with_taints(taint, own)) == observations(with_taints(own)) != observations(unseen())
