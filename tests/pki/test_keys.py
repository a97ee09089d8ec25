import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from garboard.errors import InvalidValue
from garboard.pki import KeyAlgorithm
from garboard.pki.keys import (
    PooledKeys,
    SystemKeys,
    algorithm_of,
    generate_key,
    private_key_pem,
    public_key_pem,
    read_private_key,
    read_public_key,
)


@pytest.mark.parametrize(
    ("algorithm", "size"),
    [
        (KeyAlgorithm.RSA_2048, 2048),
        (KeyAlgorithm.RSA_3072, 3072),
        (KeyAlgorithm.ECDSA_P256, 256),
        (KeyAlgorithm.ECDSA_P384, 384),
    ],
)
def test_written_key_reads_back(algorithm: KeyAlgorithm, size: int) -> None:
    key = generate_key(algorithm)
    assert key.key_size == size
    pem = private_key_pem(key)
    word = b"RSA" if isinstance(key, rsa.RSAPrivateKey) else b"EC"
    assert pem.startswith(b"-----BEGIN " + word + b" PRIVATE KEY-----\n")
    assert private_key_pem(read_private_key(pem)) == pem
    assert algorithm_of(key.public_key()) is algorithm
    assert read_public_key(public_key_pem(key.public_key())) == key.public_key()


def test_key_behind_other_blocks_and_in_pkcs8_is_read() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pkcs8 = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert read_private_key(parameters + pkcs8).public_key() == key.public_key()


def _ed25519() -> bytes:
    return ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _encrypted() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"secret"),
    )


@pytest.mark.parametrize(
    "pem",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", id="broken"),
        pytest.param(_ed25519(), id="another algorithm"),
        pytest.param(_encrypted(), id="encrypted"),
    ],
)
def test_other_content_is_refused_without_being_shown(pem: bytes) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_private_key(pem)
    assert "AAAA" not in caught.value.message
    with pytest.raises(InvalidValue):
        read_public_key(pem)


def test_serial_numbers_are_positive_and_below_63_bits() -> None:
    serials = [SystemKeys().serial_number() for _ in range(200)]
    assert all(1 <= each < 2**63 - 1 for each in serials)
    assert len(set(serials)) == len(serials)
    assert any(each >= 2**61 for each in serials)


def test_pool_hands_out_different_keys_and_more_than_it_prepared() -> None:
    with PooledKeys([KeyAlgorithm.ECDSA_P256] * 2) as keys:
        made = [keys.private_key(KeyAlgorithm.ECDSA_P256) for _ in range(3)]
        assert keys.private_key(KeyAlgorithm.ECDSA_P384).key_size == 384
    assert len({private_key_pem(each) for each in made}) == 3


def test_key_that_new_ones_cannot_be_like_has_no_algorithm() -> None:
    assert algorithm_of(ec.generate_private_key(ec.SECP521R1()).public_key()) is None
    assert algorithm_of(ed25519.Ed25519PrivateKey.generate().public_key()) is None
