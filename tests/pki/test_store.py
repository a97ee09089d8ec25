from cryptography.hazmat.primitives.asymmetric import ec

from garboard.pki import CERTIFICATES, KeyAlgorithm
from garboard.pki.files import ObservedServiceAccount, Unreadable, write_files
from garboard.pki.store import observe_pair, observe_pairs, observe_service_account, pair_files, service_account_files
from tests.support.pki.fixtures import INPUTS, KEYS, MemoryFolder, full_folder, issue_tree


def test_what_was_issued_is_observed() -> None:
    issued = issue_tree()
    folder = MemoryFolder()
    for spec in CERTIFICATES:
        write_files(folder, pair_files(spec.base_name, issued[spec.name]))
    for base_name, pair in observe_pairs(folder).items():
        found = pair.as_signer()
        assert found is not None
        name = next(spec.name for spec in CERTIFICATES if spec.base_name == base_name)
        assert found.certificate == issued[name].certificate
        assert found.key.private_numbers() == issued[name].key.private_numbers()


def test_file_modes_are_kubeadms() -> None:
    folder = full_folder()
    write_files(folder, service_account_files(KEYS.private_key(INPUTS.key_algorithm)))
    assert {mode for name, mode in folder.modes.items() if name.endswith(".crt")} == {0o644}
    assert {mode for name, mode in folder.modes.items() if name.endswith((".key", ".pub"))} == {0o600}
    assert {"etcd/healthcheck-client.crt", "apiserver-etcd-client.key", "sa.pub"} <= set(folder.modes)


def test_key_is_written_before_its_certificate() -> None:
    names = [file.name for file in pair_files("etcd/ca", issue_tree()["etcd-ca"])]
    assert names == ["etcd/ca.key", "etcd/ca.crt"]


def test_absent_and_unreadable_files_are_told_apart() -> None:
    pair = observe_pair(MemoryFolder({"ca.crt": b"rubbish"}), "ca")
    assert pair.chain == Unreadable("pki/ca.crt: no valid certificate in it")
    assert pair.key is None
    assert (pair.certificate, pair.has_any_file) == (None, True)


def test_certificate_without_key_cannot_sign() -> None:
    folder = full_folder()
    del folder.files["ca.key"]
    pair = observe_pair(folder, "ca")
    assert pair.certificate is not None
    assert pair.key is None
    assert pair.as_signer() is None


def test_service_account_keys_are_observed() -> None:
    assert observe_service_account(MemoryFolder()) == ObservedServiceAccount(None, None)
    folder = MemoryFolder()
    write_files(folder, service_account_files(KEYS.private_key(KeyAlgorithm.ECDSA_P256)))
    folder.files["sa.pub"] = b"?"
    found = observe_service_account(folder)
    assert isinstance(found.private, ec.EllipticCurvePrivateKey)
    assert found.public == Unreadable("pki/sa.pub: no RSA or ECDSA public key in it")


def test_secrets_stay_out_of_reprs() -> None:
    file = service_account_files(KEYS.private_key(KeyAlgorithm.ECDSA_P256))[0]
    assert "PRIVATE" not in repr(file)
