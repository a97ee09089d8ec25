from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from garboard.errors import NotReady
from garboard.pki import CERTIFICATES, KeyAlgorithm, certificate
from garboard.pki.decide import (
    Decision,
    Generate,
    Keep,
    Refuse,
    Skip,
    authority_state,
    decide_for_join,
    decide_one_for_init,
    decide_service_account,
    external_authorities,
    refuse_problems,
    warnings_of,
)
from garboard.pki.issue import certificate_pem
from garboard.pki.keys import private_key_pem
from garboard.pki.store import observe_pairs, observe_service_account
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, MemoryFolder, decide_for_init, full_folder, issue_tree

LATER = NOW + timedelta(days=400)  # leafs have expired, CAs have not
MUCH_LATER = NOW + timedelta(days=4000)


def for_init(folder: MemoryFolder, **changes: object) -> dict[str, Decision]:
    now = changes.pop("now", NOW)
    inputs = replace(INPUTS, **changes)  # type: ignore[arg-type]
    return {each.name: each for each in decide_for_init(observe_pairs(folder), inputs, now)}  # type: ignore[arg-type]


def for_join(folder: MemoryFolder, **changes: object) -> dict[str, Decision]:
    inputs = replace(INPUTS, **changes)  # type: ignore[arg-type]
    return {each.name: each for each in decide_for_join(observe_pairs(folder), inputs, NOW)}


def without(*names: str) -> MemoryFolder:
    folder = full_folder()
    for name in names:
        del folder.files[name]
    return folder


def test_empty_folder_gets_everything() -> None:
    assert list(for_init(MemoryFolder()).values()) == [Generate(spec.name) for spec in CERTIFICATES]


def test_full_folder_is_kept_whatever_the_names_are_now() -> None:
    decisions = for_init(full_folder(), node_name="another", api_server_cert_sans=("new.example",))
    assert {type(each) for each in decisions.values()} == {Keep}
    assert decisions["apiserver"] == Keep("apiserver", "Using existing apiserver certificate and key on disk")
    assert decisions["etcd-ca"] == Keep("etcd-ca", "Using existing etcd/ca certificate authority")


def test_missing_leaf_of_an_existing_ca_is_issued() -> None:
    decisions = for_init(without("apiserver.crt", "apiserver.key"))
    assert [name for name, each in decisions.items() if isinstance(each, Generate)] == ["apiserver"]


def test_external_etcd_skips_what_etcd_signs() -> None:
    decisions = for_init(MemoryFolder(), has_external_etcd=True)
    assert decisions["etcd-ca"] == Skip(
        "etcd-ca", "External etcd mode: Skipping etcd/ca certificate authority generation"
    )
    assert {name for name, each in decisions.items() if isinstance(each, Skip)} == {
        spec.name for spec in CERTIFICATES if spec.is_etcd
    }


def test_leaf_of_a_ca_that_is_to_be_made_is_refused() -> None:
    refused = for_init(without("ca.crt", "ca.key"))["apiserver"]
    assert isinstance(refused, Refuse)
    assert "apiserver not signed by CA certificate ca" in refused.reason


@pytest.mark.parametrize(
    ("change", "name", "reason"),
    [
        pytest.param(lambda f: f.pop("ca.crt"), "ca", "ca certificate: there is no ca.crt", id="key alone"),
        pytest.param(lambda f: f.update({"ca.crt": b"?"}), "ca", "ca.crt: no valid certificate", id="unreadable CA"),
        pytest.param(lambda f: f.pop("apiserver.crt"), "apiserver", "there is no apiserver.crt", id="leaf key alone"),
        pytest.param(
            lambda f: f.update({"apiserver.crt": b"?", "apiserver.key": b"?"}),
            "apiserver",
            "failure loading apiserver key: pki/apiserver.key",
            id="unreadable leaf",
        ),
        pytest.param(
            lambda f: (f.pop("ca.key"), f.pop("apiserver.crt"), f.pop("apiserver.key")),
            "apiserver",
            "couldn't load CA certificate ca: there is no ca.key",
            id="nothing to sign with",
        ),
        pytest.param(
            lambda f: (f.update({"ca.key": f["etcd/ca.key"]}), f.pop("apiserver.crt"), f.pop("apiserver.key")),
            "apiserver",
            "ca.key does not belong to ca.crt",
            id="key of another CA",
        ),
        pytest.param(
            lambda f: f.update({"apiserver.crt": f["etcd/server.crt"]}),
            "apiserver",
            "certificate signed by unknown authority",
            id="signed by another CA",
        ),
    ],
)  # fmt: skip
def test_unusable_files_are_refused(change: Callable[[dict[str, bytes]], object], name: str, reason: str) -> None:
    folder = full_folder()
    change(folder.files)
    refused = for_init(folder)[name]
    assert isinstance(refused, Refuse)
    assert reason in refused.reason


