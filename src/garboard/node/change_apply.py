"""`change apply` and `change rollback` on a control plane: this node goes first, then what nodes share is written."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from garboard.change.confirming import refuse_unconfirmable
from garboard.change.drift_request import AskedChange
from garboard.change.following import parts_of
from garboard.change.node_work import PlanOptions
from garboard.change.outcomes import HAS_FOLLOW_UPS, IS_DONE, ChangeStale
from garboard.change.plan import ChangePlan, NodeChange
from garboard.change.planning import plan_change
from garboard.change.record import refuse_unfinished
from garboard.change.request import ChangeRequest
from garboard.change.rollout import ChangeIntent, Rollout, first_plan, refuse_blocked
from garboard.change.saved_plan import SavedPlan
from garboard.change.show import plan_text
from garboard.change.snapshot import ClusterSnapshot, NodeSettings, SnapshotNode
from garboard.engine import Plan
from garboard.errors import BadUsage, GarboardError, StalePlan
from garboard.node.change_apply_run import (
    ChangedNode,
    carry_out_on_node,
    changed_node,
    prepared,
    reserved_for_change,
    run_options,
)
from garboard.node.change_apply_status import settle, shown_left, wait_for_nodes
from garboard.node.change_arming import armed, settle_arming
from garboard.node.change_drift import observe_for, resolved
from garboard.node.change_observe import ObservedCluster
from garboard.node.change_record import read_record
from garboard.node.change_signing import refuse_unsigned, wanted_signatures
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.workflow import LocalNode
from garboard.node.workflow import plan_text as steps_text
from garboard.phases.change_record import ChangeRecord
from garboard.phases.control_plane_lease import ACQUIRED_WITHIN_S
from garboard.values import dataclass

_CRI_SOCKET = "kubeadm.alpha.kubernetes.io/cri-socket"
# Who finds the Lease held is told so at once, unless they said that they wait.
_LEASE_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """What is to be changed: a request, a plan that was saved, or what a revision has recorded; and how."""

    request: AskedChange | None = None
    saved: SavedPlan | None = None
    find_request: Callable[[ChangeRecord], ChangeRequest] | None = None
    command: str = "change apply"
    intent: ChangeIntent = ChangeIntent()
    kubeconfig: str | None = None
    is_asked: bool = True
    is_shown: bool = False
    waits: bool = False
    lease: LeaseToken | None = None
    replaces_unfinished: bool = False  # a rollback takes back what is under way
    only_requests: bool = False  # to have certificates signed elsewhere, and nothing else


def apply_change(asked: ApplyRequest, local: LocalNode) -> int:
    """Plan what is asked for, carry out the part of this node, and return the exit code: 12 if others are left."""
    node = changed_node(local, asked.kubeconfig)
    if not node.is_control_plane:
        raise BadUsage(
            f"{asked.command} runs on a control-plane node",
            hint="elsewhere: --via 'ssh {node} sudo' goes through all nodes; on a worker, garboard change node",
        )
    if asked.is_shown:
        rollout = _planned(asked, node)
        local.reporter.show(_shown(rollout, node))
        return IS_DONE
    settle_arming(local)
    with reserved_for_change(local, asked.command):
        local.refuse_open_run()
        rollout = _planned(asked, node)
        if is_needless(asked, rollout):
            local.reporter.report(f"[{asked.command}] nothing to do: the cluster is as it is asked for")
            return IS_DONE
        parts = parts_of(rollout.plan, node.name)
        if asked.only_requests:
            return _write_requests(parts, local)
        confirm_plan(asked, rollout, local)
        refuse_unsigned(parts, local.machine, local.reporter)
        plan = prepared(_steps(asked, rollout), node, parts)
        settings = node.settings(rollout.snapshot, asked.lease)
        with armed(local, rollout.target(rollout.revision), node.name, rollout.snapshot, parts) as confirm_by:
            carry_out_on_node(plan, node, settings, replace(run_options(asked.command), confirm_by=confirm_by))
    return _end(asked, rollout, node)


def _write_requests(parts: tuple[NodeChange, ...], local: LocalNode) -> int:
    """Write what has to be signed elsewhere for this node, and say whether all of it is."""
    if not wanted_signatures(parts):
        local.reporter.report("[change apply] no certificate of this node has to be signed elsewhere")
        return IS_DONE
    refuse_unsigned(parts, local.machine, local.reporter)
    local.reporter.report("[change apply] all certificates of this node are signed")
    return IS_DONE


def is_needless(asked: ApplyRequest, rollout: Rollout) -> bool:
    """Whether nothing is to do; that something under way is given up has to be recorded, even if no file changes."""
    return rollout.plan.verdict == "none" and not (asked.replaces_unfinished and not rollout.record.is_rolled_out)


def _planned(asked: ApplyRequest, node: ChangedNode) -> Rollout:
    """Look at the cluster, and return what would be done; whatever stands against it is refused."""
    record = read_record(node.cluster)
    if not asked.replaces_unfinished or record.is_beginning:
        refuse_unfinished(record)
    request = asked.find_request(record) if asked.find_request else asked.request
    observed = observe_for(request, node.kubeconfig, saved=asked.saved)
    node.local.warn(observed.notes)
    snapshot, intent = observed.snapshot, asked.intent
    if asked.saved is not None:
        _refuse_elsewhere(asked.saved, observed.snapshot, node.name)
        request, intent = stale_request(asked.saved, asked.request, intent, observed)
    assert request is not None, "a command says what it asks for"
    plan = plan_change(snapshot, resolved(request, observed), options=options_of(intent, node.name))
    node.local.warn(plan.warnings)
    if plan.verdict != "none":
        refuse_blocked(plan)
    if intent.confirm.confirm_s:
        refuse_unconfirmable(plan)
    return Rollout(plan=plan, snapshot=snapshot, here=node.name, intent=intent, now=datetime.now(UTC), record=record)


def _refuse_elsewhere(saved: SavedPlan, snapshot: ClusterSnapshot, here: str) -> None:
    """Refuse a saved plan that begins on another control plane."""
    known = snapshot.node(saved.first)
    if known is not None and known.is_control_plane and saved.first != here:
        raise BadUsage(
            f"the plan begins on {saved.first}, and this is {here}", hint=f"apply it on {saved.first}, or with --via"
        )


def stale_request(
    saved: SavedPlan, given: AskedChange | None, intent: ChangeIntent, observed: ObservedCluster
) -> tuple[AskedChange, ChangeIntent]:
    """Return what a saved plan asks for, unless what it was made from has moved; `given` says it in other words."""
    accepted = tuple(dict.fromkeys((*saved.accepted, *intent.accepted)))
    try:
        request = given or saved.correction or saved.request(observed.snapshot)
        views = (observed.snapshot, from_elsewhere(observed.snapshot))
        again = replace(intent, accepted=accepted)
        saved.refuse_stale([_again(each, resolved(request, observed, each), saved, again) for each in views])
    except StalePlan as error:
        raise ChangeStale(f"{error.message}{_last_writers(observed)}", hint=error.hint) from error
    return request, replace(intent, accepted=accepted)


def options_of(intent: ChangeIntent, first: str) -> PlanOptions:
    return PlanOptions(accepted=intent.accepted, first=first, drains=intent.drains, drift=intent.drift)


def _again(snapshot: ClusterSnapshot, request: ChangeRequest, saved: SavedPlan, intent: ChangeIntent) -> ChangePlan:
    # A plan is saved before anybody says that all nodes are drained.
    return plan_change(snapshot, request, options=options_of(replace(intent, drains=False), saved.first))


def from_elsewhere(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return a snapshot as it is made where no file of a node is seen, and etcd is not asked."""
    unseen = dict.fromkeys(
        ("manifests", "kubelet_config", "kubelet_flags", "instance_config", "kubeconfigs", "certificates",
         "host_paths", "ca_directories")
    )  # fmt: skip
    nodes = [
        each if each.kubelet_config is None else msgspec.structs.replace(each, settings=_settings(each), **unseen)
        for each in snapshot.nodes
    ]
    return msgspec.structs.replace(snapshot, nodes=nodes, members=None)


