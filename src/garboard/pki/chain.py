"""Reading certificates and checking them: their signers, validity periods and names."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from garboard.errors import InvalidValue
from garboard.model.addresses import IpAddress
from garboard.model.names import subdomain_problems
from garboard.pki.names import AltNames, plain_ip

_MAX_DEPTH = 10


def read_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates in `pem`, at least one; the first is the file's own, others are its chain."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        raise InvalidValue("no valid certificate in it", hint="write the certificate as PEM") from None


def authority_pins(pem: bytes) -> tuple[str, ...]:
    """Return `sha256:…` for every certificate in `pem`: the pin by which a joining node recognizes its cluster.

    It is the SHA-256 of the public key, with its algorithm, as DER.
    """
    keys = (each.public_key() for each in read_certificates(pem))
    encoded = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    return tuple(f"sha256:{hashlib.sha256(data).hexdigest()}" for data in encoded)


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether the certificate says that it may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def names_of(certificate: x509.Certificate) -> AltNames:
    """Return the DNS names and addresses that a certificate is valid for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return AltNames()
    addresses = (each for each in names.get_values_for_type(x509.IPAddress))
    ips = tuple(plain_ip(each) for each in addresses if isinstance(each, IpAddress))
    return AltNames(tuple(names.get_values_for_type(x509.DNSName)), ips)


def period_problem(certificate: x509.Certificate, now: datetime) -> str | None:
    """Say why the certificate is not valid at `now`, if it is not."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    period = f"NotBefore: {_go_time(start)}, NotAfter: {_go_time(end)}"
    if now < start:
        return f"the certificate is not valid yet: {period}"
    if now > end:
        return f"the certificate has expired: {period}"
    return None


def chain_problem(chain: Sequence[x509.Certificate], root: x509.Certificate, now: datetime) -> str | None:
    """Say why the first of `chain` does not lead to `root`, if it does not; the rest of `chain` are intermediates.

    Extended key usages do not matter, but every certificate of the chain must be valid at `now`: an expired certificate
    does not verify, for kubeadm either.
    """
    if problem := _expired(chain[0], now):
        return problem
    return _path_problem(chain[0], tuple(chain[1:]), root, now, _MAX_DEPTH)


def _path_problem(
    certificate: x509.Certificate,
    intermediates: tuple[x509.Certificate, ...],
    root: x509.Certificate,
    now: datetime,
    depth: int,
) -> str | None:
    if certificate == root:
        return None
    if _signed(certificate, root):
        return _expired(root, now)
    problem = "x509: certificate signed by unknown authority"
    for parent in intermediates if depth else ():
        if parent == certificate or not _signed(certificate, parent):
            continue
        others = tuple(each for each in intermediates if each != parent)
        found = _expired(parent, now) or _path_problem(parent, others, root, now, depth - 1)
        if found is None:
            return None
        problem = found
    return problem


def _signed(certificate: x509.Certificate, signer: x509.Certificate) -> bool:
    if not is_authority(signer) or not _may_sign(signer):
        return False
    try:
        certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _may_sign(signer: x509.Certificate) -> bool:
    try:
        return signer.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def _expired(certificate: x509.Certificate, now: datetime) -> str | None:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if start <= now <= end:
        return None
    relation, bound = ("before", start) if now < start else ("after", end)
    return (
        "x509: certificate has expired or is not yet valid: "
        f"current time {now:%Y-%m-%dT%H:%M:%SZ} is {relation} {bound:%Y-%m-%dT%H:%M:%SZ}"
    )


def missing_names(certificate: x509.Certificate, wanted: AltNames) -> tuple[str, ...]:
    """Return the names of `wanted` that the certificate is not valid for."""
    held = names_of(certificate)
    dns = [name for name in wanted.dns if not any(_matches(pattern, name) for pattern in held.dns)]
    return (*dns, *(str(each) for each in wanted.ips if plain_ip(each) not in held.ips))


def _matches(pattern: str, name: str) -> bool:
    pattern, name = pattern.lower().rstrip("."), name.lower().rstrip(".")
    if pattern == name:
        return True
    # A wildcard stands for exactly one label, and only a plain host name can be matched by it.
    _, _, rest = name.partition(".")
    return not subdomain_problems(name) and bool(rest) and pattern == f"*.{rest}"


def _go_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} +0000 UTC"


def common_name_of(pem: bytes) -> str:
    """Return the common name of the first certificate in a file, which may hold its key as well; empty if none."""
    begin = pem.find(b"-----BEGIN CERTIFICATE-----")
    if begin < 0:
        return ""
    try:
        subject = x509.load_pem_x509_certificate(pem[begin:]).subject
    except ValueError:
        return ""
    found = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[-1].value) if found else ""
