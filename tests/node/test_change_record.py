"""What is recorded of changes, read as an administrator and as the user of a kubelet; and what it refuses."""

from dataclasses import replace
from typing import Any

import pytest

from garboard.change.outcomes import ChangeInProgress
from garboard.change.record import ChangeRecord
from garboard.change.revision import ChangeState, read_target
from garboard.kube import Forbidden, KubeClient
from garboard.node.change_record import read_own_record, read_record, refuse_joining, refuse_while_changing
from tests.support.change.rollouts import begun, reported, rollout
from tests.support.change.snapshots import f2
from tests.support.kube.api_server import FakeApi

MAPS, NODES = "/api/v1/namespaces/kube-system/configmaps", "/api/v1/nodes"


def stored(state: ChangeState = "rolling") -> ChangeRecord:
    record = begun(rollout(f2(), "scheduler.extraArgs[v]=1"), state)
    assert record.target is not None
    return reported(record, record.target, "failed", "cp2")


def put(api: FakeApi, record: ChangeRecord) -> None:
    """Have the API server show what is recorded."""
    assert record.target is not None
    target = record.target.as_object().content
    revisions: list[Any] = [each.as_object().content for each in record.revisions.values()]
    api.objects[f"{MAPS}/garboard-change"] = {
        **target,
        "metadata": {"name": "garboard-change", "resourceVersion": "41"},
    }
    for each in revisions:
        api.objects[f"{MAPS}/{each['metadata']['name']}"] = each
    api.objects[MAPS] = {"items": revisions, "metadata": {}}
    nodes = [
        {"metadata": {"name": name, "annotations": {"garboard.dev/change": str(report)}}}
        for name, report in record.reports.items()
    ]
    odd = [{"metadata": {"name": "w1"}}, {"metadata": {"name": "w2", "annotations": {"garboard.dev/change": "no"}}}]
    api.objects[NODES] = {"items": [*nodes, *odd], "metadata": {}}
    for name, report in record.reports.items():
        api.objects[f"{NODES}/{name}"] = {
            "metadata": {"name": name, "annotations": {"garboard.dev/change": str(report)}}
        }


def test_an_administrator_reads_all_of_it(api: FakeApi, client: KubeClient) -> None:
    record = stored()
    put(api, record)
    assert read_record(client) == record
    assert {method for method, _ in api.asked} == {"GET"}
    assert len(api.asked) == 3
    assert any("labelSelector=garboard.dev" in each for each in api.queries)


def test_a_node_reads_what_it_needs_by_name(api: FakeApi, client: KubeClient) -> None:
    record = stored()
    put(api, record)
    found = read_own_record(client, "cp2")
    assert found == replace(record, reports={"cp2": record.reports["cp2"]})
    assert not any(path in (MAPS, NODES) for _, path in api.asked), "a kubelet may not list"


def test_where_nothing_was_changed_there_is_nothing(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{NODES}/cp2"] = {"metadata": {"name": "cp2"}}
    assert read_own_record(client, "cp2") == ChangeRecord()
    refuse_while_changing(client)
    refuse_joining(client)
    assert len(api.asked) == 3


@pytest.mark.parametrize("state", ["pending", "canary", "rolling"])
def test_an_unfinished_change_refuses_upgrades_and_control_planes(
    api: FakeApi, client: KubeClient, state: ChangeState
) -> None:
    put(api, stored(state))
    for refuse in (refuse_while_changing, refuse_joining):
        with pytest.raises(ChangeInProgress, match="revision 1"):
            refuse(client)


@pytest.mark.parametrize("state", ["committed", "reverted"])
def test_one_that_has_ended_refuses_nobody(api: FakeApi, client: KubeClient, state: ChangeState) -> None:
    put(api, stored(state))
    refuse_while_changing(client)
    refuse_joining(client)


def test_who_may_not_read_the_target_joins(api: FakeApi, client: KubeClient) -> None:
    api.refuse("GET", f"{MAPS}/garboard-change", 403, "Forbidden", "no right")
    refuse_joining(client)
    api.refuse("GET", f"{MAPS}/garboard-change", 403, "Forbidden", "no right")
    with pytest.raises(Forbidden):
        refuse_while_changing(client)


def test_the_target_is_read_as_it_was_written() -> None:
    target = stored().target
    assert target is not None
    assert read_target(target.as_object().content) == target
