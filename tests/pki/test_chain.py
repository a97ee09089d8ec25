import hashlib
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.pki import AltNames, KeyAlgorithm, certificate
from garboard.pki.chain import (
    authority_pins,
    chain_problem,
    is_authority,
    missing_names,
    names_of,
    period_problem,
    read_certificates,
)
from garboard.pki.files import IssuedPair
from garboard.pki.issue import certificate_pem, issue_leaf
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, issue_tree

TREE = issue_tree()
CA, LEAF = TREE["ca"], TREE["apiserver"]


def intermediate(
    signer: IssuedPair, *, is_ca: bool = True, can_sign: bool = True, until: timedelta = timedelta(days=1)
) -> IssuedPair:
    key = KEYS.private_key(KeyAlgorithm.ECDSA_P256)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "between")])
    builder = x509.CertificateBuilder(signer.certificate.subject, name, key.public_key(), 7)
    builder = builder.not_valid_before(NOW - timedelta(days=9)).not_valid_after(NOW + until)
    builder = builder.add_extension(x509.BasicConstraints(is_ca, None), True)
    usage = x509.KeyUsage(True, False, False, False, False, can_sign, False, False, False)
    return IssuedPair(builder.add_extension(usage, True).sign(signer.key, hashes.SHA256()), key)


def leaf_of(signer: IssuedPair) -> x509.Certificate:
    request = certificate("apiserver").request(INPUTS, NOW)
    return issue_leaf(request, signer, KeyAlgorithm.ECDSA_P256, KEYS).certificate


def test_leaf_leads_to_its_ca_and_to_no_other() -> None:
    assert chain_problem([LEAF.certificate], CA.certificate, NOW) is None
    other = chain_problem([LEAF.certificate], TREE["etcd-ca"].certificate, NOW)
    assert other == "x509: certificate signed by unknown authority"


def test_ca_of_the_same_name_but_another_key_is_another_ca() -> None:
    assert chain_problem([LEAF.certificate], issue_tree()["ca"].certificate, NOW) is not None


def test_intermediates_bridge_the_way() -> None:
    first = intermediate(CA)
    second = intermediate(first)
    leaf = leaf_of(second)
    assert chain_problem([leaf, first.certificate, second.certificate], CA.certificate, NOW) is None
    assert chain_problem([leaf, second.certificate], CA.certificate, NOW) is not None


@pytest.mark.parametrize(
    "signer",
    [
        pytest.param(intermediate(CA, is_ca=False), id="no CA"),
        pytest.param(intermediate(CA, can_sign=False), id="may not sign"),
        pytest.param(intermediate(CA, until=-timedelta(days=1)), id="expired"),
    ],
)
def test_intermediate_that_must_not_sign_breaks_the_way(signer: IssuedPair) -> None:
    assert chain_problem([leaf_of(signer), signer.certificate], CA.certificate, NOW) is not None


def test_expired_leaf_and_expired_ca_do_not_verify() -> None:
    leaf_end = NOW + timedelta(days=366)
    problem = chain_problem([LEAF.certificate], CA.certificate, leaf_end)
    assert problem is not None
    assert problem.endswith("current time 2027-11-16T12:00:00Z is after 2027-11-15T12:00:00Z")
    ca_end = NOW + timedelta(hours=87601)
    assert chain_problem([CA.certificate], CA.certificate, ca_end) is not None


def test_period_is_told_with_its_bounds() -> None:
    assert period_problem(LEAF.certificate, NOW) is None
    assert period_problem(LEAF.certificate, datetime(2030, 1, 1, tzinfo=UTC)) == (
        "the certificate has expired: NotBefore: 2026-11-15 11:55:00 +0000 UTC, NotAfter: 2027-11-15 12:00:00 +0000 UTC"
    )
    early = period_problem(LEAF.certificate, datetime(2020, 1, 1, tzinfo=UTC))
    assert early is not None
    assert "not valid yet" in early


def test_names_read_back() -> None:
    assert names_of(LEAF.certificate) == certificate("apiserver").all_names(INPUTS).canonical()
    assert names_of(TREE["front-proxy-client"].certificate) == AltNames()
    assert is_authority(CA.certificate)
    assert not is_authority(LEAF.certificate)


def test_missing_names_are_listed_and_wildcards_cover_one_label() -> None:
    inputs = replace(INPUTS, api_server_cert_sans=("*.api.example",))
    held = issue_tree(inputs)["apiserver"].certificate
    wanted = AltNames(
        ("NODE-1", "a.api.example", "*.api.example", "b.a.api.example", "api.example", "other"),
        (ip_address("10.96.0.1"), ip_address("::ffff:10.96.0.1"), ip_address("10.96.0.2")),
    )
    assert missing_names(held, wanted) == ("b.a.api.example", "api.example", "other", "10.96.0.2")


def test_bundle_is_read_in_order() -> None:
    assert read_certificates(certificate_pem(LEAF.certificate, CA.certificate)) == (LEAF.certificate, CA.certificate)


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidValue):
        read_certificates(data)


def test_broken_certificate_is_refused() -> None:
    with pytest.raises(InvalidValue):
        read_certificates(certificate_pem(LEAF.certificate).replace(b"A", b"B"))


def test_pin_is_the_digest_of_the_public_key_that_openssl_prints(tmp_path: Path) -> None:
    pem = certificate_pem(issue_tree()["ca"].certificate)
    (tmp_path / "ca.crt").write_bytes(pem)
    printed = subprocess.run(
        ["openssl", "x509", "-pubkey", "-noout", "-in", tmp_path / "ca.crt"], check=True, capture_output=True
    ).stdout
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"], check=True, capture_output=True, input=printed
    )
    assert authority_pins(pem) == (f"sha256:{hashlib.sha256(der.stdout).hexdigest()}",)


def test_what_is_no_certificate_has_no_pin() -> None:
    with pytest.raises(InvalidValue):
        authority_pins(b"x")
