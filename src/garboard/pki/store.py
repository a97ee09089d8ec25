"""The certificate folder: which files there are, and what they hold."""

from collections.abc import Callable
from typing import TypeVar

from garboard.errors import GarboardError
from garboard.pki.chain import read_certificates
from garboard.pki.files import (
    CERTIFICATE_MODE,
    SECRET_MODE,
    Folder,
    IssuedPair,
    NewFile,
    ObservedPair,
    ObservedPairs,
    ObservedServiceAccount,
    Unreadable,
)
from garboard.pki.issue import certificate_pem
from garboard.pki.keys import PrivateKey, private_key_pem, public_key_pem, read_private_key, read_public_key
from garboard.pki.spec import CERTIFICATES, SERVICE_ACCOUNT_BASE_NAME

Value = TypeVar("Value")


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
