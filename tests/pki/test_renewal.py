from datetime import timedelta

import pytest

from garboard.errors import GarboardError, InvalidValue
from garboard.pki import KeyAlgorithm
from garboard.pki.chain import chain_problem, names_of, read_certificates
from garboard.pki.files import write_files
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.renewal import External, Missing, Renew, decide_renewal, renewable, renewables, renewed_files
from garboard.pki.store import observe_pair
from tests.pki.fixtures import KEYS, NOW, MemoryFolder
from tests.pki.test_expiration import full_node, observe

LATER = NOW + timedelta(days=300)
VALIDITY = timedelta(hours=100)


def renew(pki: MemoryFolder, conf: MemoryFolder, name: str) -> None:
    observed = observe(pki, conf)
    decision = decide_renewal(renewable(name), observed, VALIDITY, LATER)
    assert isinstance(decision, Renew)
    target = conf if decision.target.is_kubeconfig else pki
    write_files(target, renewed_files(decision, observed, KeyAlgorithm.ECDSA_P384, KEYS))


def test_what_can_be_renewed() -> None:
    assert [each.name for each in renewables()] == [
        "admin.conf", "apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "controller-manager.conf",
        "etcd-healthcheck-client", "etcd-peer", "etcd-server", "front-proxy-client", "scheduler.conf",
        "super-admin.conf",
    ]  # fmt: skip
    assert not [each.name for each in renewables(has_external_etcd=True) if "etcd" in each.name]
    with pytest.raises(InvalidValue, match="'ca' cannot be renewed"):
        renewable("ca")


@pytest.mark.parametrize("name", [each.name for each in renewables() if not each.is_kubeconfig])
def test_renewed_certificate_says_what_it_said(name: str) -> None:
    pki, conf = full_node()
    spec = next(each for each in renewables() if each.name == name)
    base = next(key for key in observe(pki, conf).pairs if key.replace("/", "-") == name)
    before = observe_pair(pki, base)
    renew(pki, conf, name)
    after = observe_pair(pki, base)
    assert before.certificate is not None
    assert after.certificate is not None
    assert after.certificate.subject == before.certificate.subject
    assert names_of(after.certificate) == names_of(before.certificate)
    assert [e.oid for e in after.certificate.extensions] == [e.oid for e in before.certificate.extensions]
    assert after.certificate.not_valid_after_utc == (LATER + VALIDITY).replace(microsecond=0)
    assert after.certificate.not_valid_before_utc == (LATER - timedelta(minutes=5)).replace(microsecond=0)
    assert after.certificate.public_key() != before.certificate.public_key()
    signer = after.as_signer()
    assert signer is not None
    assert signer.key.public_key() == after.certificate.public_key()
    assert signer.key.key_size == 384
    assert spec.message.endswith(" renewed")


def test_renewed_kubeconfig_keeps_user_and_server_and_takes_the_ca_of_the_disk() -> None:
    pki, conf = full_node()
    old = conf.files["admin.conf"]
    replacement, _ = full_node()
    pki.files.update({name: replacement.files[name] for name in ("ca.crt", "ca.key")})
    renew(pki, conf, "admin.conf")
    current = read_kubeconfig(conf.files["admin.conf"], "admin.conf")
    assert current.server == read_kubeconfig(old, "admin.conf").server
    assert current.ca == pki.files["ca.crt"]
    (client,) = read_certificates(current.client_certificate)
    assert client.subject.rfc4514_string() == "CN=kubernetes-admin,O=kubeadm:cluster-admins"
    assert chain_problem([client], read_certificates(pki.files["ca.crt"])[0], LATER) is None


def test_missing_is_told_and_no_failure() -> None:
    pki, conf = full_node()
    del pki.files["apiserver.crt"], conf.files["scheduler.conf"]
    for name in ("apiserver", "scheduler.conf"):
        decision = decide_renewal(renewable(name), observe(pki, conf), VALIDITY, LATER)
        assert isinstance(decision, Missing)
        assert decision.message == f"MISSING! {renewable(name).summary}"


def test_external_ca_cannot_renew() -> None:
    pki, conf = full_node()
    del pki.files["etcd/ca.key"]
    decision = decide_renewal(renewable("etcd-server"), observe(pki, conf), VALIDITY, LATER)
    assert isinstance(decision, External)
    assert decision.message == "Detected external etcd/ca, certificate for serving etcd can't be renewed"


def test_unusable_files_are_refused() -> None:
    pki, conf = full_node()
    pki.files["apiserver.crt"] = b"?"
    with pytest.raises(GarboardError, match="failed to load existing certificate apiserver"):
        decide_renewal(renewable("apiserver"), observe(pki, conf), VALIDITY, LATER)
    pki, conf = full_node()
    pki.files["ca.key"] = b"?"
    with pytest.raises(GarboardError, match="failure loading ca certificate authority"):
        renew(pki, conf, "apiserver")
