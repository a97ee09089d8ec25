"""`change resume` and `change unlock`: what was cut short goes on, or is got out of the way."""

from datetime import UTC, datetime

from garboard.change.outcomes import HAS_FOLLOW_UPS, IS_DONE, ChangeInProgress
from garboard.engine import DeleteObject
from garboard.errors import GarboardError, NotReady
from garboard.kube.leases import Lease
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.node.change_apply_status import settle, shown_left
from garboard.node.change_apply_via import abandon_open, coordinator_of, resume
from garboard.node.change_record import read_record
from garboard.node.coordinator import Coordinator
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.tokens import find_kubeconfig
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.via import Via
from garboard.node.workflow import LocalNode
from garboard.phases.control_plane_lease import LEASE

COMMAND = "change resume"
_NONE = Via.parse("false {node}")  # a coordinator that is asked for nothing but its records needs no command


def resume_change(local: LocalNode, via: str, kubeconfig: str | None) -> int:
    """Go on with what was cut short: the nodes that a coordinator was going through, or the part of this node."""
    admin = find_kubeconfig(kubeconfig)
    open_records = _open_records(coordinator_of(local, _NONE, admin))
    if open_records:
        if not via:
            raise NotReady(
                f"{open_records[-1]} was going through all nodes",
                hint="name the command that reaches them: garboard change resume --via 'ssh {node} sudo'",
            )
        resume(coordinator_of(local, Via.parse(via), admin), open_records[-1])
        local.reporter.report(f"[{COMMAND}] {open_records[-1]} is finished")
        return IS_DONE
    run = next((each for each in local.runs.open() if each.header.command.startswith("change")), None)
    if run is not None:
        options = RunOptions(command=COMMAND, undoes_on_failure=True)
        Transactions(local.runs, local.reporter).resume(options, run.header.run)
        local.reporter.report(f"[{COMMAND}] run {run.header.run} is finished")
    cluster = NodeCluster(local.machine, admin.path, "", report=local.reporter.report)
    settle(cluster, datetime.now(UTC))
    record = read_record(cluster)
    if not record.left:
        local.reporter.report(f"[{COMMAND}] nothing is left to do")
        return IS_DONE
    local.reporter.show(shown_left(record))
    return HAS_FOLLOW_UPS


def _open_records(coordinator: Coordinator) -> list[str]:
    return [each.name for each in coordinator.records() if each.is_open and each.command.startswith("change")]


def lease_holder(cluster: NodeCluster) -> str:
    """Return who holds the Lease of the control plane, or what somebody has left half done; empty if nobody."""
    found = cluster.find("Lease", KUBE_SYSTEM, LEASE)
    if found is None:
        return ""
    lease = Lease.read(found)
    left = ", ".join(map(str, lease.payloads))
    holder = lease.holder or "nobody"
    return f"{holder}, renewed {lease.renewed}" + (f"; left half done: {left}" if left else "")


def unlock(local: LocalNode, kubeconfig: str | None, *, is_asked: bool) -> int:
    """Break the Lease of the control plane, and close the records of coordinators of this machine."""
    admin = find_kubeconfig(kubeconfig)
    cluster = NodeCluster(local.machine, admin.path, "", report=local.reporter.report)
    holder = lease_holder(cluster)
    coordinator = coordinator_of(local, _NONE, admin)
    if not holder and not _open_records(coordinator):
        local.reporter.report("[change unlock] nobody holds the Lease of the control plane")
        return IS_DONE
    if local.runs.lock_holder():
        raise ChangeInProgress(f"{local.runs.lock_holder()} is at work on this node", hint="wait for it")
    local.reporter.report(f"[change unlock] the Lease {KUBE_SYSTEM}/{LEASE} is held by {holder or 'nobody'}")
    if is_asked:
        question = "[change unlock] Is that process gone for good, and no node in the middle of a change? [y/N]: "
        if local.reporter.ask(question).strip().lower() not in ("y", "yes"):
            raise GarboardError("the Lease was not broken", hint="nothing was changed; --yes does not ask")
    if holder:
        cluster.delete(
            DeleteObject(api_version="coordination.k8s.io/v1", kind="Lease", name=LEASE, namespace=KUBE_SYSTEM)
        )
    abandon_open(coordinator, local)
    local.reporter.report("[change unlock] the Lease is free")
    return IS_DONE
