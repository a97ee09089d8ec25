"""A kubelet that rotates its certificate, as a plan."""

import pytest

from garboard.engine import ControlService, Executor, Issue, Plan
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT, InitContext
from garboard.phases.issuing import RotationRequest
from garboard.pki.keys import SystemKeys
from garboard.pki.kubeconfig import read_kubeconfig
from tests.support.phases.file_phases import applied
from tests.support.phases.machines import CONFIG, NOW, MemoryMachine, context_on

PEM = "/var/lib/kubelet/pki/kubelet-client-current.pem"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"


def plan(context: InitContext, only: str) -> Plan:
    return plan_workflow(select(INIT, only=only), context)


def test_kubelet_conf_names_the_certificate_that_the_kubelet_renews() -> None:
    machine = applied()
    machine.files[PEM] = b"certificate and key"
    issue, restart = (step.action for step in plan(context_on(machine), "kubelet-finalize/all").steps)
    assert isinstance(issue, Issue)
    assert restart == ControlService(service="kubelet", verb="restart", is_needed=False)
    before = read_kubeconfig(machine.files[KUBELET_CONF], KUBELET_CONF)
    issuer = PkiIssuer(machine.folder, SystemKeys(), NOW)
    Executor(interpreters_over(files=machine, issuer=issuer, services=machine)).execute(
        plan(context_on(machine), "kubelet-finalize/all")
    )
    after = read_kubeconfig(machine.files[KUBELET_CONF], KUBELET_CONF)
    assert after.user == {"client-certificate": PEM, "client-key": PEM}
    assert after.cluster == before.cluster
    assert plan(context_on(machine), "kubelet-finalize/all").steps == (), "once is enough"


def test_kubelet_that_stored_no_certificate_keeps_its_kubeconfig() -> None:
    machine = applied()
    assert plan(context_on(machine), "kubelet-finalize/all").steps == ()
    request = RotationRequest(path=KUBELET_CONF, node_name="node-1", pem=PEM)
    assert request.content(machine.read) == machine.files[KUBELET_CONF]


@pytest.mark.parametrize(("value", "is_planned"), [("true", True), ("false", False)])
def test_rotation_in_a_whole_run_follows_the_configuration(value: str, is_planned: bool) -> None:
    args = "nodeRegistration: {kubeletExtraArgs: [{name: rotate-certificates, value: '" + value + "'}]}"
    text = CONFIG.replace("localAPIEndpoint", f"{args}\nlocalAPIEndpoint")
    planned = plan_workflow(select(INIT), context_on(MemoryMachine(services=set()), text))
    names = [step.action.name for step in planned.steps if isinstance(step.action, Issue)]
    assert ("kubeconfig of a kubelet that rotates its certificate" in names) is is_planned
