"""Files of certificates, keys and kubeconfigs: their folder, those found in it, and new ones.

Nothing here imports the code that parses certificates: on a node without any, it is not loaded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from garboard.values import dataclass

if TYPE_CHECKING:
    from cryptography import x509

    from garboard.pki.keys import PrivateKey, PublicKey

CERTIFICATE_MODE = 0o644
SECRET_MODE = 0o600


class Folder(Protocol):
    """A folder of files by relative name: /etc/kubernetes/pki on a machine, a mapping in a test."""

    def read(self, name: str) -> bytes | None:
        """Return the content, or None when there is no such file."""
        ...

    def path_of(self, name: str) -> str:
        """Return the name of the file in messages."""
        ...


class NewFiles(Folder, Protocol):
    """A folder that takes files which are not there yet."""

    def write_new(self, name: str, data: bytes, *, mode: int) -> None:
        """Make a file; one that is there by then, whoever made it, is refused and left as it is."""
        ...

    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written, below the certificate or kubeconfig folder."""

    name: str
    data: bytes = field(repr=False)
    mode: int


def write_files(folder: NewFiles, files: Iterable[NewFile]) -> None:
    """Make all files, or none of them: a key without its certificate or request is of no use, and in the way."""
    begun: list[NewFile] = []
    try:
        for each in files:
            begun.append(each)
            folder.write_new(each.name, each.data, mode=each.mode)
    except BaseException:
        for each in reversed(begun):
            if folder.read(each.name) == each.data:
                folder.remove(each.name)
        raise


@dataclass(frozen=True, slots=True)
class IssuedPair:
    """A certificate and its private key; as a signer, a certificate authority."""

    certificate: "x509.Certificate"
    key: "PrivateKey" = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that exists but cannot be parsed."""

    reason: str


@dataclass(frozen=True, slots=True)
class ObservedPair:
    """What `<base name>.crt` and `<base name>.key` hold; None where there is no file."""

    base_name: str
    chain: "tuple[x509.Certificate, ...] | Unreadable | None" = None
    key: "PrivateKey | Unreadable | None" = field(default=None, repr=False)

    @property
    def certificate(self) -> "x509.Certificate | None":
        """The certificate the file is about; None when it is missing or cannot be read."""
        return self.chain[0] if isinstance(self.chain, tuple) else None

    @property
    def has_any_file(self) -> bool:
        return self.chain is not None or self.key is not None

    def as_signer(self) -> IssuedPair | None:
        """Return the pair as something that can sign; None when either half is missing or cannot be read."""
        if self.certificate is None or self.key is None or isinstance(self.key, Unreadable):
            return None
        return IssuedPair(self.certificate, self.key)


@dataclass(frozen=True, slots=True)
class ObservedServiceAccount:
    """What sa.key and sa.pub hold."""

    private: "PrivateKey | Unreadable | None" = field(default=None, repr=False)
    public: "PublicKey | Unreadable | None" = None


ObservedPairs: TypeAlias = Mapping[str, ObservedPair]
