import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import GarboardError, InvalidValue
from garboard.pki import KeyAlgorithm
from garboard.pki.files import write_files
from garboard.pki.store import service_account_files
from garboard.pki.transfer import ExternalEtcdFiles, decrypt, encrypt, opened_files, parse_certificate_key, shared_files
from tests.support.pki.fixtures import KEYS, MemoryFolder, full_folder, sealed_files

KEY = bytes(range(32))


def node() -> MemoryFolder:
    folder = full_folder()
    write_files(folder, service_account_files(KEYS.private_key(KeyAlgorithm.ECDSA_P256)))
    return folder


def test_layout_is_nonce_text_and_tag() -> None:
    # Test case 14 of the GCM specification (McGrew and Viega): AES-256, all zeros.
    sealed = encrypt(bytes(16), bytes(32), bytes(12))
    assert sealed.hex() == "00" * 12 + "cea7403d4d606b6e074ec5d3baf39d18" + "d0d1c8a799996bf0265b98b5d48ab919"


@given(st.binary(max_size=200), st.binary(min_size=32, max_size=32), st.binary(min_size=12, max_size=12))
def test_decrypting_undoes_encrypting(data: bytes, key: bytes, nonce: bytes) -> None:
    assert decrypt(encrypt(data, key, nonce), key) == data


@pytest.mark.parametrize(
    "data", [b"", b"short", encrypt(b"x", bytes(32), bytes(12)), encrypt(b"x", KEY, bytes(12))[:-1]]
)
def test_another_key_and_a_changed_text_are_refused(data: bytes) -> None:
    with pytest.raises(GarboardError, match="cannot be decrypted"):
        decrypt(data, KEY)


def test_shared_files_arrive_as_they_were_with_their_modes() -> None:
    source = node()
    files = shared_files()
    assert files["etcd-ca.key"] == "etcd/ca.key"
    secret = sealed_files(source, files, KEY, os.urandom)
    assert len({value[:12] for value in secret.values()}) == len(files) == 8
    arrived = {file.name: file for file in opened_files(secret, files, KEY)}
    assert {name: file.data for name, file in arrived.items()} == {name: source.files[name] for name in files.values()}
    assert {name for name, file in arrived.items() if file.mode == 0o600} == {
        "ca.key", "front-proxy-ca.key", "etcd/ca.key", "sa.key",
    }  # fmt: skip


def test_key_of_an_external_authority_is_neither_sent_nor_missed() -> None:
    source = node()
    del source.files["ca.key"]
    secret = sealed_files(source, shared_files(), KEY, os.urandom)
    assert secret["ca.key"] == b""
    assert "ca.key" not in {file.name for file in opened_files(secret, shared_files(), KEY)}


def test_external_etcd_sends_the_credentials_of_the_configuration() -> None:
    files = shared_files(ExternalEtcdFiles("/etcd/ca.crt", "/etcd/c.crt", "/etcd/c.key"))
    assert files["external-etcd.key"] == "/etcd/c.key"
    assert "etcd-ca.crt" not in files


def test_incomplete_secret_is_refused() -> None:
    secret = sealed_files(node(), shared_files(), KEY, os.urandom)
    with pytest.raises(GarboardError, match=r"does not hold the required sa\.pub"):
        opened_files({name: value for name, value in secret.items() if name != "sa.pub"}, shared_files(), KEY)
    with pytest.raises(GarboardError, match=r"neither key nor certificate under sa\.pub"):
        opened_files({**secret, "sa.pub": encrypt(b"?", KEY, bytes(12))}, shared_files(), KEY)


@pytest.mark.parametrize("text", ["", "abc", "zz" * 32, "00" * 31, "00" * 33, "é" * 64])
def test_other_text_is_no_certificate_key(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_certificate_key(text)
    assert not text or text not in caught.value.message


def test_certificate_key_is_read() -> None:
    assert parse_certificate_key(KEY.hex()) == KEY
