"""A saved plan asks for what it was made for, and is refused once what it was made from has moved."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.change.document import plan_document
from garboard.change.plan import ChangePlan
from garboard.change.request import ChangeRequest, NewPatchSet
from garboard.change.saved_plan import SavedPlan, patched, read_plan
from garboard.change.snapshot import ClusterSnapshot
from garboard.errors import BadDocument, StalePlan
from garboard.patches.unified import TextDiff
from garboard.phases.node.records import PatchSetContent
from tests.support.change.requests import new_version, patch, planned, sets
from tests.support.change.snapshots import MadeUpCluster, f1, f2

_TEXTS = st.lists(st.sampled_from(["a", "b", "- c", "+ d", "--- e", "+++ f", "@@ -1 +1 @@", ""]), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(_TEXTS, _TEXTS)
def test_a_diff_makes_of_a_text_what_it_was_made_of(before: str, after: str) -> None:
    diff = "".join(TextDiff.of(before, after, ("x", "x")).lines)
    assert patched(before, diff) == after


@given(_TEXTS, _TEXTS, _TEXTS)
def test_a_diff_of_a_text_that_does_not_begin_as_the_other_is_refused(before: str, after: str, other: str) -> None:
    diff = "".join(TextDiff.of(before, after, ("x", "x"), context=100).lines)
    assert before == after or (patched(other, diff) is None) == (not other.startswith(before))


def saved(plan: ChangePlan) -> SavedPlan:
    return read_plan(json.dumps(plan_document(plan)).encode(), source="plan.json")


@pytest.mark.parametrize(
    "request_",
    [
        sets("apiServer.extraArgs[profiling]=false"),
        sets("KubeletConfiguration:maxPods=250", "scheduler.extraArgs[v]=1", "apiServer.certSANs+=api.example.com"),
        patch('{"kind": "KubeProxyConfiguration", "mode": "nftables"}'),
        sets("imageRepository=mirror.example.com/k8s"),
    ],
)
def test_it_asks_for_what_it_was_made_for(request_: ChangeRequest) -> None:
    snapshot = f2()
    plan = planned(snapshot, request_)
    found = saved(plan)
    again = planned(snapshot, found.request(snapshot), *found.accepted)
    assert plan_document(again) == plan_document(plan)
    found.refuse_stale([again])


@pytest.mark.parametrize(
    ("edit", "accepted"),
    [
        ("KubeletConfiguration:topologyManagerPolicy=best-effort", "drain-needed"),
        ("scheduler.extraArgs[no-such-flag]=1", "unknown-flag"),
    ],
)
def test_what_had_been_accepted_still_is_and_nothing_else(edit: str, accepted: str) -> None:
    assert saved(planned(f1(), edit, accepted)).accepted == (accepted,)
    assert saved(planned(f1(), edit)).accepted == ()


def edited(snapshot: ClusterSnapshot, name: str, text: str) -> ClusterSnapshot:
    found = snapshot.config_maps[name]
    key = next(iter(found.data))
    maps = {**snapshot.config_maps, name: msgspec.structs.replace(found, data={**found.data, key: text})}
    return msgspec.structs.replace(snapshot, config_maps=maps)


def test_a_config_map_that_was_edited_meanwhile_makes_it_stale() -> None:
    snapshot = f1()
    found = saved(planned(snapshot, "KubeletConfiguration:maxPods=250"))
    other = (snapshot.stored_text("kubelet-config") or "").replace("cgroupDriver: systemd", "cgroupDriver: cgroupfs")
    now = edited(snapshot, "kubelet-config", other)
    assert now != snapshot
    with pytest.raises(StalePlan):
        found.refuse_stale([planned(now, found.request(now))])


def test_a_config_map_that_it_does_not_change_counts_too() -> None:
    snapshot = f1()
    found = saved(planned(snapshot, "KubeletConfiguration:maxPods=250"))
    text = (snapshot.stored_text("kubeadm-config") or "").replace("clusterName: kubernetes", "clusterName: blue")
    now = edited(snapshot, "kubeadm-config", text)
    with pytest.raises(StalePlan, match="what it was made from has moved"):
        found.refuse_stale([planned(now, found.request(now))])


def test_a_document_that_somebody_has_edited_is_not_carried_out() -> None:
    snapshot = f1()
    document = plan_document(planned(snapshot, "KubeletConfiguration:maxPods=250"))
    nodes = document["nodes"]
    assert isinstance(nodes, list)
    found = SavedPlan({**document, "nodes": nodes[:1]})
    with pytest.raises(StalePlan, match="another one would be made now"):
        found.refuse_stale([planned(snapshot, found.request(snapshot))])


def test_a_plan_that_hides_a_password_or_patches_is_refused() -> None:
    snapshot = f1()
    secret = planned(snapshot, "apiServer.extraArgs[service-account-jwks-uri]=https://user:secret@example.com/keys")
    with pytest.raises(BadDocument, match="hides a password"):
        saved(secret).request(snapshot)
    patches = planned(snapshot, NewPatchSet(content=PatchSetContent({"etcd.yaml": b"metadata: {labels: {a: b}}"})))
    with pytest.raises(BadDocument, match="a plan holds no patches"):
        saved(patches).request(snapshot)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"apiVersion": "change.garboard.dev/v1alpha1", "kind": "ClusterSnapshot"}',
     b'{"apiVersion": "change.garboard.dev/v1alpha1", "kind": "ChangePlan"}', b"\xff", b"[" * 100_000,
     b'{"apiVersion": "change.garboard.dev/v1alpha1", "kind": "ChangePlan", "attributes": [1], "nodes": []}'],
)  # fmt: skip
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(BadDocument) as refused:
        read_plan(data, source="plan.json")
    assert refused.value.error_class == "bad-plan"


def test_it_begins_where_it_was_planned_to_begin() -> None:
    assert saved(planned(f2(), "scheduler.extraArgs[v]=1")).first == "cp1"
    assert saved(planned(MadeUpCluster().snapshot(), new_version())).first == ""
