"""Phases that work on a running control plane, as plans."""

from dataclasses import replace

import pytest

from garboard.engine import AwaitGate, ControlService, Executor, Hands, Issue, PatchObject, Plan, PutObject, Tell
from garboard.kube.merging import unnamed_owners
from garboard.phases import plan_workflow, select
from garboard.phases.init.context import InitContext
from garboard.phases.init.next_steps import with_pins
from garboard.phases.init.tree import INIT
from garboard.phases.issuer import PkiIssuer
from garboard.phases.issuing import RotationRequest
from garboard.pki.keys import SystemKeys
from garboard.pki.kubeconfig import read_kubeconfig
from tests.phases.init.test_plans import applied
from tests.phases.machines import CONFIG, NOW, MemoryMachine, context_on

KEY = "00" * 32
PEM = "/var/lib/kubelet/pki/kubelet-client-current.pem"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
SHARED = CONFIG.replace(
    "kind: ClusterConfiguration", "kind: ClusterConfiguration\ncontrolPlaneEndpoint: api.example.com:7443"
)


def plan(context: InitContext, only: str) -> Plan:
    return plan_workflow(select(INIT, only=only), context)


def whole(context: InitContext) -> Plan:
    return plan_workflow(select(INIT), context)


def test_waiting_is_for_the_kubelet_and_then_for_each_component() -> None:
    steps = plan(context_on(MemoryMachine()), "wait-control-plane").steps
    gates = [step.action.gate.name for step in steps if isinstance(step.action, AwaitGate)]
    assert gates == [
        "a healthy kubelet", "a healthy kube-apiserver", "a healthy kube-controller-manager", "a healthy kube-scheduler"
    ]  # fmt: skip


def test_timeouts_are_those_of_the_configuration() -> None:
    timeouts = "timeouts: {kubeletHealthCheck: 7s, controlPlaneComponentHealthCheck: 9s}"
    text = CONFIG.replace("localAPIEndpoint", f"{timeouts}\nlocalAPIEndpoint")
    steps = plan(context_on(MemoryMachine(), text), "wait-control-plane").steps
    assert [step.action.gate.timeout_s for step in steps if isinstance(step.action, AwaitGate)] == [7, 9, 9, 9]


def test_node_is_marked_once_it_is_there_and_keeps_other_taints() -> None:
    wait, patch = (step.action for step in plan(context_on(MemoryMachine()), "mark-control-plane").steps)
    assert isinstance(wait, AwaitGate)
    assert isinstance(patch, PatchObject)
    assert wait.gate.name == "Node node-1 in the cluster"
    assert patch.content == {
        "metadata": {
            "labels": {
                "node-role.kubernetes.io/control-plane": "",
                "node.kubernetes.io/exclude-from-external-load-balancers": "",
            }
        },
        "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
    }
    assert patch.united == (("spec", "taints"),)


def test_no_taints_leave_those_that_are_there_alone() -> None:
    text = CONFIG.replace("localAPIEndpoint", "nodeRegistration: {taints: []}\nlocalAPIEndpoint")
    patch = plan(context_on(MemoryMachine(), text), "mark-control-plane").steps[-1].action
    assert isinstance(patch, PatchObject)
    assert "spec" not in str(patch.content)
    assert patch.united == ()


def test_certificates_are_shared_only_when_asked_for() -> None:
    planned = plan(context_on(MemoryMachine()), "upload-certs")
    assert planned.steps == ()
    assert [note.text for note in planned.notes] == ["Skipping phase. Please see --upload-certs"]


def sharing(text: str = CONFIG, *, shows_join_command: bool = False, prints_certificate_key: bool = True) -> Plan:
    context = replace(
        context_on(MemoryMachine(), text),
        uploads_certs=True,
        certificate_key=KEY,
        shows_join_command=shows_join_command,
        prints_certificate_key=prints_certificate_key,
    )
    return plan(context, "upload-certs")


def test_shared_files_are_sealed_when_they_are_there_and_owned_by_a_token_that_ends() -> None:
    token, secret, *rbac = [step.action for step in sharing().steps if isinstance(step.action, PutObject)]
    assert token.name.startswith("bootstrap-token-")
    assert isinstance(secret.content, dict)
    assert [each.path for each in secret.fillings] == [
        f"/etc/kubernetes/pki/{name}"
        for name in ("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key", "etcd/ca.crt",
                     "etcd/ca.key")
    ]  # fmt: skip
    assert all(each.key == bytes(32) and not each.is_needed for each in secret.fillings)
    assert "etcd-ca.key" in str(secret.content["data"])
    (owner,) = unnamed_owners(secret.content)
    assert owner["name"] == token.name
    assert [each.kind for each in rbac] == ["Role", "RoleBinding"]


