"""What an external authority signs is asked for by the very names, and looked at before it takes its place."""

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509

from garboard.pki import PkiInputs, certificate
from garboard.pki.external import WaitingFiles, asks_for, new_request, signed_problem
from garboard.pki.files import IssuedPair, write_files
from garboard.pki.issue import certificate_pem, sign_certificate
from garboard.pki.keys import private_key_pem, read_private_key
from garboard.pki.spec import CertSpec
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, MemoryFolder, issue_tree

TREE, OTHER_TREE = issue_tree(), issue_tree()
API, ETCD = certificate("apiserver"), certificate("etcd-server")
WIDER = replace(INPUTS, api_server_cert_sans=("api.example.com",))


def waiting(spec: CertSpec = API, inputs: PkiInputs = WIDER) -> WaitingFiles:
    folder = MemoryFolder()
    write_files(folder, new_request(spec, inputs, KEYS, NOW))
    assert set(folder.modes.values()) == {0o600}
    return WaitingFiles.read(folder, spec)


def signed(
    found: WaitingFiles,
    spec: CertSpec = API,
    inputs: PkiInputs = WIDER,
    *,
    signer: IssuedPair = TREE["ca"],
    **more: object,
) -> WaitingFiles:
    """Return what waits with a certificate for its key."""
    key = read_private_key(found.key or b"")
    request = replace(spec.request(inputs, NOW), **more)  # type: ignore[arg-type]
    return replace(found, certificate=certificate_pem(sign_certificate(request, key.public_key(), signer, KEYS)))


def problem(
    found: WaitingFiles, spec: CertSpec = API, inputs: PkiInputs = WIDER, *, former: IssuedPair | None = None
) -> str | None:
    return signed_problem(
        found,
        spec,
        inputs,
        authority=certificate_pem(TREE[spec.ca or ""].certificate),
        former=certificate_pem(former.certificate) if former else None,
        now=NOW,
    )


@pytest.mark.parametrize("spec", [API, ETCD, certificate("etcd-peer")], ids=lambda each: each.name)
def test_what_was_asked_for_and_signed_takes_its_place(spec: CertSpec) -> None:
    found = waiting(spec)
    assert asks_for(found, spec, WIDER)
    assert problem(found, spec) == "it is not there yet"
    assert problem(signed(found, spec, signer=TREE[spec.ca or ""]), spec) is None


def test_a_request_has_the_names_and_the_subject() -> None:
    found = x509.load_pem_x509_csr(waiting().csr or b"")
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "api.example.com" in names.get_values_for_type(x509.DNSName)
    assert found.subject.rfc4514_string() == "CN=kube-apiserver"


def test_a_request_for_other_names_or_another_key_is_none_for_this() -> None:
    assert not asks_for(waiting(inputs=INPUTS), API, WIDER)
    assert not asks_for(replace(waiting(), key=waiting().key), API, WIDER)
    for broken in (replace(waiting(), csr=None), replace(waiting(), key=None), replace(waiting(), csr=b"x")):
        assert not asks_for(broken, API, WIDER)


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ("it lacks the names api.example.com", {"alt_names": API.all_names(INPUTS)}),
        ("it lacks the extended key usages serverAuth", {"usages": ("1.3.6.1.5.5.7.3.2",)}),
        ("has expired or is not yet valid", {"not_after": NOW - timedelta(minutes=1)}),
        ("has expired or is not yet valid", {"not_before": NOW + timedelta(hours=1)}),
    ],
)
def test_what_was_signed_otherwise_is_told(told: str, more: dict[str, object]) -> None:
    assert told in (problem(signed(waiting(), **more)) or "")  # type: ignore[arg-type]


def test_a_certificate_for_every_usage_will_do() -> None:
    assert problem(signed(waiting(), usages=("2.5.29.37.0",))) is None
    assert problem(signed(waiting(), usages=(*API.usages, "1.3.6.1.5.5.7.3.2"))) is None


def test_another_authority_or_another_key_is_told() -> None:
    found = waiting()
    assert "signed by unknown authority" in (problem(signed(found, signer=OTHER_TREE["ca"])) or "")
    assert "signed by unknown authority" in (problem(signed(found, signer=TREE["etcd-ca"])) or "")
    other = replace(signed(waiting()), key=private_key_pem(KEYS.private_key(INPUTS.key_algorithm)))
    assert problem(other) == "it is for another key than the one that waits for it"
    assert problem(replace(found, certificate=b"nothing")) == "no valid certificate in it"


def test_a_name_that_is_taken_out_must_have_gone_and_one_that_the_authority_adds_may_stay() -> None:
    former = replace(
        TREE["apiserver"], certificate=x509.load_pem_x509_certificate(signed(waiting()).certificate or b"")
    )
    found = waiting(inputs=INPUTS)
    kept = problem(signed(found, inputs=WIDER), inputs=INPUTS, former=former)
    assert kept == "it still has the names api.example.com, which are taken out"
    assert problem(signed(found, inputs=INPUTS), inputs=INPUTS, former=former) is None
    added = replace(WIDER, api_server_cert_sans=("added.example.com",))
    assert problem(signed(found, inputs=added), inputs=INPUTS, former=former) is None
