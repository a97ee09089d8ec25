import pytest

from garboard.pki import KeyAlgorithm, certificate
from garboard.pki.external import SharedCertificates, authority_state, external_authorities, shared_certificates
from garboard.pki.files import write_files
from garboard.pki.store import observe_pairs, observe_service_account, service_account_files
from tests.pki.fixtures import KEYS, NOW, MemoryFolder, full_folder


def without(*names: str) -> MemoryFolder:
    folder = full_folder()
    for name in names:
        del folder.files[name]
    return folder


def test_authority_with_its_key_is_not_external() -> None:
    assert external_authorities(observe_pairs(full_folder()), NOW) == ()


@pytest.mark.parametrize("name", ["ca", "front-proxy-ca", "etcd-ca"])
def test_authority_without_key_is_external(name: str) -> None:
    folder = without(f"{certificate(name).base_name}.key")
    (state,) = external_authorities(observe_pairs(folder), NOW)
    assert (state.name, state.problem) == (name, None)


@pytest.mark.parametrize(
    ("name", "missing"), [("ca", "apiserver-kubelet-client.key"), ("etcd-ca", "etcd/peer.crt"), ("ca", "apiserver.crt")]
)
def test_external_authority_needs_everything_it_signs(name: str, missing: str) -> None:
    folder = without(f"{certificate(name).base_name}.key", missing)
    state = authority_state(name, observe_pairs(folder), NOW)
    assert state.is_external
    assert state.problem is not None
    assert missing in state.problem


def test_leaf_of_another_authority_is_a_problem() -> None:
    folder = without("front-proxy-ca.key")
    folder.files["front-proxy-client.crt"] = folder.files["apiserver.crt"]
    state = authority_state("front-proxy-ca", observe_pairs(folder), NOW)
    assert state.problem is not None
    assert "not signed by corresponding CA" in state.problem


def test_missing_authority_and_one_that_is_none_are_problems() -> None:
    assert authority_state("ca", observe_pairs(MemoryFolder()), NOW).problem == (
        "failure loading certificate for ca: there is no ca.crt"
    )
    folder = full_folder()
    folder.files["ca.crt"] = folder.files["apiserver.crt"]
    assert authority_state("ca", observe_pairs(folder), NOW).problem == "certificate ca is not a CA"


def shared(folder: MemoryFolder, *, has_external_etcd: bool = False) -> SharedCertificates:
    return shared_certificates(
        observe_pairs(folder), observe_service_account(folder), has_external_etcd=has_external_etcd
    )


def with_service_account(folder: MemoryFolder, public: KeyAlgorithm = KeyAlgorithm.ECDSA_P256) -> MemoryFolder:
    write_files(folder, service_account_files(KEYS.private_key(KeyAlgorithm.ECDSA_P256)))
    if public is not KeyAlgorithm.ECDSA_P256:
        folder.files["sa.pub"] = service_account_files(KEYS.private_key(public))[1].data
    return folder


def test_joining_node_that_was_given_everything_can_join() -> None:
    assert shared(with_service_account(full_folder())) == SharedCertificates((), ())


def test_authority_without_key_is_a_warning_for_a_joining_node() -> None:
    found = shared(with_service_account(without("etcd/ca.key")))
    assert (found.problems, len(found.warnings)) == ((), 1)


def test_everything_that_was_not_given_is_listed_at_once() -> None:
    assert shared(MemoryFolder()).problems == (
        "failure loading certificate for ca: there is no ca.crt",
        "failure loading certificate for front-proxy-ca: there is no front-proxy-ca.crt",
        "failure loading certificate for etcd-ca: there is no etcd/ca.crt",
        "failure loading key for service account: there is no sa.key",
    )
    assert len(shared(MemoryFolder(), has_external_etcd=True).problems) == 3


def test_service_account_keys_of_two_kinds_are_a_problem() -> None:
    (problem,) = shared(with_service_account(full_folder(), KeyAlgorithm.RSA_2048)).problems
    assert "is an ECDSA key, but the public key sa.pub is not" in problem
    folder = with_service_account(full_folder())
    folder.files["sa.pub"] = b"?"
    assert "sa.pub: no RSA or ECDSA public key" in shared(folder).problems[0]
