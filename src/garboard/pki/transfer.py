"""Sharing certificates between control-plane nodes: encrypted in the Secret kubeadm-certs, as kubeadm does it."""

import binascii
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from garboard.errors import GarboardError, InvalidValue
from garboard.pki.chain import read_certificates
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE, NewFile
from garboard.pki.keys import read_private_key, read_public_key

NONCE_BYTES = 12
_KEY_BYTES = (16, 24, 32)

_ALWAYS = ("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key")
_LOCAL_ETCD = ("etcd/ca.crt", "etcd/ca.key")
_MODES: tuple[tuple[Callable[[bytes], object], int], ...] = (
    (read_private_key, SECRET_MODE),
    (read_public_key, CERTIFICATE_MODE),
    (read_certificates, CERTIFICATE_MODE),
)


@dataclass(frozen=True, slots=True)
class ExternalEtcdFiles:
    """Where the configuration says that the credentials for an external etcd are."""

    ca: str
    certificate: str
    key: str


def shared_files(external_etcd: ExternalEtcdFiles | None = None) -> dict[str, str]:
    """Return the files that control-plane nodes share, by the key of the Secret that holds each."""
    if external_etcd is None:
        return {name.replace("/", "-"): name for name in (*_ALWAYS, *_LOCAL_ETCD)}
    return {
        **{name: name for name in _ALWAYS},
        "external-etcd-ca.crt": external_etcd.ca,
        "external-etcd.crt": external_etcd.certificate,
        "external-etcd.key": external_etcd.key,
    }


def parse_certificate_key(text: str) -> bytes:
    """Return the encryption key that `text` spells in hexadecimal digits; the text itself is never shown."""
    try:
        key = binascii.unhexlify(text.encode())
    except ValueError:
        key = b""
    if len(key) not in _KEY_BYTES:
        raise InvalidValue(
            "the certificate key is not 32 bytes in hexadecimal digits",
            hint="make one with `garboard certs certificate-key`",
        )
    return key


def encrypt(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Return the nonce, then the text encrypted with AES-GCM, then its tag."""
    return nonce + AESGCM(key).encrypt(nonce, data, None)


def decrypt(data: bytes, key: bytes) -> bytes:
    """Return what `encrypt` was given; another key, or a changed byte, is refused."""
    try:
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
    except (InvalidTag, ValueError):
        raise GarboardError(
            "the shared certificates cannot be decrypted with this certificate key",
            hint="use the key that was printed when they were uploaded, or upload them again",
            error_class="wrong-key",
        ) from None


def opened_files(secret: Mapping[str, bytes], files: Mapping[str, str], key: bytes) -> tuple[NewFile, ...]:
    """Return the decrypted files of a Secret; all of them are decrypted and checked before any can be written."""
    missing = [name for name in files if name not in secret]
    if missing:
        raise GarboardError(
            f"the Secret does not hold the required {', '.join(missing)}",
            hint="upload the certificates again",
            error_class="incomplete-secret",
        )
    data = {name: decrypt(value, key) if value else b"" for name, value in secret.items()}
    return tuple(_file(name, path, data[name]) for name, path in files.items() if data[name])


def _file(name: str, path: str, data: bytes) -> NewFile:
    for read, mode in _MODES:
        with contextlib.suppress(InvalidValue):
            read(data)
            return NewFile(path, data, mode)
    raise GarboardError(
        f"the Secret holds neither key nor certificate under {name}",
        hint="upload the certificates again",
        error_class="incomplete-secret",
    )
