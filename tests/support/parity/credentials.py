"""Certificates, keys and kubeconfigs as text without what never comes twice: keys, serials, dates, signatures."""

import base64
import re
from collections.abc import Mapping
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from garboard.pki.chain import read_certificates
from garboard.pki.keys import read_private_key, read_public_key
from garboard.pki.spec import BACKDATE
from tools.harness.machine import FileState

_DATA = re.compile(r"(?<=-data: )[A-Za-z0-9+/=]+")
# A certificate in a kubeconfig begins with its CA, which an earlier run of the program made.
_SLACK = timedelta(minutes=10)


def without_chance(files: Mapping[str, FileState]) -> dict[str, FileState]:
    """Return the files with everything in them that two runs may differ in put into words."""
    return {path: FileState(file.mode, _normal(path, file.content)) for path, file in files.items()}


def _normal(path: str, content: bytes) -> bytes:
    if path.endswith((".crt", ".key", ".pub")):
        return _pem(content).encode()
    if path.endswith(".conf"):
        return _DATA.sub(lambda found: _pem(base64.b64decode(found[0])), content.decode()).encode()
    return content


def _pem(content: bytes) -> str:
    head = content.split(b"\n", 1)[0].decode()
    if "CERTIFICATE" in head:
        return "\n".join(certificate_text(each) for each in read_certificates(content))
    key = read_public_key(content) if "PUBLIC" in head else read_private_key(content).public_key()
    return f"{head} {_key_text(key)}\n"


def certificate_text(certificate: x509.Certificate) -> str:
    """Return every field of a certificate but its key, serial number, dates, key identifiers and signature."""
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc - BACKDATE
    lines = [
        f"version {certificate.version} signed with {certificate.signature_algorithm_oid.dotted_string}",
        f"subject {certificate.subject.public_bytes().hex()} issuer {certificate.issuer.public_bytes().hex()}",
        f"key {_key_text(certificate.public_key())}",
        f"holds {round(lifetime / _SLACK)} times ten minutes",
        *(f"extension {_extension_text(each)}" for each in certificate.extensions),
    ]
    return "".join(f"{line}\n" for line in lines)


def _extension_text(extension: x509.Extension[x509.ExtensionType]) -> str:
    is_identifier = isinstance(extension.value, x509.SubjectKeyIdentifier | x509.AuthorityKeyIdentifier)
    value = len(extension.value.public_bytes()) if is_identifier else extension.value.public_bytes().hex()
    return f"{extension.oid.dotted_string} critical={extension.critical} {value}"


def _key_text(key: object) -> str:
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA {key.key_size} {key.public_numbers().e}"
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return f"ECDSA {key.curve.name}"
