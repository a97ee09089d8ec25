from dataclasses import replace

import pytest

from garboard.pki import KUBECONFIGS, ControlPlaneEndpoint
from garboard.pki.chain import chain_problem, read_certificates
from garboard.pki.credentials import (
    ClusterEntry,
    decide_kubeconfig,
    decide_with_external_ca,
    issue_kubeconfig,
    kubeconfig_file,
    observe_kubeconfig,
    token_kubeconfig,
)
from garboard.pki.decide import Generate, Keep, Refuse
from garboard.pki.files import write_files
from garboard.pki.issue import certificate_pem
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.signing_requests import unsigned_kubeconfig_files
from garboard.pki.spec import client_request
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, MemoryFolder, issue_tree

CA = issue_tree()["ca"]
TRUSTED = (CA.certificate,)
SHARED = replace(INPUTS, control_plane_endpoint=ControlPlaneEndpoint.parse("lb.example:443"))
SPECS = {spec.name: spec for spec in KUBECONFIGS}


def folder_of_five() -> MemoryFolder:
    folder = MemoryFolder(prefix="/etc/kubernetes")
    write_files(folder, [kubeconfig_file(spec, SHARED, CA, KEYS, NOW) for spec in KUBECONFIGS])
    return folder


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("admin", "https://lb.example:443"),
        ("super-admin", "https://lb.example:443"),
        ("kubelet", "https://192.0.2.10:6443"),
        ("controller-manager", "https://192.0.2.10:6443"),
        ("scheduler", "https://192.0.2.10:6443"),
    ],
)
def test_each_file_names_its_server_and_holds_a_signed_certificate(name: str, server: str) -> None:
    folder = folder_of_five()
    file_name = SPECS[name].file_name
    current = read_kubeconfig(folder.files[file_name], file_name)
    (client,) = read_certificates(current.client_certificate)
    assert current.server == server
    assert current.ca == certificate_pem(CA.certificate)
    assert chain_problem([client], CA.certificate, NOW) is None
    assert client.not_valid_before_utc == CA.certificate.not_valid_before_utc
    assert folder.modes[file_name] == 0o600


def test_kubelet_is_named_for_its_node() -> None:
    assert SPECS["kubelet"].user_name(INPUTS) == "system:node:node-1"
    assert SPECS["admin"].user_name(replace(INPUTS, node_name="{x}")) == "kubernetes-admin"


def test_kubelet_uses_the_shared_endpoint_without_local_mode() -> None:
    inputs = replace(SHARED, is_kubelet_local_mode=False)
    data = kubeconfig_file(SPECS["kubelet"], inputs, CA, KEYS, NOW).data
    assert read_kubeconfig(data, "kubelet.conf").server == "https://lb.example:443"


def test_existing_files_are_kept_when_they_trust_the_ca() -> None:
    folder = folder_of_five()
    for spec in KUBECONFIGS:
        found = observe_kubeconfig(folder, spec.file_name)
        path = f"/etc/kubernetes/{spec.file_name}"
        expected = Keep(spec.file_name, f'Using existing kubeconfig file: "{path}"')
        assert decide_kubeconfig(spec, found, SHARED, TRUSTED) == expected
    assert decide_kubeconfig(SPECS["admin"], None, SHARED, TRUSTED) == Generate("admin.conf")


def test_other_server_is_a_warning_and_other_ca_a_refusal() -> None:
    found = observe_kubeconfig(folder_of_five(), "admin.conf")
    kept = decide_kubeconfig(SPECS["admin"], found, INPUTS, TRUSTED)
    assert isinstance(kept, Keep)
    assert kept.warnings[0].endswith("expected: https://192.0.2.10:6443, got: https://lb.example:443")
    refused = decide_kubeconfig(SPECS["admin"], found, INPUTS, (issue_tree()["ca"].certificate,))
    assert isinstance(refused, Refuse)
    assert "does not contain a trusted CA" in refused.reason


def test_ca_in_a_file_of_its_own_and_white_space_around_it_are_fine() -> None:
    folder = folder_of_five()
    text = folder.files["admin.conf"].decode()
    line = next(each for each in text.splitlines() if "certificate-authority-data" in each)
    folder.files["admin.conf"] = text.replace(line, "    certificate-authority: /some/ca.crt").encode()
    folder.files["/some/ca.crt"] = b"\n\n" + certificate_pem(CA.certificate) + b"\n \n"
    found = observe_kubeconfig(folder, "admin.conf")
    assert isinstance(decide_kubeconfig(SPECS["admin"], found, SHARED, TRUSTED), Keep)
    del folder.files["/some/ca.crt"]
    refused = decide_kubeconfig(SPECS["admin"], observe_kubeconfig(folder, "admin.conf"), SHARED, TRUSTED)
    assert isinstance(refused, Refuse)
    assert "contains an invalid CA cert" in refused.reason


def test_file_that_is_no_kubeconfig_is_refused() -> None:
    folder = MemoryFolder({"admin.conf": b"[]"}, prefix="/etc/kubernetes")
    refused = decide_kubeconfig(SPECS["admin"], observe_kubeconfig(folder, "admin.conf"), SHARED, TRUSTED)
    assert refused == Refuse("admin.conf", "/etc/kubernetes/admin.conf: it is not a kubeconfig")


def test_external_ca_needs_all_five() -> None:
    folder = folder_of_five()
    found = {spec.file_name: observe_kubeconfig(folder, spec.file_name) for spec in KUBECONFIGS}
    assert {type(each) for each in decide_with_external_ca(found, SHARED, TRUSTED)} == {Keep}
    del found["super-admin.conf"]
    refused = [each for each in decide_with_external_ca(found, SHARED, TRUSTED) if isinstance(each, Refuse)]
    assert [each.name for each in refused] == ["super-admin.conf"]


def test_unsigned_kubeconfig_has_a_key_and_a_request_for_it() -> None:
    config, csr = unsigned_kubeconfig_files(SPECS["kubelet"], SHARED, KEYS, NOW)
    current = read_kubeconfig(config.data, config.name)
    assert (current.ca, current.client_certificate, current.server) == (b"", b"", "https://lb.example:443")
    assert (csr.name, csr.mode, config.mode) == ("kubelet.conf.csr", 0o600, 0o600)
    assert csr.data.startswith(b"-----BEGIN CERTIFICATE REQUEST-----\n")


def test_kubeconfigs_for_more_users() -> None:
    cluster = ClusterEntry("prod", "https://lb.example:443")
    request = client_request("alice", ("dev", "ops"), not_after=NOW)
    document = issue_kubeconfig(request, cluster, CA, INPUTS.key_algorithm, KEYS)
    assert b"name: alice@prod\n" in document.to_bytes()
    assert b"token: abc\n" in token_kubeconfig("bob", "abc", cluster, CA.certificate).to_bytes()
