"""Public keys of certificate authorities as `sha256:…`: how a node that joins knows the cluster it was told of."""

import hashlib

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from garboard.pki.chain import read_certificates


def authority_pins(pem: bytes) -> tuple[str, ...]:
    """Return the pin of every certificate in `pem`: the SHA-256 of its public key, with its algorithm, as DER."""
    keys = (each.public_key() for each in read_certificates(pem))
    encoded = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    return tuple(f"sha256:{hashlib.sha256(data).hexdigest()}" for data in encoded)
