"""That certificates are kubeadm's is held by tests/parity; here an independent reader, and what no default shows."""

import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtensionOID, NameOID

from garboard.errors import InvalidValue
from garboard.pki import CERTIFICATES, AltNames, CertRequest, KeyAlgorithm, certificate
from garboard.pki.files import IssuedPair
from garboard.pki.issue import certificate_pem, issue_ca, issue_leaf, make_csr
from garboard.pki.keys import private_key_pem
from garboard.pki.spec import CLIENT_AUTH
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, issue_tree, tree_files

REQUEST = CertRequest(common_name="client", usages=(CLIENT_AUTH,), not_after=NOW + timedelta(days=1))


def openssl(*arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ca() -> IssuedPair:
    return issue_ca(certificate("ca").request(INPUTS, NOW), KeyAlgorithm.ECDSA_P256, KEYS)


@pytest.mark.parametrize("algorithm", [KeyAlgorithm.RSA_2048, KeyAlgorithm.ECDSA_P256, KeyAlgorithm.ECDSA_P384])
def test_openssl_accepts_every_chain_and_key(tmp_path: Path, algorithm: KeyAlgorithm) -> None:
    issued = issue_tree(replace(INPUTS, key_algorithm=algorithm))
    for file in tree_files(issued):
        (tmp_path / file.name).parent.mkdir(exist_ok=True)
        (tmp_path / file.name).write_bytes(file.data)
    at = str(int(NOW.timestamp()))
    for spec in CERTIFICATES:
        path = str(tmp_path / f"{spec.base_name}.crt")
        authority = str(tmp_path / f"{certificate(spec.ca or spec.name).base_name}.crt")
        assert openssl("verify", "-x509_strict", "-attime", at, "-CAfile", authority, path).strip() == f"{path}: OK"
        key = openssl("pkey", "-pubout", "-in", str(tmp_path / f"{spec.base_name}.key"))
        assert openssl("x509", "-noout", "-pubkey", "-in", path) == key


def test_openssl_accepts_a_server_by_each_of_its_names(tmp_path: Path) -> None:
    issued = issue_tree(replace(INPUTS, api_server_cert_sans=("*.api.example", "fd00::7")))
    (tmp_path / "ca.crt").write_bytes(certificate_pem(issued["ca"].certificate))
    (tmp_path / "server.crt").write_bytes(certificate_pem(issued["apiserver"].certificate))
    common = ("-purpose", "sslserver", "-attime", str(int(NOW.timestamp())), "-CAfile", str(tmp_path / "ca.crt"))
    checks = [("-verify_hostname", "node-1"), ("-verify_hostname", "a.api.example"), ("-verify_ip", "10.96.0.1")]
    for option, name in [*checks, ("-verify_ip", "fd00::7")]:
        openssl("verify", *common, option, name, str(tmp_path / "server.crt"))


def test_times_are_whole_seconds_and_a_client_starts_with_its_ca(ca: IssuedPair) -> None:
    client = issue_leaf(REQUEST, ca, KeyAlgorithm.ECDSA_P256, KEYS).certificate
    assert ca.certificate.not_valid_before_utc == (NOW - timedelta(minutes=5)).replace(microsecond=0)
    assert client.not_valid_before_utc == ca.certificate.not_valid_before_utc
    assert client.not_valid_after_utc == (NOW + timedelta(days=1)).replace(microsecond=0)


def test_organizations_are_one_part_of_the_subject_before_the_common_name(ca: IssuedPair) -> None:
    request = replace(REQUEST, organizations=("b", "a"))
    subject = issue_leaf(request, ca, KeyAlgorithm.ECDSA_P256, KEYS).certificate.subject
    assert [sorted(str(each.value) for each in part) for part in subject.rdns] == [["a", "b"], ["client"]]


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        pytest.param("system:node:a", 0x13, id="printable"),
        pytest.param("a_b@c", 0x0C, id="not printable"),
        pytest.param("a*b&c", 0x0C, id="Go counts neither star nor ampersand as printable"),
    ],
)
def test_subject_uses_the_string_type_that_go_chooses(ca: IssuedPair, name: str, tag: int) -> None:
    issued = issue_leaf(replace(REQUEST, common_name=name), ca, KeyAlgorithm.ECDSA_P256, KEYS).certificate
    encoded = issued.subject.public_bytes()
    assert encoded.endswith(bytes([tag, len(name)]) + name.encode())


