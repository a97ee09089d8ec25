from datetime import timedelta

import pytest

from garboard.errors import BadUsage, GarboardError, InvalidValue
from garboard.pki import KeyAlgorithm
from garboard.pki.renewal import (
    External,
    NothingToRenew,
    Renew,
    decide_renewal,
    decide_renewals,
    renewable,
    renewables,
)
from tests.support.pki.fixtures import NOW
from tests.support.pki.nodes import full_node, observe

LATER = NOW + timedelta(days=300)
VALIDITY = timedelta(hours=100)


def test_what_can_be_renewed() -> None:
    assert [each.name for each in renewables()] == [
        "admin.conf", "apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "controller-manager.conf",
        "etcd-healthcheck-client", "etcd-peer", "etcd-server", "front-proxy-client", "scheduler.conf",
        "super-admin.conf",
    ]  # fmt: skip
    assert not [each.name for each in renewables(has_external_etcd=True) if "etcd" in each.name]
    with pytest.raises(BadUsage, match="'ca' cannot be renewed"):
        renewable("ca")


def test_everything_of_a_whole_node_is_renewed_from_its_own_authority() -> None:
    pki, conf = full_node()
    decisions = decide_renewals(renewables(), observe(pki, conf), VALIDITY, LATER)
    assert [type(each) for each in decisions] == [Renew] * len(renewables())
    authorities = {each.target.name: each.target.ca for each in decisions}
    assert authorities["etcd-server"] == authorities["apiserver-etcd-client"] == "etcd-ca"
    assert (authorities["front-proxy-client"], authorities["admin.conf"]) == ("front-proxy-ca", "ca")
    assert all(each.message.endswith(" renewed") for each in decisions)


def test_content_and_algorithm_are_those_of_the_certificate_that_is_there() -> None:
    pki, conf = full_node()
    decision = decide_renewal(renewable("admin.conf"), observe(pki, conf), LATER)
    assert isinstance(decision, Renew)
    assert (decision.content.common_name, decision.content.organizations) == (
        "kubernetes-admin",
        ("kubeadm:cluster-admins",),
    )
    assert decision.found_algorithm is KeyAlgorithm.ECDSA_P256
    request = decision.content.request(LATER, VALIDITY)
    assert (request.not_before, request.not_after) == (LATER - timedelta(minutes=5), LATER + VALIDITY)


def test_missing_is_told_and_no_failure() -> None:
    pki, conf = full_node()
    del pki.files["apiserver.crt"], conf.files["scheduler.conf"]
    for name in ("apiserver", "scheduler.conf"):
        decision = decide_renewal(renewable(name), observe(pki, conf), LATER)
        assert isinstance(decision, NothingToRenew)
        assert decision.message == f"MISSING! {renewable(name).summary}"


def test_external_ca_cannot_renew() -> None:
    pki, conf = full_node()
    del pki.files["etcd/ca.key"]
    decision = decide_renewal(renewable("etcd-server"), observe(pki, conf), LATER)
    assert isinstance(decision, External)
    assert decision.message == "Detected external etcd/ca, certificate for serving etcd can't be renewed"


def test_unusable_files_are_refused() -> None:
    pki, conf = full_node()
    pki.files["apiserver.crt"] = b"?"
    with pytest.raises(GarboardError, match="failed to load existing certificate apiserver"):
        decide_renewal(renewable("apiserver"), observe(pki, conf), LATER)
    pki, conf = full_node()
    pki.files["ca.key"] = b"?"
    with pytest.raises(GarboardError, match="failure loading ca certificate authority"):
        decide_renewals([renewable("apiserver")], observe(pki, conf), VALIDITY, LATER)


def test_what_could_not_be_issued_is_refused_with_the_decision() -> None:
    pki, conf = full_node()
    pki.files["ca.key"] = pki.files["etcd/ca.key"]
    with pytest.raises(InvalidValue, match="does not belong to its certificate"):
        decide_renewals(renewables(), observe(pki, conf), VALIDITY, LATER)
    pki, conf = full_node()
    with pytest.raises(InvalidValue, match="cannot be valid from"):
        decide_renewals(renewables(), observe(pki, conf), timedelta(hours=-1), LATER)