def _settings(node: SnapshotNode) -> NodeSettings:
    """Return what the API shows of the settings of a node: its socket only where kubeadm has noted that."""
    return msgspec.structs.replace(node.settings, cri_socket=node.annotations.get(_CRI_SOCKET, ""))


def _last_writers(observed: ObservedCluster) -> str:
    told = [f"{name} by {writer}" for name, writer in observed.last_writers.items() if writer]
    return f" (last written: {', '.join(told)})" if told else ""


def _steps(asked: ApplyRequest, rollout: Rollout) -> Plan:
    return first_plan(rollout, lease_within_s=ACQUIRED_WITHIN_S if asked.waits else _LEASE_WITHIN_S)


def _shown(rollout: Rollout, node: ChangedNode) -> str:
    text = plan_text(rollout.plan)
    if rollout.plan.verdict == "none":
        return text
    plan = prepared(first_plan(rollout), node, parts_of(rollout.plan, node.name))
    return f"{text}\nSteps on {node.name}, which goes first:\n\n{steps_text(plan, 'text')}"


def confirm_plan(asked: ApplyRequest, rollout: Rollout, local: LocalNode) -> None:
    """Show the plan, and ask unless that was said to be needless."""
    local.reporter.report(plan_text(rollout.plan).rstrip("\n"))
    if not asked.is_asked:
        return
    answer = local.reporter.ask(f"[{asked.command}] Are you sure you want to proceed? [y/N]: ")
    if answer.strip().lower() not in ("y", "yes"):
        raise GarboardError("the change was not confirmed", hint="nothing was changed; --yes does not ask")


def _end(asked: ApplyRequest, rollout: Rollout, node: ChangedNode) -> int:
    """Say what is left to do, or wait for it; a coordinator goes on by itself."""
    number = rollout.revision.number
    done = f"[{asked.command}] revision {number} is done on {node.name}"
    if rollout.intent.confirm.confirm_s:
        node.local.reporter.report(f"[{asked.command}] it is taken back unless garboard change confirm keeps it")
    if not rollout.others:
        node.local.reporter.report(f"{done}, and nothing is left to do")
        return IS_DONE
    node.local.reporter.report(done)
    if asked.lease is not None:
        return IS_DONE
    if asked.waits:
        wait_for_nodes(node.cluster, node.local.reporter)
        settle(node.cluster, datetime.now(UTC))
        node.local.reporter.report(f"[{asked.command}] revision {number} is done on all nodes")
        return IS_DONE
    node.local.reporter.show(shown_left(read_record(node.cluster)))
    return HAS_FOLLOW_UPS
