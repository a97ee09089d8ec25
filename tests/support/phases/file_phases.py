"""The phases of init that write nothing but files, planned and carried out on a machine in memory."""

from garboard.engine import Executor, Plan
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT
from garboard.phases.patching import NodePatches
from garboard.pki.keys import SystemKeys
from tests.support.phases.machines import CONFIG, NOW, MemoryMachine, context_on

FILE_PHASES = tuple(
    each
    for each in select(INIT)
    if each.path.partition("/")[0] in ("certs", "kubeconfig", "etcd", "control-plane", "kubelet-start")
)


def plan_all(machine: MemoryMachine, text: str = CONFIG, patches: NodePatches | None = None) -> Plan:
    return plan_workflow(FILE_PHASES, context_on(machine, text, patches))


def apply(plan: Plan, machine: MemoryMachine) -> None:
    issuer = PkiIssuer(machine.folder, SystemKeys(), NOW)
    Executor(interpreters_over(files=machine, issuer=issuer, services=machine)).execute(plan)


def applied(text: str = CONFIG) -> MemoryMachine:
    """Return a machine on which all of them have been carried out."""
    machine = MemoryMachine(services=set())
    apply(plan_all(machine, text), machine)
    return machine