def test_key_of_a_kept_leaf_is_not_needed_but_a_wrong_one_is_told() -> None:
    assert isinstance(for_init(without("apiserver.key"))["apiserver"], Keep)
    folder = full_folder()
    folder.files["apiserver.key"] = private_key_pem(KEYS.private_key(KeyAlgorithm.ECDSA_P256))
    kept = for_init(folder)["apiserver"]
    assert isinstance(kept, Keep)
    assert kept.warnings == ("apiserver.key does not belong to apiserver.crt",)


def test_expired_leaf_is_refused_and_expired_ca_only_warned_about() -> None:
    decisions = for_init(full_folder(), now=LATER)
    assert isinstance(decisions["ca"], Keep)
    assert isinstance(decisions["apiserver"], Refuse)
    old = without("apiserver.crt", "apiserver.key")
    ca, leaf = (for_init(old, now=MUCH_LATER)[name] for name in ("ca", "apiserver"))
    assert isinstance(ca, Keep)
    assert ca.warnings[0].startswith("could not validate bounds for certificate ca: the certificate has expired")
    assert isinstance(leaf, Generate)
    told = warnings_of(for_init(old, now=MUCH_LATER).values())
    assert len(told) == len(set(told)) == 3


def test_names_that_are_none_are_warned_about() -> None:
    issued = for_init(MemoryFolder(), api_server_cert_sans=("Bad_Name", "good.example"))["apiserver"]
    assert isinstance(issued, Generate)
    assert len(issued.warnings) == 1
    assert "'Bad_Name' was not added" in issued.warnings[0]


def test_single_phase_needs_its_ca_on_disk() -> None:
    decision = decide_one_for_init(certificate("apiserver"), observe_pairs(MemoryFolder()), INPUTS, NOW)
    assert decision == Refuse("apiserver", "couldn't load CA certificate ca: there is no ca.crt")


def test_join_checks_names_and_keys_of_what_it_finds() -> None:
    assert {type(each) for each in for_join(full_folder()).values()} == {Keep}
    other = for_join(full_folder(), node_name="node-2")
    assert other["apiserver"] == Refuse("apiserver", "certificate apiserver is invalid: it is not valid for node-2")
    assert isinstance(other["front-proxy-client"], Keep)
    assert isinstance(for_join(without("apiserver.key"))["apiserver"], Refuse)


def test_join_makes_leafs_from_the_shared_authorities() -> None:
    shared = {"ca", "front-proxy-ca", "etcd/ca"}
    folder = full_folder()
    folder.files = {name: data for name, data in folder.files.items() if name.rpartition(".")[0] in shared}
    decisions = for_join(folder)
    assert {name for name, each in decisions.items() if isinstance(each, Keep)} == {"ca", "front-proxy-ca", "etcd-ca"}
    assert {type(each) for each in decisions.values()} == {Keep, Generate}


def test_join_with_a_ca_without_key_needs_every_leaf() -> None:
    assert isinstance(for_join(without("ca.key"))["apiserver"], Keep)
    refused = for_join(without("ca.key", "apiserver.crt", "apiserver.key"))["apiserver"]
    assert refused == Refuse("apiserver", "failure loading apiserver key: there is no apiserver.key")


def test_join_refuses_an_authority_that_is_none() -> None:
    folder = full_folder()
    folder.files["ca.crt"] = certificate_pem(issue_tree()["apiserver"].certificate)
    assert for_join(folder)["ca"] == Refuse("ca", "certificate 'ca' is not a CA")


def test_service_account_key_is_kept_when_it_can_be_read() -> None:
    pem = private_key_pem(KEYS.private_key(KeyAlgorithm.ECDSA_P256))
    assert decide_service_account(observe_service_account(MemoryFolder())) == Generate("sa")
    kept = decide_service_account(observe_service_account(MemoryFolder({"sa.key": pem, "sa.pub": b"?"})))
    assert kept == Keep("sa", 'Using the existing "sa" key')
    refused = decide_service_account(observe_service_account(MemoryFolder({"sa.key": b"?"})))
    assert isinstance(refused, Refuse)
    external = decide_service_account(observe_service_account(MemoryFolder()), has_external_ca=True)
    assert external == Skip("sa", "Using existing sa keys")


def test_all_refusals_are_told_together() -> None:
    decisions = for_init(MemoryFolder({"ca.crt": b"?", "etcd/ca.crt": b"?"})).values()
    with pytest.raises(NotReady, match=r"pki/ca\.crt.*pki/etcd/ca\.crt"):
        refuse_problems(decisions)


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
