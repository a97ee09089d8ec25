"""What was decided, planned and carried out: certificates signed by those that were there or just made."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.engine import Executor, Plan, Step
from garboard.errors import NotReady
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.phases.issuing import CertificateRequest
from garboard.phases.node.credentials import steps_for
from garboard.pki import CERTIFICATES, PkiInputs, certificate
from garboard.pki.chain import chain_problem
from garboard.pki.decide import Decision, Generate, Refuse, decide_for_join
from garboard.pki.store import observe_pairs
from tests.support.phases.machines import MemoryMachine
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, decide_for_init, full_folder

FOLDER = "/etc/kubernetes/pki"
FULL = {f"{FOLDER}/{name}": data for name, data in full_folder().files.items()}


def carry_out(machine: MemoryMachine, decisions: Iterable[Decision], inputs: PkiInputs = INPUTS) -> None:
    steps: list[Step] = []
    for decision in decisions:
        request = CertificateRequest(spec=certificate(decision.name), inputs=inputs, folder=FOLDER)
        found = steps_for(decision, request.action(), "there is no such file")
        steps += [each for each in found if isinstance(each, Step)]
    issuer = PkiIssuer(machine.folder, KEYS, NOW)
    Executor(interpreters_over(files=machine, issuer=issuer)).execute(Plan(tuple(steps)))


def test_empty_folder_is_filled_and_every_chain_verifies() -> None:
    machine = MemoryMachine()
    carry_out(machine, decide_for_init(observe_pairs(machine.folder(FOLDER)), INPUTS, NOW))
    pairs = observe_pairs(machine.folder(FOLDER))
    for spec in CERTIFICATES:
        ca = certificate(spec.ca or spec.name)
        chain, root = pairs[spec.base_name].chain, pairs[ca.base_name].certificate
        assert isinstance(chain, tuple)
        assert root is not None
        assert chain_problem(chain, root, NOW) is None


@settings(max_examples=40)
@given(st.sets(st.sampled_from(sorted(FULL)), max_size=8), st.booleans(), st.booleans())
def test_what_is_decided_and_done_needs_nothing_more(removed: set[str], is_join: bool, has_external_etcd: bool) -> None:
    inputs = replace(INPUTS, has_external_etcd=has_external_etcd)
    decide = decide_for_join if is_join else decide_for_init
    machine = MemoryMachine({path: data for path, data in FULL.items() if path not in removed})
    decisions = decide(observe_pairs(machine.folder(FOLDER)), inputs, NOW)
    kept = dict(machine.files)
    if any(isinstance(each, Refuse) for each in decisions):
        with pytest.raises(NotReady):
            carry_out(machine, decisions, inputs)
        assert machine.files == kept
        return
    carry_out(machine, decisions, inputs)
    again = decide(observe_pairs(machine.folder(FOLDER)), inputs, NOW)
    assert not [each for each in again if isinstance(each, Generate | Refuse)]
    assert {path: machine.files[path] for path in kept} == kept


def test_authority_that_has_gone_since_it_was_planned_with_is_named() -> None:
    machine = MemoryMachine({path: data for path, data in FULL.items() if "/apiserver." not in path})
    decisions = decide_for_init(observe_pairs(machine.folder(FOLDER)), INPUTS, NOW)
    del machine.files[f"{FOLDER}/ca.key"]
    with pytest.raises(NotReady, match=r"authority ca in /etc/kubernetes/pki has gone"):
        carry_out(machine, decisions)
