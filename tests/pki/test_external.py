import pytest
from tests.pki.fixtures import NOW, MemoryFolder, full_folder

from garboard.pki import certificate
from garboard.pki.external import authority_state, external_authorities
from garboard.pki.store import observe_pairs


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
