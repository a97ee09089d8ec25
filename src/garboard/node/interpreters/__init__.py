"""How each kind of action is carried out, over the edges: files, services, objects, members, containers, Leases.

What an edge must be able to do is a Protocol beside its interpreter. Planning, journaling and order are left to
`engine`; which edges there are is decided by `node.wiring`.
"""

from collections.abc import Callable

from garboard.engine import Interpreters
from garboard.node.interpreters.eviction import EvictionInterpreter, PodEvictor
from garboard.node.interpreters.files import FileInterpreter, FileWriter
from garboard.node.interpreters.learners import LearnerInterpreter
from garboard.node.interpreters.leases import LeaseControl, LeaseInterpreter
from garboard.node.interpreters.machine import (
    GateInterpreter,
    GateWaiter,
    IssueInterpreter,
    Issuer,
    LinkControl,
    LinkInterpreter,
    MessageDisplay,
    MessageInterpreter,
    ProbingWaiter,
    ServiceControl,
    ServiceInterpreter,
    TimerControl,
    TimerInterpreter,
    UnitFileControl,
    UnitFileInterpreter,
)
from garboard.node.interpreters.maintenance import EtcdMaintenance, MaintenanceInterpreter
from garboard.node.interpreters.members import MemberControl, MemberInterpreter
from garboard.node.interpreters.objects import ObjectInterpreter, ObjectWriter, Sealer
from garboard.node.interpreters.runtime import RuntimeControl, RuntimeInterpreter

__all__ = ["ProbingWaiter", "interpreters_over"]


def interpreters_over(
    *,
    files: FileWriter,
    issuer: Issuer | None = None,
    services: ServiceControl | None = None,
    timers: TimerControl | None = None,
    unit_files: UnitFileControl | None = None,
    links: LinkControl | None = None,
    objects: ObjectWriter | None = None,
    pods: PodEvictor | None = None,
    members: MemberControl | None = None,
    maintenance: EtcdMaintenance | None = None,
    is_serving: Callable[[str], bool] | None = None,
    is_learner: Callable[[str], bool] | None = None,
    runtime: RuntimeControl | None = None,
    leases: LeaseControl | None = None,
    lease_id: str = "",
    waiter: GateWaiter | None = None,
    display: MessageDisplay | None = None,
    sealer: Sealer | None = None,
) -> Interpreters:
    """Return the interpreters for the edges that are given; actions that need another edge cannot be carried out."""
    found = [
        FileInterpreter(files, waiter.is_open if waiter else None),
        IssueInterpreter(issuer, files) if issuer else None,
        ServiceInterpreter(services, files) if services else None,
        TimerInterpreter(timers) if timers else None,
        UnitFileInterpreter(unit_files) if unit_files else None,
        LinkInterpreter(links) if links else None,
        ObjectInterpreter(objects, files, sealer) if objects else None,
        EvictionInterpreter(pods) if pods else None,
        MemberInterpreter(members) if members else None,
        MaintenanceInterpreter(maintenance, files) if maintenance else None,
        LearnerInterpreter(files, runtime, is_serving, is_learner) if runtime and is_serving and is_learner else None,
        RuntimeInterpreter(runtime, files) if runtime else None,
        LeaseInterpreter(leases, lease_id) if leases else None,
        GateInterpreter(waiter) if waiter else None,
        MessageInterpreter(display) if display else None,
    ]
    interpreters = Interpreters()
    for each in found:
        if each is not None:
            each.add_to(interpreters)
    return interpreters
