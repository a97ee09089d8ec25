import pytest
from cryptography import x509

from garboard.errors import GarboardError
from garboard.pki.keys import read_private_key
from garboard.pki.signing_requests import (
    CERTIFICATE_REQUEST_FILES,
    KUBECONFIG_REQUEST_FILES,
    certificate_requests,
    kubeconfig_requests,
    refuse_to_overwrite,
)
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, MemoryFolder


def test_every_leaf_gets_a_key_and_a_request_for_that_key() -> None:
    files = {file.name: file.data for file in certificate_requests(INPUTS, KEYS, NOW)}
    assert len(files) == 14
    for name in [each.removesuffix(".csr") for each in files if each.endswith(".csr")]:
        csr = x509.load_pem_x509_csr(files[f"{name}.csr"])
        assert csr.is_signature_valid
        assert csr.public_key() == read_private_key(files[f"{name}.key"]).public_key()
    assert x509.load_pem_x509_csr(files["etcd/peer.csr"]).subject.rfc4514_string() == "CN=node-1"


def test_every_kubeconfig_has_a_request_beside_it() -> None:
    names = [file.name for file in kubeconfig_requests(INPUTS, KEYS, NOW)]
    assert names[:4] == ["admin.conf", "admin.conf.csr", "super-admin.conf", "super-admin.conf.csr"]
    assert len(names) == 10


def test_nothing_is_overwritten() -> None:
    assert tuple(file.name for file in certificate_requests(INPUTS, KEYS, NOW)) == CERTIFICATE_REQUEST_FILES
    assert tuple(file.name for file in kubeconfig_requests(INPUTS, KEYS, NOW)) == KUBECONFIG_REQUEST_FILES
    refuse_to_overwrite(MemoryFolder(), CERTIFICATE_REQUEST_FILES)
    with pytest.raises(GarboardError, match=r"file already exists: pki/etcd/peer\.key$"):
        refuse_to_overwrite(MemoryFolder({"etcd/peer.key": b""}), CERTIFICATE_REQUEST_FILES)
