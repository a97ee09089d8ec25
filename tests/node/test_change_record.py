"""What is recorded of changes, read as an administrator and as the user of a kubelet; and what it refuses."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from garboard.change.outcomes import ChangeInProgress
from garboard.kube import Forbidden, KubeClient
from garboard.node.change_record import await_joining, read_own_record, read_record, refuse_while_changing
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import ChangeState, read_target
from garboard.retry import Clock
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
    await_joining(client, timeout_s=0.0)
    assert len(api.asked) == 3


@pytest.mark.parametrize("state", ["pending", "canary", "rolling"])
def test_an_unfinished_change_refuses_upgrades_and_holds_control_planes_up(
    api: FakeApi, client: KubeClient, state: ChangeState
) -> None:
    put(api, stored(state))
    with pytest.raises(ChangeInProgress, match="revision 1"):
        refuse_while_changing(client)
    with pytest.raises(ChangeInProgress, match=f"revision 1 of the cluster is {state}: no control plane joins"):
        await_joining(client, timeout_s=0.0)


def test_a_control_plane_joins_once_the_change_is_done(api: FakeApi, client: KubeClient) -> None:
    put(api, stored("rolling"))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            put(api, stored("committed"))

    assert await_joining(client, timeout_s=1800.0, clock=Clock(lambda: sum(slept), sleep))
    assert slept == [5.0, 5.0, 5.0]


def test_a_control_plane_does_not_wait_for_ever(api: FakeApi, client: KubeClient) -> None:
    put(api, stored("rolling"))
    slept: list[float] = []
    with pytest.raises(ChangeInProgress) as refused:
        await_joining(client, timeout_s=12.0, clock=Clock(lambda: sum(slept), slept.append))
    assert (refused.value.exit_code, sum(slept)) == (15, 12.0)


def test_what_waits_to_be_confirmed_is_not_waited_for(api: FakeApi, client: KubeClient) -> None:
    record = stored("rolling")
    assert record.target is not None
    target = msgspec.structs.replace(record.target, confirm_within_seconds=300)
    put(api, replace(record, target=target))
    with pytest.raises(ChangeInProgress, match="waits to be confirmed"):
        await_joining(client, timeout_s=1800.0, clock=Clock(lambda: 0.0, lambda _s: pytest.fail("it waited")))


@pytest.mark.parametrize("state", ["committed", "reverted"])
def test_one_that_has_ended_refuses_nobody(api: FakeApi, client: KubeClient, state: ChangeState) -> None:
    put(api, stored(state))
    refuse_while_changing(client)
    await_joining(client, timeout_s=0.0)


def test_who_may_not_read_the_target_joins(api: FakeApi, client: KubeClient) -> None:
    api.refuse("GET", f"{MAPS}/garboard-change", 403, "Forbidden", "no right")
    await_joining(client, timeout_s=0.0)
    api.refuse("GET", f"{MAPS}/garboard-change", 403, "Forbidden", "no right")
    with pytest.raises(Forbidden):
        refuse_while_changing(client)


def test_the_target_is_read_as_it_was_written() -> None:
    target = stored().target
    assert target is not None
    assert read_target(target.as_object().content) == target
