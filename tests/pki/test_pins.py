"""Pins of authorities, read by openssl as kubeadm's documentation says."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from garboard.errors import InvalidValue
from garboard.pki.issue import certificate_pem
from garboard.pki.pins import authority_pins
from tests.pki.fixtures import issue_tree


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