def test_the_key_is_in_no_printed_plan_and_no_repr() -> None:
    planned = sharing()
    assert KEY not in repr(planned)
    assert "\\x00\\x00\\x00" not in repr(planned)


def test_the_key_is_shown_once_and_not_at_all_if_that_was_asked() -> None:
    (told,) = [step.action for step in sharing().steps if isinstance(step.action, Tell)]
    assert KEY in told.text
    for planned in (sharing(shows_join_command=True), sharing(prints_certificate_key=False)):
        assert not any(isinstance(step.action, Tell) for step in planned.steps)


def test_external_etcd_shares_its_own_files() -> None:
    etcd = "etcd: {external: {endpoints: ['https://e:2379'], caFile: /e/ca, certFile: /e/crt, keyFile: /e/key}}"
    planned = sharing(CONFIG.replace("kubernetesVersion", f"{etcd}\nkubernetesVersion"))
    secret = planned.steps[1].action
    assert isinstance(secret, PutObject)
    assert [each.path for each in secret.fillings][-3:] == ["/e/ca", "/e/crt", "/e/key"]


def test_kubelet_conf_names_the_certificate_that_the_kubelet_renews() -> None:
    machine = applied()
    machine.files[PEM] = b"certificate and key"
    issue, restart = (step.action for step in plan(context_on(machine), "kubelet-finalize/all").steps)
    assert isinstance(issue, Issue)
    assert restart == ControlService(service="kubelet", verb="restart", is_needed=False)
    before = read_kubeconfig(machine.files[KUBELET_CONF], KUBELET_CONF)
    issuer = PkiIssuer(machine.folder, SystemKeys(), NOW)
    Executor(Hands(files=machine, issuer=issuer, services=machine)).execute(
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
    planned = whole(replace(context_on(MemoryMachine(services=set()), text), certificate_key=KEY))
    names = [step.action.name for step in planned.steps if isinstance(step.action, Issue)]
    assert ("kubeconfig of a kubelet that rotates its certificate" in names) is is_planned


def told(context: InitContext) -> str:
    (step,) = [each for each in whole(context).steps if isinstance(each.action, Tell)]
    assert isinstance(step.action, Tell)
    return with_pins(step.action, applied().read)


def test_next_steps_tell_a_person_what_is_needed() -> None:
    text = told(context_on(MemoryMachine(services=set())))
    assert "sudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config" in text
    assert "NotReady until a CNI" in text
    assert "garboard join 192.0.2.10:6443 --token" in text
    assert "kubeadm join 192.0.2.10:6443 --token" in text
    assert "--discovery-token-ca-cert-hash sha256:" in text
    assert "--control-plane" not in text


def test_join_command_of_control_planes_carries_the_key_that_was_uploaded() -> None:
    context = context_on(MemoryMachine(services=set()), SHARED)
    context = replace(context, uploads_certs=True, certificate_key=KEY, shows_join_command=True)
    assert f"--control-plane --certificate-key {KEY}" in told(context)
    assert "join api.example.com:7443" in told(context)
    withheld = told(replace(context, prints_certificate_key=False, prints_token=False))
    assert KEY not in withheld
    assert "--token <value withheld>" in withheld


def test_without_uploaded_certificates_it_says_how_to_share_them() -> None:
    assert "upload-certs --upload-certs" in told(context_on(MemoryMachine(services=set()), SHARED))


def test_whole_init_has_nothing_that_is_not_built() -> None:
    planned = whole(replace(context_on(MemoryMachine(services=set())), uploads_certs=True, certificate_key=KEY))
    phases = list(dict.fromkeys(step.phase.partition("/")[0] for step in planned.steps))
    assert phases == [
        "certs", "kubeconfig", "etcd", "control-plane", "kubelet-start", "wait-control-plane", "upload-config",
        "upload-certs", "mark-control-plane", "bootstrap-token", "kubelet-finalize", "addon", "show-join-command"
    ]  # fmt: skip