def test_common_name_longer_than_x520_allows_is_written(ca: IssuedPair) -> None:
    name = "system:node:" + "n" * 100
    issued = issue_leaf(replace(REQUEST, common_name=name), ca, KeyAlgorithm.ECDSA_P256, KEYS).certificate
    assert name.encode() in issued.public_bytes(serialization.Encoding.DER)


def test_signer_without_key_identifier_gives_none_to_its_leafs(ca: IssuedPair) -> None:
    builder = x509.CertificateBuilder(ca.certificate.subject, ca.certificate.subject, ca.key.public_key(), 1)
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    old = builder.add_extension(x509.BasicConstraints(True, None), True).sign(ca.key, hashes.SHA256())
    leaf = issue_leaf(REQUEST, IssuedPair(old, ca.key), KeyAlgorithm.ECDSA_P256, KEYS).certificate
    with pytest.raises(x509.ExtensionNotFound):
        leaf.extensions.get_extension_for_oid(ExtensionOID.AUTHORITY_KEY_IDENTIFIER)


def test_issuer_keeps_the_encoding_of_the_subject_of_its_ca(ca: IssuedPair) -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"), x509.NameAttribute(NameOID.COMMON_NAME, "corp")])
    builder = x509.CertificateBuilder(name, name, ca.key.public_key(), 1)
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    own = builder.add_extension(x509.BasicConstraints(True, None), True).sign(ca.key, hashes.SHA256())
    leaf = issue_leaf(REQUEST, IssuedPair(own, ca.key), KeyAlgorithm.ECDSA_P256, KEYS).certificate
    assert leaf.issuer.public_bytes() == own.subject.public_bytes()


def test_key_of_another_ca_is_refused(ca: IssuedPair) -> None:
    other = KEYS.private_key(KeyAlgorithm.ECDSA_P256)
    with pytest.raises(InvalidValue, match="does not belong to its certificate"):
        issue_leaf(REQUEST, IssuedPair(ca.certificate, other), KeyAlgorithm.ECDSA_P256, KEYS)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(replace(REQUEST, usages=()), id="no usage"),
        pytest.param(replace(REQUEST, common_name=""), id="no common name"),
        pytest.param(replace(REQUEST, not_after=NOW - timedelta(days=400)), id="ends before it starts"),
        pytest.param(replace(REQUEST, alt_names=AltNames(dns=("ä.example",))), id="name that is not ASCII"),
    ],
)
def test_impossible_certificate_is_refused(ca: IssuedPair, request_: CertRequest) -> None:
    with pytest.raises(InvalidValue):
        issue_leaf(request_, ca, KeyAlgorithm.ECDSA_P256, KEYS)


def test_signing_request_carries_names_only_when_there_are_any(tmp_path: Path) -> None:
    key = KEYS.private_key(KeyAlgorithm.ECDSA_P256)
    csr = make_csr(certificate("etcd-server").request(INPUTS, NOW), key)
    (tmp_path / "a.csr").write_bytes(csr.public_bytes(serialization.Encoding.PEM))
    shown = openssl("req", "-noout", "-text", "-verify", "-in", str(tmp_path / "a.csr"))
    assert "DNS:localhost, DNS:node-1, IP Address:192.0.2.10, IP Address:127.0.0.1" in shown
    assert not list(make_csr(REQUEST, key).extensions)


def test_private_key_never_shows_in_a_repr(ca: IssuedPair) -> None:
    assert "key" not in repr(ca)
    assert private_key_pem(ca.key).decode() not in repr(ca)
