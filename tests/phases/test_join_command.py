"""The command that makes another node join."""

import pytest

from garboard.errors import BadDocument
from garboard.phases.join_command import join_command
from garboard.pki.issue import certificate_pem
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from garboard.pki.pins import authority_pins
from tests.pki.fixtures import issue_tree

TOKEN = "abcdef.0123456789abcdef"


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
