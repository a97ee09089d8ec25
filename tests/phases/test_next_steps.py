"""What a person is told at the end of init, and the command that makes another node join."""

from dataclasses import replace

import pytest

from garboard.engine import ShowMessage
from garboard.errors import BadDocument
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT, InitContext, InitOptions
from garboard.phases.next_steps import join_command, with_pins
from garboard.pki.chain import authority_pins
from garboard.pki.issue import certificate_pem
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from tests.support.phases.file_phases import applied
from tests.support.phases.machines import CONFIG, MemoryMachine, context_on
from tests.support.pki.fixtures import issue_tree

TOKEN = "abcdef.0123456789abcdef"
KEY = "00" * 32
SHARED = CONFIG.replace(
    "kind: ClusterConfiguration", "kind: ClusterConfiguration\ncontrolPlaneEndpoint: api.example.com:7443"
)


def told(context: InitContext) -> str:
    planned = plan_workflow(select(INIT), context)
    (step,) = [each for each in planned.steps if isinstance(each.action, ShowMessage)]
    assert isinstance(step.action, ShowMessage)
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
    options = InitOptions(uploads_certs=True, certificate_key=KEY, shows_join_command=True)
    text = told(context_on(MemoryMachine(services=set()), SHARED, options=options))
    assert f"--control-plane --certificate-key {KEY}" in text
    assert "join api.example.com:7443" in text
    options = replace(options, prints_certificate_key=False, prints_token=False)
    withheld = told(context_on(MemoryMachine(services=set()), SHARED, options=options))
    assert KEY not in withheld
    assert "--token <value withheld>" in withheld


def test_without_uploaded_certificates_it_says_how_to_share_them() -> None:
    assert "upload-certs --upload-certs" in told(context_on(MemoryMachine(services=set()), SHARED))


def kubeconfig(ca: bytes) -> bytes:
    return Kubeconfig(
        cluster_name="kubernetes", server="https://[fd00::1]:6443", user_name="a", ca=ca, credential=BearerToken("t")
    ).to_bytes()


def nothing(_path: str) -> None:
    return None


def test_command_pins_every_authority_of_the_kubeconfig() -> None:
    authorities = [certificate_pem(issue_tree()["ca"].certificate) for _ in range(2)]
    pins = [pin for each in authorities for pin in authority_pins(each)]
    command = join_command(kubeconfig(b"".join(authorities)), "admin.conf", nothing, token=TOKEN)
    hashes = " ".join(f"--discovery-token-ca-cert-hash {pin}" for pin in pins)
    assert command.line() == f"garboard join [fd00::1]:6443 --token {TOKEN} {hashes} "
    assert command.text("kubeadm") == f"kubeadm join [fd00::1]:6443 --token {TOKEN} \\\n\t{hashes}"
    assert TOKEN not in repr(command)


def test_control_plane_is_told_its_key_or_that_it_is_withheld() -> None:
    ca = certificate_pem(issue_tree()["ca"].certificate)
    told = join_command(kubeconfig(ca), "admin.conf", nothing, token=TOKEN, certificate_key="aa")
    assert told.line().endswith(" --control-plane --certificate-key aa")
    withheld = join_command(kubeconfig(ca), "admin.conf", nothing, certificate_key="")
    assert withheld.line().count("<value withheld>") == 2


def test_kubeconfig_without_an_authority_makes_no_command() -> None:
    with pytest.raises(BadDocument, match="no certificate authority"):
        join_command(kubeconfig(b""), "admin.conf", nothing)
