"""Private keys: where new ones come from, and how they are written and read."""

import os
import re
import secrets
from collections import defaultdict, deque
from collections.abc import Iterable
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from garboard.errors import InvalidValue
from garboard.lazy import lazy_module
from garboard.pki.inputs import KeyAlgorithm

# With it come logging and more, which commands that make no key need not load.
if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = lazy_module("concurrent.futures")

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_RSA_BITS = {KeyAlgorithm.RSA_2048: 2048, KeyAlgorithm.RSA_3072: 3072, KeyAlgorithm.RSA_4096: 4096}
_CURVES = {"secp256r1": KeyAlgorithm.ECDSA_P256, "secp384r1": KeyAlgorithm.ECDSA_P384}
_PRIVATE_KEY_BLOCK = re.compile(
    rb"-----BEGIN (RSA PRIVATE KEY|EC PRIVATE KEY|PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL
)
_PUBLIC_KEY_BLOCK = re.compile(rb"-----BEGIN (PUBLIC KEY)-----.*?-----END \1-----", re.DOTALL)


class KeySource(Protocol):
    """Where keys and serial numbers come from: the only randomness that issuing needs."""

    def private_key(self, algorithm: KeyAlgorithm) -> PrivateKey: ...

    def serial_number(self) -> int: ...


class SystemKeys:
    """Fresh keys and serial numbers from the operating system's randomness."""

    def private_key(self, algorithm: KeyAlgorithm) -> PrivateKey:
        return generate_key(algorithm)

    def serial_number(self) -> int:
        # Positive, and below the largest 63-bit number: the range kubeadm draws from.
        return secrets.randbelow(2**63 - 2) + 1


class PooledKeys(SystemKeys):
    """System keys, one for each of `algorithms` made ahead in threads: RSA generation leaves the interpreter free."""

    def __init__(self, algorithms: Iterable[KeyAlgorithm]) -> None:
        workers = max(1, min(4, os.cpu_count() or 1))
        self._pool = futures.ThreadPoolExecutor(workers, thread_name_prefix="keys")
        self._ready: defaultdict[KeyAlgorithm, deque[futures.Future[PrivateKey]]] = defaultdict(deque)
        for each in algorithms:
            self._ready[each].append(self._pool.submit(generate_key, each))

    def private_key(self, algorithm: KeyAlgorithm) -> PrivateKey:
        ready = self._ready[algorithm]
        return ready.popleft().result() if ready else generate_key(algorithm)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


def generate_key(algorithm: KeyAlgorithm) -> PrivateKey:
    """Return a new key of `algorithm`."""
    if algorithm in _RSA_BITS:
        return rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS[algorithm])
    return ec.generate_private_key(ec.SECP256R1() if algorithm is KeyAlgorithm.ECDSA_P256 else ec.SECP384R1())


def algorithm_of(key: object) -> KeyAlgorithm | None:
    """Return the algorithm of a public key, if it is one that new keys can have."""
    if isinstance(key, rsa.RSAPublicKey):
        return next((each for each, bits in _RSA_BITS.items() if bits == key.key_size), None)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return _CURVES.get(key.curve.name)
    return None


def private_key_pem(key: PrivateKey) -> bytes:
    """Return the key as kubeadm writes it: PKCS#1 for RSA, SEC 1 for ECDSA, never encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def public_key_pem(key: PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@lru_cache(maxsize=8)
def read_private_key(pem: bytes) -> PrivateKey:
    """Return the first RSA or ECDSA key in `pem`; other blocks, such as EC PARAMETERS, are passed over.

    The last ones are remembered: to check an RSA key takes 40 ms, and planning reads the keys of authorities twice.
    """
    for block in _PRIVATE_KEY_BLOCK.finditer(pem):
        try:
            key = serialization.load_pem_private_key(block[0] + b"\n", password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            return key
    raise InvalidValue("no unencrypted RSA or ECDSA private key in it", hint="write the key as PEM")


def read_public_key(pem: bytes) -> PublicKey:
    """Return the first RSA or ECDSA public key in `pem`."""
    for block in _PUBLIC_KEY_BLOCK.finditer(pem):
        try:
            key = serialization.load_pem_public_key(block[0] + b"\n")
        except (ValueError, UnsupportedAlgorithm):
            continue
        if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
            return key
    raise InvalidValue("no RSA or ECDSA public key in it", hint="write the key as PEM")
