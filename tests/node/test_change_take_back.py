"""The real plans of a change on a control plane in memory, unconfirmed, and taken back with and without a cluster."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from garboard.change.confirming import ConfirmTimes, refuse_unconfirmable
from garboard.change.outcomes import ChangeBlocked
from garboard.change.request import NewPatchSet
from garboard.change.rollout import first_plan
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import Plan, with_preconditions
from garboard.engine.pre_image import digest_of
from garboard.errors import ClusterUnreachable
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient
from garboard.model.node import ApiEndpoint
from garboard.model.paths import ADMIN_CONF, manifest_path
from garboard.node.change_apply_run import ChangedNode, carry_out_on_node, run_options
from garboard.node.runs import Runs
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode
from garboard.phases.node.records import PatchSetContent
from garboard.phases.upgrade.context import ThisNode
from tests.support.change.nodes_in_change import FLAG, LIMIT, NodeInChange, target_of
from tests.support.change.rollouts import rollout
from tests.support.change.snapshots import f2
from tests.support.kube.api_server import FakeApi
from tests.support.node.reporters import MemoryReporter

UNTIL = datetime(2031, 5, 4, 3, 0, tzinfo=UTC)
API = "apiServer.extraArgs[event-ttl]=2h"


@pytest.fixture
def cp1(api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch, state_dir: object) -> NodeInChange:
    return NodeInChange(f2(is_seen=True), "cp1", api, client, monkeypatch)


class Silent:
    """A client whose API server has gone, and that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise ClusterUnreachable(f"{name}: the API server does not answer")


def carry_out(node: NodeInChange, plan: Plan) -> Transactions:
    """Do the part of the first node, which waits to be confirmed from then on."""
    node.wire()
    files: Any = node.node.machine
    local = LocalNode(NodeMachine(None), MemoryReporter())
    changed = ChangedNode(local=local, this=ThisNode("cp1", "", ApiEndpoint(), {"a": b""}), kubeconfig=ADMIN_CONF)
    seen = with_preconditions(plan, lambda path: "" if (data := files.read(path)) is None else digest_of(data))
    carry_out_on_node(
        seen, changed, RunSettings(node_name="cp1"), replace(run_options("change apply"), confirm_by=UNTIL)
    )
    return Transactions(Runs(files), local.reporter)


def take_back(node: NodeInChange, transactions: Transactions, *, reaches_cluster: bool) -> frozenset[str]:
    (run,) = transactions.runs.unconfirmed()
    assert run.record.until == UNTIL
    if not reaches_cluster:
        silent: Any = Silent()
        node.client, node.leases.holder = silent, "nobody may ask"
        node.wire()
    return transactions.take_back(RunOptions(command="undo"), run.header.run, reaches_cluster=reaches_cluster)


@pytest.mark.parametrize("reaches_cluster", [True, False])
@pytest.mark.parametrize("edit", [FLAG, API, LIMIT])
def test_node_goes_back_and_what_nodes_share_stays(cp1: NodeInChange, edit: str, reaches_cluster: bool) -> None:
    before = cp1.files()
    transactions = carry_out(cp1, first_plan(rollout(cp1.snapshot, edit)))
    assert cp1.files() != before
    maps = {name: cp1.stored(name) for name in ("kubeadm-config", "kubelet-config", "garboard-change")}
    assert take_back(cp1, transactions, reaches_cluster=reaches_cluster) == frozenset()
    assert cp1.files() == before
    assert {name: cp1.stored(name) for name in maps} == maps
    assert '"state":"rolling"' in target_of(cp1)
    assert [each.record.state for each in transactions.runs.all() if not each.header.undoes] == ["reverted"]
    assert cp1.node.traps == []
    if edit == LIMIT:
        assert cp1.node.limits == ["250", ""], "the kubelet runs with what it had"
    else:
        assert all(pod.is_running for pod in cp1.node.pods.values())


def test_manifest_that_was_edited_since_stays_as_it_is(cp1: NodeInChange) -> None:
    path = manifest_path("kube-scheduler")
    transactions = carry_out(cp1, first_plan(rollout(cp1.snapshot, FLAG)))
    mine = cp1.files()[path].replace(b"--v=9", b"--v=7")
    cp1.node.machine.files[path] = (0o600, mine)
    cp1.node.sleep(60)
    assert take_back(cp1, transactions, reaches_cluster=False) == frozenset([path])
    assert cp1.files()[path] == mine


def confirmed_within(snapshot: ClusterSnapshot, **times: int) -> Any:
    found = rollout(snapshot, FLAG)
    return replace(found, intent=replace(found.intent, confirm=ConfirmTimes(**times)))


def test_target_says_until_when_nodes_are_armed(cp1: NodeInChange) -> None:
    found = confirmed_within(cp1.snapshot, confirm_s=300)
    target = found.target(found.revision)
    budget_s = len(target.nodes) * (300 + 120)
    assert (target.confirm_within_seconds, target.revert_slot_seconds) == (300, 120)
    seconds = (datetime.fromisoformat(target.armed_until) - found.now).total_seconds()
    assert seconds == budget_s + 300
    given = confirmed_within(cp1.snapshot, confirm_s=300, rollout_s=60, slot_s=20)
    target = given.target(given.revision)
    assert (datetime.fromisoformat(target.armed_until) - given.now).total_seconds() == 360
    assert target.revert_slot_seconds == 20
    unconfirmed = confirmed_within(cp1.snapshot)
    assert msgspec.to_builtins(unconfirmed.target(unconfirmed.revision)).get("armedUntil") is None


def test_change_of_kube_proxy_or_of_patches_does_not_wait_to_be_confirmed(cp1: NodeInChange) -> None:
    refuse_unconfirmable(rollout(cp1.snapshot, FLAG).plan)
    refuse_unconfirmable(rollout(cp1.snapshot, LIMIT).plan)
    with pytest.raises(ChangeBlocked, match="kube-proxy") as caught:
        refuse_unconfirmable(rollout(cp1.snapshot, "KubeProxyConfiguration:mode=nftables").plan)
    assert caught.value.exit_code == 11
    patches = NewPatchSet(content=PatchSetContent({"kube-scheduler.yaml": b"metadata: {labels: {owner: us}}\n"}))
    with pytest.raises(ChangeBlocked, match="garboard-patches"):
        refuse_unconfirmable(rollout(cp1.snapshot, patches).plan)
