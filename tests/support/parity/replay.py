"""Giving our issuing code the key and serial number that kubeadm drew, so that everything else can be compared."""

import base64
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from garboard.pki import KeyAlgorithm, PkiInputs, certificate
from garboard.pki.chain import read_certificates
from garboard.pki.files import IssuedPair, NewFile
from garboard.pki.issue import certificate_pem, issue_certificate
from garboard.pki.keys import PrivateKey, read_private_key
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.spec import BACKDATE


@dataclass(frozen=True)
class Replay:
    """A key source that gives again what kubeadm drew."""

    key: PrivateKey
    serial: int

    def private_key(self, algorithm: KeyAlgorithm) -> PrivateKey:
        return self.key

    def serial_number(self) -> int:
        return self.serial


def load(folder: Path, base_name: str) -> IssuedPair:
    (found,) = read_certificates((folder / f"{base_name}.crt").read_bytes())
    return IssuedPair(found, read_private_key((folder / f"{base_name}.key").read_bytes()))


def embedded(path: Path) -> IssuedPair:
    """Return the client certificate and key that kubeadm put into a kubeconfig."""
    current = read_kubeconfig(path.read_bytes(), str(path))
    assert current.user is not None
    key = read_private_key(base64.b64decode(str(current.user["client-key-data"])))
    return IssuedPair(read_certificates(current.client_certificate)[0], key)


def assert_same_certificate(theirs: x509.Certificate, ours: x509.Certificate, algorithm: KeyAlgorithm) -> None:
    assert ours.tbs_certificate_bytes == theirs.tbs_certificate_bytes
    assert ours.signature_algorithm_oid == theirs.signature_algorithm_oid
    if algorithm.value.startswith("RSA"):
        assert certificate_pem(ours) == certificate_pem(theirs)


def with_certificate_of(theirs: x509.Certificate, data: bytes, ours: x509.Certificate) -> bytes:
    """Return our kubeconfig with their certificate in it: an ECDSA signature never comes twice."""
    return data.replace(base64.b64encode(certificate_pem(ours)), base64.b64encode(certificate_pem(theirs)))


def reissue(theirs: IssuedPair, name: str, inputs: PkiInputs, signer: IssuedPair | None) -> IssuedPair:
    started_at = theirs.certificate.not_valid_before_utc + BACKDATE
    keys = Replay(theirs.key, theirs.certificate.serial_number)
    return issue_certificate(certificate(name), inputs, signer, keys, started_at)


def files_below(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def assert_same_files(folder: Path, files: list[NewFile]) -> None:
    assert files_below(folder) == {each.name for each in files}
    for each in files:
        assert (each.name, (folder / each.name).stat().st_mode & 0o777) == (each.name, each.mode)
        if not each.name.endswith(".crt"):
            assert (folder / each.name).read_bytes() == each.data
