"""The certificate folder: which files there are, what they hold, and which modes new ones get."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from cryptography import x509

from garboard.errors import GarboardError
from garboard.pki.chain import read_certificates
from garboard.pki.issue import IssuedPair, certificate_pem, csr_pem
from garboard.pki.keys import PrivateKey, PublicKey, private_key_pem, public_key_pem, read_private_key, read_public_key
from garboard.pki.spec import CERTIFICATES, SERVICE_ACCOUNT_BASE_NAME

CERTIFICATE_MODE = 0o644
SECRET_MODE = 0o600
FOLDER_MODE = 0o755

Value = TypeVar("Value")


class Folder(Protocol):
    """A folder of files by relative name: /etc/kubernetes/pki on a machine, a mapping in a test."""

    def read(self, name: str) -> bytes | None:
        """Return the content, or None when there is no such file."""
        ...

    def write(self, name: str, data: bytes, *, new_mode: int) -> None:
        """Replace the content; a file that is new gets `new_mode`, an existing one keeps its own."""
        ...

    def path_of(self, name: str) -> str:
        """Return how to call the file in a message."""
        ...


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written, below the certificate or kubeconfig folder."""

    name: str
    data: bytes = field(repr=False)
    mode: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there and does not hold what it should."""

    reason: str


@dataclass(frozen=True, slots=True)
class ObservedPair:
    """What `<base name>.crt` and `<base name>.key` hold; None where there is no file."""

    base_name: str
    chain: tuple[x509.Certificate, ...] | Unreadable | None = None
    key: PrivateKey | Unreadable | None = field(default=None, repr=False)

    @property
    def certificate(self) -> x509.Certificate | None:
        """The certificate the file is about; None when it is missing or cannot be read."""
        return self.chain[0] if isinstance(self.chain, tuple) else None

    @property
    def has_any_file(self) -> bool:
        return self.chain is not None or self.key is not None

    @property
    def is_keyless(self) -> bool:
        """A certificate authority whose key is kept elsewhere."""
        return self.certificate is not None and self.key is None

    def as_signer(self) -> IssuedPair | None:
        if self.certificate is None or self.key is None or isinstance(self.key, Unreadable):
            return None
        return IssuedPair(self.certificate, self.key)


@dataclass(frozen=True, slots=True)
class ObservedServiceAccount:
    """What sa.key and sa.pub hold."""

    private: PrivateKey | Unreadable | None = field(default=None, repr=False)
    public: PublicKey | Unreadable | None = None


ObservedPairs: TypeAlias = Mapping[str, ObservedPair]


def observe_pairs(folder: Folder) -> ObservedPairs:
    """Read every certificate and key of the tree, by base name."""
    return {spec.base_name: observe_pair(folder, spec.base_name) for spec in CERTIFICATES}


def observe_pair(folder: Folder, base_name: str) -> ObservedPair:
    return ObservedPair(
        base_name,
        _read(folder, f"{base_name}.crt", read_certificates),
        _read(folder, f"{base_name}.key", read_private_key),
    )


def observe_service_account(folder: Folder) -> ObservedServiceAccount:
    name = SERVICE_ACCOUNT_BASE_NAME
    return ObservedServiceAccount(
        _read(folder, f"{name}.key", read_private_key), _read(folder, f"{name}.pub", read_public_key)
    )


def _read(folder: Folder, name: str, parse: Callable[[bytes], Value]) -> Value | Unreadable | None:
    try:
        data = folder.read(name)
        return None if data is None else parse(data)
    except GarboardError as error:
        return Unreadable(f"{folder.path_of(name)}: {error.message}")


def pair_files(base_name: str, pair: IssuedPair) -> tuple[NewFile, ...]:
    """Return the two files of a certificate, the key first: a certificate never waits for its key."""
    return (
        NewFile(f"{base_name}.key", private_key_pem(pair.key), SECRET_MODE),
        NewFile(f"{base_name}.crt", certificate_pem(pair.certificate), CERTIFICATE_MODE),
    )


def service_account_files(key: PrivateKey) -> tuple[NewFile, ...]:
    """Return sa.key and sa.pub; kubeadm gives the public half the mode of a secret too."""
    name = SERVICE_ACCOUNT_BASE_NAME
    return (
        NewFile(f"{name}.key", private_key_pem(key), SECRET_MODE),
        NewFile(f"{name}.pub", public_key_pem(key.public_key()), SECRET_MODE),
    )


def csr_file(name: str, csr: x509.CertificateSigningRequest) -> NewFile:
    return NewFile(f"{name}.csr", csr_pem(csr), SECRET_MODE)


def write_files(folder: Folder, files: Iterable[NewFile]) -> None:
    for each in files:
        folder.write(each.name, each.data, new_mode=each.mode)
