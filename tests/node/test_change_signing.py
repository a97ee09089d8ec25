"""Certificates that somebody else signs: requests go out, and the same command goes on once they are signed."""

from dataclasses import replace

import msgspec
import pytest

from garboard.change.authorities import WAITING
from garboard.change.engine_plan import node_steps
from garboard.change.outcomes import ChangeUnsigned
from garboard.change.plan import NodeChange
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import AwaitGate, Executor, Plan, RemoveFile, Step
from garboard.errors import NotReady
from garboard.node.change_signing import refuse_unsigned, wanted_signatures
from garboard.node.interpreters import interpreters_over
from garboard.node.interpreters.certificates import PkiIssuer
from garboard.node.runs import plan_codec
from garboard.phases.issuing import SignedRequest
from garboard.pki import certificate
from garboard.pki.chain import names_of, read_certificates
from garboard.pki.files import IssuedPair
from garboard.pki.issue import certificate_pem, issue_certificate, sign_certificate
from garboard.pki.keys import read_private_key
from tests.support.change.requests import planned
from tests.support.change.snapshots import f2
from tests.support.node.reporters import MemoryReporter
from tests.support.phases.machines import MemoryMachine
from tests.support.pki.fixtures import INPUTS, KEYS, NOW

PKI, NAME = "/etc/kubernetes/pki", "api.example.com"
KEY, CSR, SIGNED = (f"{WAITING}/apiserver.{end}" for end in ("key", "csr", "crt"))


@pytest.fixture(scope="module")
def authority() -> IssuedPair:
    return issue_certificate(certificate("ca"), INPUTS, None, KEYS, NOW)


def snapshot() -> ClusterSnapshot:
    seen = f2(is_seen=True)
    nodes = [msgspec.structs.replace(each, host_paths={f"{PKI}/ca.key": "absent"}) for each in seen.nodes]
    return msgspec.structs.replace(seen, nodes=nodes)


def parts(name: str = NAME, node: str = "cp2") -> tuple[NodeChange, ...]:
    return tuple(each for each in planned(snapshot(), f"apiServer.certSANs+={name}").nodes if each.node == node)


def machine(authority: IssuedPair) -> MemoryMachine:
    return MemoryMachine({f"{PKI}/ca.crt": certificate_pem(authority.certificate)})


def sign(node: MemoryMachine, authority: IssuedPair, request: SignedRequest) -> None:
    """Do what the owner of the authority does."""
    key = read_private_key(node.files[KEY])
    wanted = replace(request.spec.request(request.inputs, NOW), not_after=NOW.replace(year=2099))
    node.files[SIGNED] = certificate_pem(sign_certificate(wanted, key.public_key(), authority, KEYS))


def test_the_request_is_written_once_and_says_where_the_certificate_goes(authority: IssuedPair) -> None:
    node, reporter = machine(authority), MemoryReporter()
    with pytest.raises(ChangeUnsigned) as refused:
        refuse_unsigned(parts(), node, reporter)
    assert refused.value.exit_code == 11
    told = str(refused.value)
    assert all(each in told for each in (SIGNED, CSR, f"{PKI}/ca.crt", "serverAuth", "it is not there yet"))
    assert "PRIVATE" not in told
    before = dict(node.files)
    with pytest.raises(ChangeUnsigned):
        refuse_unsigned(parts(), node, reporter)
    assert node.files == before, "whoever signs must not find another request"


def test_other_names_are_asked_for_anew(authority: IssuedPair) -> None:
    node = machine(authority)
    for name in ("a.example.com", NAME):
        with pytest.raises(ChangeUnsigned):
            refuse_unsigned(parts(name), node, MemoryReporter())
    (request,) = wanted_signatures(parts())
    sign(node, authority, request)
    refuse_unsigned(parts(), node, MemoryReporter())


def test_a_signed_certificate_takes_its_place_and_nothing_waits_any_more(authority: IssuedPair) -> None:
    node = machine(authority)
    with pytest.raises(ChangeUnsigned):
        refuse_unsigned(parts(), node, MemoryReporter())
    (request,) = wanted_signatures(parts())
    sign(node, authority, request)
    refuse_unsigned(parts(), node, MemoryReporter())
    key = node.files[KEY]
    steps = [step for part in parts() for step in node_steps(part, snapshot())]
    assert any(isinstance(step.action, AwaitGate) for step in steps)
    carry_out(node, [step for step in steps if not isinstance(step.action, AwaitGate)])
    assert node.files[f"{PKI}/apiserver.key"] == key
    (found,) = read_certificates(node.files[f"{PKI}/apiserver.crt"])
    assert NAME in names_of(found).dns
    assert not any(path.startswith(WAITING) for path in node.files)


def carry_out(node: MemoryMachine, steps: list[Step]) -> None:
    issuer = PkiIssuer(node.folder, KEYS, NOW)
    Executor(interpreters_over(files=node, issuer=issuer)).execute(Plan(tuple(steps)))


def test_what_was_exchanged_since_it_was_looked_at_does_not_take_its_place(authority: IssuedPair) -> None:
    node = machine(authority)
    (request,) = wanted_signatures(parts())
    with pytest.raises(ChangeUnsigned):
        refuse_unsigned(parts(), node, MemoryReporter())
    sign(node, issue_certificate(certificate("ca"), INPUTS, None, KEYS, NOW), request)
    steps = [step for part in parts() for step in node_steps(part, snapshot())]
    with pytest.raises(NotReady, match="the authority of the cluster has not signed it"):
        carry_out(node, [step for step in steps if not isinstance(step.action, AwaitGate | RemoveFile)])
    assert f"{PKI}/apiserver.crt" not in node.files


def test_a_journal_keeps_the_request_and_no_key() -> None:
    steps = tuple(step for part in parts() for step in node_steps(part, snapshot()))
    codec = plan_codec()
    data = codec.plan_to_bytes(Plan(steps))
    assert codec.plan_from_bytes(data) == Plan(steps)
    assert b"PRIVATE" not in data
