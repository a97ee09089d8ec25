"""What the certificate folder was found to hold. Who found nothing need not load what reads certificates."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from garboard.values import dataclass

if TYPE_CHECKING:
    from cryptography import x509

    from garboard.pki.issue import IssuedPair
    from garboard.pki.keys import PrivateKey, PublicKey


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there and does not hold what it should."""

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

    @property
    def is_keyless(self) -> bool:
        """A certificate authority whose key is kept elsewhere."""
        return self.certificate is not None and self.key is None

    def as_signer(self) -> "IssuedPair | None":
        from garboard.pki.issue import IssuedPair

        if self.certificate is None or self.key is None or isinstance(self.key, Unreadable):
            return None
        return IssuedPair(self.certificate, self.key)


@dataclass(frozen=True, slots=True)
class ObservedServiceAccount:
    """What sa.key and sa.pub hold."""

    private: "PrivateKey | Unreadable | None" = field(default=None, repr=False)
    public: "PublicKey | Unreadable | None" = None


ObservedPairs: TypeAlias = Mapping[str, ObservedPair]
