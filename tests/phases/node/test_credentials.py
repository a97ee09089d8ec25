"""Renewal as a plan, carried out in memory; that its files are kubeadm's is shown in tests/parity."""

from datetime import timedelta

import pytest

from garboard.engine import Executor, Plan, plan_as_text
from garboard.errors import NotReady
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.node.runs import plan_codec
from garboard.phases.node.credentials import RenewalSettings, plan_renewal
from garboard.pki import KeyAlgorithm
from garboard.pki.chain import chain_problem, names_of, read_certificates
from garboard.pki.files import ObservedPair
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.pki.renewal import decide_renewals, renewable, renewables
from garboard.pki.store import observe_pair
from tests.support.phases.machines import MemoryMachine
from tests.support.pki.fixtures import KEYS, NOW
from tests.support.pki.nodes import full_node, observe

LATER = NOW + timedelta(days=300)
VALIDITY = timedelta(hours=100)
CONF, PKI = "/etc/kubernetes", "/etc/kubernetes/pki"
SETTINGS = RenewalSettings(folder=PKI, kubeconfig_dir=CONF, validity=VALIDITY, key_algorithm=KeyAlgorithm.ECDSA_P384)


def node() -> MemoryMachine:
    pki, conf = full_node()
    files = {f"{PKI}/{name}": data for name, data in pki.files.items()}
    return MemoryMachine({**files, **{f"{CONF}/{name}": data for name, data in conf.files.items()}})


def planned(machine: MemoryMachine, *names: str, settings: RenewalSettings = SETTINGS) -> Plan:
    targets = [renewable(name) for name in names] or renewables()
    observed = observe(machine.folder(PKI), machine.folder(CONF))
    return plan_renewal(decide_renewals(targets, observed, VALIDITY, LATER), settings)


def carry_out(machine: MemoryMachine, plan: Plan) -> None:
    issuer = PkiIssuer(machine.folder, KEYS, LATER)
    Executor(interpreters_over(files=machine, issuer=issuer)).execute(plan)


def pair(machine: MemoryMachine, name: str) -> ObservedPair:
    found = (observe_pair(machine.folder(PKI), base) for base in (name, name.replace("etcd-", "etcd/", 1)))
    return next(each for each in found if each.certificate)


@pytest.mark.parametrize("name", [each.name for each in renewables() if not each.is_kubeconfig])
def test_renewed_certificate_says_what_it_said(name: str) -> None:
    machine = node()
    before = pair(machine, name)
    carry_out(machine, planned(machine, name))
    after = pair(machine, name)
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


def test_renewed_kubeconfig_keeps_user_and_server_and_takes_the_ca_of_the_disk() -> None:
    machine, other = node(), node()
    old = machine.files[f"{CONF}/admin.conf"]
    machine.files.update({path: other.files[path] for path in (f"{PKI}/ca.crt", f"{PKI}/ca.key")})
    carry_out(machine, planned(machine, "admin.conf"))
    current = read_kubeconfig(machine.files[f"{CONF}/admin.conf"], "admin.conf")
    assert current.server == read_kubeconfig(old, "admin.conf").server
    assert current.ca == machine.files[f"{PKI}/ca.crt"]
    (client,) = read_certificates(current.client_certificate)
    assert client.subject.rfc4514_string() == "CN=kubernetes-admin,O=kubeadm:cluster-admins"
    assert chain_problem([client], read_certificates(machine.files[f"{PKI}/ca.crt"])[0], LATER) is None


def test_algorithm_stays_if_no_other_is_asked_for() -> None:
    machine = node()
    settings = RenewalSettings(folder=PKI, kubeconfig_dir=CONF, validity=VALIDITY)
    carry_out(machine, planned(machine, "apiserver", settings=settings))
    signer = pair(machine, "apiserver").as_signer()
    assert signer is not None
    assert signer.key.key_size == 256


def test_what_is_not_renewed_is_a_note() -> None:
    machine = node()
    del machine.files[f"{PKI}/etcd/ca.key"], machine.files[f"{CONF}/scheduler.conf"]
    plan = planned(machine)
    assert len(plan.steps) == len(renewables()) - 5
    assert [note.text.split(",")[0] for note in plan.notes] == ["Detected external etcd/ca"] * 4 + [
        f"MISSING! {renewable('scheduler.conf').summary}"
    ]


def test_plan_is_fixed_shows_what_is_issued_and_comes_back_from_a_journal() -> None:
    machine = node()
    plan = planned(machine)
    assert plan == planned(machine)
    text = plan_as_text(plan)
    assert "commonName: kube-apiserver\n" in text
    assert "validFor: 100h0m0s\n" in text
    assert f"-> {PKI}/apiserver.key (0600): <key of apiserver>" in text
    assert "PRIVATE KEY" not in text
    codec = plan_codec()
    assert codec.plan_from_bytes(codec.plan_to_bytes(plan)) == plan


def test_kubeconfig_that_has_gone_since_is_named() -> None:
    machine = node()
    plan = planned(machine, "admin.conf")
    del machine.files[f"{CONF}/admin.conf"]
    with pytest.raises(NotReady, match=r"/etc/kubernetes/admin\.conf has gone"):
        carry_out(machine, plan)
