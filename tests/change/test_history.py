"""Revisions are told with who, when and why, compared with each other, and asked for again."""

from dataclasses import replace

import msgspec
import pytest
from msgspec.structs import replace as replace_in

from garboard.change.history import NO_REVISIONS, asked_back, compared, history_document, history_text
from garboard.change.patch_sets import PatchSets
from garboard.errors import BadUsage
from garboard.phases.change_record import ChangeRecord
from tests.support.change.rollouts import begun, rollout
from tests.support.change.snapshots import f1, f2

RECORD = begun(rollout(f1(), "scheduler.extraArgs[v]=1"), "committed")


def test_the_newest_comes_first_and_the_current_one_is_marked() -> None:
    lines = history_text(RECORD).splitlines()
    assert [line.split()[:2] for line in lines] == [["*", "1"], ["0", "2026-11-19T12:00:00Z"]]
    assert "alice" in lines[0]
    assert "why (what)" in lines[0]
    document = history_document(RECORD)
    revisions = document["revisions"]
    assert isinstance(revisions, list)
    newest = revisions[0]
    assert isinstance(newest, dict)
    assert (document["current"], newest["revision"], newest["parent"], newest["message"]) == (1, 1, 0, "why")


def test_without_any_revision_there_is_no_history() -> None:
    assert history_text(ChangeRecord()) == NO_REVISIONS
    assert history_document(ChangeRecord()) == {"current": None, "revisions": []}


def test_any_two_revisions_are_compared() -> None:
    _, forwards = compared(RECORD, 0, 1)
    _, backwards = compared(RECORD, 1, 0)
    assert "+  - name: v" in forwards
    assert "-  - name: v" in backwards
    document, same = compared(RECORD, 1, 1)
    assert "they are the same" in same
    assert isinstance(document, dict)
    assert document["diffs"] == []


def test_of_one_revision_it_is_told_what_it_changed() -> None:
    assert compared(RECORD, 1, None)[1] == compared(RECORD, 0, 1)[1]
    assert "they are the same" in compared(RECORD, 0, None)[1], "nothing was before the first"


def test_passwords_are_hidden_and_patch_sets_are_told_by_their_digests() -> None:
    secret = msgspec.structs.replace(
        RECORD.require(1), number=2, documents={"kube-proxy": "url: https://user:pass@example.com\n"},
        patch_sets={"cp1": "ab" * 32},
    )  # fmt: skip
    record = replace(RECORD, revisions={**RECORD.revisions, 2: secret})
    _, text = compared(record, 1, 2)
    assert "pass@" not in text
    assert "+" + "ab" * 32 in text


def test_a_node_that_a_revision_does_not_name_keeps_its_patches_on_the_way_back() -> None:
    """Such as one that joined a cluster whose first revision is that of init."""
    digest = "ab" * 32
    nodes = [replace_in(each, patch_set="" if each.name == "cp1" else digest) for each in f2().nodes]
    joined = replace_in(f2(), nodes=nodes, patch_sets={digest: {"etcd.yaml": "{}\n"}})
    made = replace_in(RECORD.require(0), patch_sets={"cp1": "", "cp3": ""})
    asked = asked_back(replace(RECORD, revisions={**RECORD.revisions, 0: made}), 0)
    found = PatchSets.of(joined, None, asked.patch_sets)
    assert [found.of_node(node) for node in joined.control_planes] == [("", ""), (digest, digest), (digest, "")]


def test_a_change_names_the_nodes_without_patches_too() -> None:
    assert RECORD.require(1).patch_sets == dict.fromkeys((each.name for each in f1().nodes), "")
    assert "patches/" not in compared(RECORD, 0, 1)[1]


def test_what_is_not_kept_cannot_be_asked_for() -> None:
    with pytest.raises(BadUsage, match="keeps no revision 7"):
        asked_back(RECORD, 7)
    with pytest.raises(BadUsage, match="keeps no revision 7"):
        compared(RECORD, 7, None)


def test_a_version_of_kubernetes_is_never_crossed() -> None:
    older = msgspec.structs.replace(RECORD.require(0), kubernetes_version="v1.36.4")
    record = replace(RECORD, revisions={**RECORD.revisions, 0: older})
    with pytest.raises(BadUsage, match=r"revision 0 is of Kubernetes v1\.36\.4, and the cluster has v1\.37"):
        asked_back(record, 0)
    assert asked_back(RECORD, 0).texts["ClusterConfiguration"] == RECORD.require(0).documents["kubeadm-config"]
