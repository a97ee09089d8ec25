"""Whether the credentials of a control-plane node fit together."""

import base64
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

_PKI = Path("/etc/kubernetes/pki")
_SIGNERS = {"etcd": "etcd/ca.crt", "apiserver-etcd-client": "etcd/ca.crt", "front-proxy-client": "front-proxy-ca.crt"}


def credential_problems() -> list[str]:
    """Say which key does not belong to its certificate, and which certificate not to its authority."""
    problems = []
    for path in sorted(_PKI.rglob("*.crt")):
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        if _public(path.with_suffix(".key").read_bytes()) != certificate.public_key():
            problems.append(f"{path} is not the certificate of the key beside it")
        if not path.name.endswith("ca.crt"):
            problems += _signed(certificate, path)
    for path in sorted(_PKI.rglob("*.key")):
        if not path.with_suffix(".crt").exists() and path.name != "sa.key":
            problems.append(f"{path} has no certificate")
    return problems + [line for path in sorted(Path("/etc/kubernetes").glob("*.conf")) for line in _kubeconfig(path)]


def _signed(certificate: x509.Certificate, path: Path) -> list[str]:
    name = "etcd" if path.parent.name == "etcd" else path.stem
    authority = x509.load_pem_x509_certificate((_PKI / _SIGNERS.get(name, "ca.crt")).read_bytes())
    return _verified(certificate, authority, str(path))


def _verified(certificate: x509.Certificate, authority: x509.Certificate, what: str) -> list[str]:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a problem to be told
        return [f"{what} is not signed by its authority: {error!r}"]
    return []


def _kubeconfig(path: Path) -> list[str]:
    user = yaml.safe_load(path.read_text())["users"][0]["user"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    authority = x509.load_pem_x509_certificate((_PKI / "ca.crt").read_bytes())
    problems = _verified(certificate, authority, str(path))
    if _public(base64.b64decode(user["client-key-data"])) != certificate.public_key():
        problems.append(f"{path} holds a certificate of another key")
    return problems


def _public(pem: bytes) -> object:
    return serialization.load_pem_private_key(pem, None).public_key()
