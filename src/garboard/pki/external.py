"""Certificates that an external authority signs: the key and the request that wait for it, and what it has signed."""

from collections.abc import Iterator
from datetime import datetime

from cryptography import x509

from garboard.errors import InvalidValue
from garboard.pki.chain import chain_problem, missing_names, names_of, read_certificates
from garboard.pki.files import SECRET_MODE, Folder, NewFile
from garboard.pki.inputs import PkiInputs
from garboard.pki.issue import csr_pem, make_csr
from garboard.pki.keys import KeySource, private_key_pem, read_private_key
from garboard.pki.spec import CertSpec
from garboard.values import dataclass

ENDS = ("key", "csr", "crt")
_ANY_USAGE = "2.5.29.37.0"


@dataclass(frozen=True, slots=True)
class WaitingFiles:
    """What there is of a certificate that waits to be signed; None where there is no file."""

    key: bytes | None
    csr: bytes | None
    certificate: bytes | None

    @classmethod
    def read(cls, folder: Folder, spec: CertSpec) -> "WaitingFiles":
        key, csr, certificate = (folder.read(f"{spec.base_name}.{end}") for end in ENDS)
        return cls(key, csr, certificate)


def new_request(spec: CertSpec, inputs: PkiInputs, keys: KeySource, started_at: datetime) -> tuple[NewFile, ...]:
    """Return a new key, and the request for a certificate with it."""
    key = keys.private_key(inputs.key_algorithm)
    request = make_csr(spec.request(inputs, started_at), key)
    return (
        NewFile(f"{spec.base_name}.key", private_key_pem(key), SECRET_MODE),
        NewFile(f"{spec.base_name}.csr", csr_pem(request), SECRET_MODE),
    )


def asks_for(waiting: WaitingFiles, spec: CertSpec, inputs: PkiInputs) -> bool:
    """Say whether the request that waits is for the key beside it, and for the very names."""
    if waiting.key is None or waiting.csr is None:
        return False
    try:
        found, key = x509.load_pem_x509_csr(waiting.csr), read_private_key(waiting.key)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, InvalidValue, x509.ExtensionNotFound):
        return False
    wanted = spec.all_names(inputs)
    texts = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    return found.public_key() == key.public_key() and texts == {*wanted.dns, *map(str, wanted.ips)}


def signed_problem(
    waiting: WaitingFiles,
    spec: CertSpec,
    inputs: PkiInputs,
    *,
    authority: bytes | None,
    former: bytes | None,
    now: datetime,
) -> str | None:
    """Say why a signed certificate cannot take the place of the `former` one; None if it can."""
    if waiting.certificate is None:
        return "it is not there yet"
    try:
        chain = read_certificates(waiting.certificate)
        roots = read_certificates(authority or b"")
        key = read_private_key(waiting.key or b"")
    except InvalidValue as error:
        return error.message
    if chain[0].public_key() != key.public_key():
        return "it is for another key than the one that waits for it"
    problems = [chain_problem(chain, root, now) for root in roots]
    if all(problems):
        return f"the authority of the cluster has not signed it: {problems[0]}"
    return next(_shortcomings(chain[0], spec, inputs, former), None)


def _shortcomings(
    certificate: x509.Certificate, spec: CertSpec, inputs: PkiInputs, former: bytes | None
) -> Iterator[str]:
    wanted = spec.all_names(inputs)
    if missing := missing_names(certificate, wanted):
        yield f"it lacks the names {', '.join(missing)}"
    usages = _usages(certificate)
    if lacking := [each for each in spec.usages if usages and not {each, _ANY_USAGE} & usages]:
        yield f"it lacks the extended key usages {', '.join(map(_usage_name, lacking))}"
    if kept := sorted(_former_names(former) & _texts(certificate) - {*wanted.dns, *map(str, wanted.ips)}):
        yield f"it still has the names {', '.join(kept)}, which are taken out"


def _usages(certificate: x509.Certificate) -> set[str]:
    """Return what a certificate may be used for; nothing if it does not say, and so may be for everything."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    return {each.dotted_string for each in found}


def usage_names(spec: CertSpec) -> tuple[str, ...]:
    """Return what a certificate is used for, as openssl calls it."""
    return tuple(map(_usage_name, spec.usages))


def _usage_name(usage: str) -> str:
    return {"1.3.6.1.5.5.7.3.1": "serverAuth", "1.3.6.1.5.5.7.3.2": "clientAuth"}.get(usage, usage)


def _former_names(former: bytes | None) -> set[str]:
    try:
        return _texts(read_certificates(former)[0]) if former else set()
    except InvalidValue:
        return set()


def _texts(certificate: x509.Certificate) -> set[str]:
    names = names_of(certificate)
    return {*names.dns, *map(str, names.ips)}
