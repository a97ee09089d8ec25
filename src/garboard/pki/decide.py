"""What to do about each certificate, from what is on disk: keep it, issue it, skip it, or refuse to go on.

The rules are kubeadm's, init's and join's, but all of them are applied before the first file is written. A certificate
authority whose key is not on the node is external: everything that it signs must be on the node already.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from cryptography import x509

from garboard.errors import NotReady
from garboard.pki.chain import chain_problem, is_authority, missing_names, period_problem
from garboard.pki.files import ObservedPair, ObservedPairs, ObservedServiceAccount, Unreadable
from garboard.pki.inputs import PkiInputs
from garboard.pki.spec import CERTIFICATES, CertSpec, certificate, expected_certificates


@dataclass(frozen=True, slots=True)
class Keep:
    """The existing one is used as it is."""

    name: str
    message: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Generate:
    """There is none yet; a new one is made."""

    name: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """It is not needed, and not looked at."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The existing one can neither be used nor replaced."""

    name: str
    reason: str


Decision: TypeAlias = Keep | Generate | Skip | Refuse


def warnings_of(decisions: Iterable[Decision]) -> tuple[str, ...]:
    """Return every warning once: an authority's is also one about each certificate that it signs."""
    found = (text for each in decisions if isinstance(each, Keep | Generate) for text in each.warnings)
    return tuple(dict.fromkeys(found))


def refuse_problems(decisions: Iterable[Decision]) -> None:
    """Raise if any decision is a refusal, and name all of them."""
    refused = [each for each in decisions if isinstance(each, Refuse)]
    if refused:
        raise NotReady(
            "; ".join(each.reason for each in refused),
            hint="restore the files named above, or move them away to have new ones made",
            error_class="unusable-certificates",
        )


def decide_one_for_init(
    spec: CertSpec, observed: ObservedPairs, inputs: PkiInputs, now: datetime, *, is_ca_planned: bool = False
) -> Decision:
    """Decide about one certificate as its init phase does; `is_ca_planned`: its CA is to be made just before."""
    if inputs.has_external_etcd and spec.is_etcd:
        kind = "certificate authority" if spec.is_ca else "certificate"
        return Skip(spec.name, f"External etcd mode: Skipping {spec.base_name} {kind} generation")
    pair = observed[spec.base_name]
    if spec.ca is None:
        return _decide_ca(spec, pair, now)
    issuer = certificate(spec.ca)
    ca = ObservedPair(issuer.base_name) if is_ca_planned else observed[issuer.base_name]
    if pair.certificate is not None:
        return _keep_signed(spec, pair, ca, now)
    if not is_ca_planned and (problem := signer_problem(ca)):
        return Refuse(spec.name, f"couldn't load CA certificate {issuer.name}: {problem}")
    if pair.has_any_file:
        return Refuse(spec.name, _pair_problem(pair) or f"failure loading {spec.base_name} certificate")
    return Generate(spec.name, (*san_warnings(spec, inputs), *_period_warnings((ca,), now)))


def _decide_ca(spec: CertSpec, pair: ObservedPair, now: datetime) -> Decision:
    if pair.certificate is not None:
        keyless = "" if pair.as_signer() else "keyless "
        message = f"Using existing {spec.base_name} {keyless}certificate authority"
        return Keep(spec.name, message, _period_warnings((pair,), now))
    if pair.has_any_file:
        return Refuse(spec.name, f"failure loading {spec.base_name} certificate: {_certificate_problem(pair)}")
    return Generate(spec.name)


def _keep_signed(spec: CertSpec, pair: ObservedPair, ca: ObservedPair, now: datetime) -> Decision:
    # As in kubeadm's init: neither the names nor the key of an existing certificate are looked at.
    assert isinstance(pair.chain, tuple)
    if ca.certificate is None:
        reason = f"certificate {spec.base_name} not signed by CA certificate {ca.base_name}: that CA is not there yet"
        return Refuse(spec.name, reason)
    if problem := chain_problem(pair.chain, ca.certificate, now):
        return Refuse(spec.name, f"certificate {spec.base_name} not signed by CA certificate {ca.base_name}: {problem}")
    message = f"Using existing {spec.base_name} certificate and key on disk"
    return Keep(spec.name, message, (*_period_warnings((pair, ca), now), *_mismatch_warnings(pair)))


def decide_for_join(observed: ObservedPairs, inputs: PkiInputs, now: datetime) -> tuple[Decision, ...]:
    """Decide about every certificate as a joining control-plane node does: stricter, names and keys are checked too."""
    specs = expected_certificates(has_external_etcd=inputs.has_external_etcd)
    decisions: dict[str, Decision] = {}
    for spec in specs:
        pair = observed[spec.base_name]
        if spec.ca is None:
            decisions[spec.name] = _decide_ca_for_join(spec, pair, now)
            continue
        is_planned = isinstance(decisions[spec.ca], Generate)
        issuer = certificate(spec.ca)
        ca = ObservedPair(issuer.base_name) if is_planned else observed[issuer.base_name]
        decisions[spec.name] = _decide_leaf_for_join(spec, pair, ca, inputs, now)
    return tuple(decisions.values())


def _decide_ca_for_join(spec: CertSpec, pair: ObservedPair, now: datetime) -> Decision:
    if pair.certificate is None:
        return _decide_ca(spec, pair, now)
    if not is_authority(pair.certificate):
        return Refuse(spec.name, f"certificate {spec.name!r} is not a CA")
    return Keep(spec.name, f"Using the existing {spec.base_name!r} certificate and key", _period_warnings((pair,), now))


def _decide_leaf_for_join(
    spec: CertSpec, pair: ObservedPair, ca: ObservedPair, inputs: PkiInputs, now: datetime
) -> Decision:
    is_keyless = ca.certificate is not None and ca.as_signer() is None
    if not pair.has_any_file and not is_keyless:
        return Generate(spec.name, san_warnings(spec, inputs))
    problem = signed_pair_problem(pair, ca.certificate, now)
    if problem is None and not is_keyless:
        problem = _names_problem(spec, pair, inputs)
    if problem is not None:
        return Refuse(spec.name, problem)
    warnings = (*_period_warnings((pair, ca), now), *_mismatch_warnings(pair))
    return Keep(spec.name, f"Using the existing {spec.base_name!r} certificate and key", warnings)


def _names_problem(spec: CertSpec, pair: ObservedPair, inputs: PkiInputs) -> str | None:
    assert pair.certificate is not None
    missing = missing_names(pair.certificate, spec.all_names(inputs))
    return f"certificate {spec.base_name} is invalid: it is not valid for {', '.join(missing)}" if missing else None


def decide_service_account(observed: ObservedServiceAccount, *, has_external_ca: bool = False) -> Decision:
    """Decide about sa.key and sa.pub: a private key that can be read is kept, whatever is beside it."""
    if has_external_ca:
        return Skip("sa", "Using existing sa keys")
    if isinstance(observed.private, Unreadable):
        return Refuse("sa", f"file sa.key existed but it could not be loaded properly: {observed.private.reason}")
    return Generate("sa") if observed.private is None else Keep("sa", 'Using the existing "sa" key')


def signed_pair_problem(pair: ObservedPair, ca: x509.Certificate | None, now: datetime) -> str | None:
    """Say why `pair` is not a readable key and a certificate that `ca` has signed, if it is not."""
    if problem := _pair_problem(pair):
        return problem
    assert isinstance(pair.chain, tuple)
    problem = chain_problem(pair.chain, ca, now) if ca else "that CA is not there yet"
    return f"certificate {pair.base_name} is not signed by corresponding CA: {problem}" if problem else None


def san_warnings(spec: CertSpec, inputs: PkiInputs) -> tuple[str, ...]:
    """Return a warning for every extra name that goes into no certificate."""
    return tuple(
        f"{each!r} was not added to the {spec.name!r} SAN, because it is not a valid IP or RFC-1123 compliant DNS entry"
        for each in spec.rejected_sans(inputs)
    )


def _pair_problem(pair: ObservedPair) -> str | None:
    if pair.key is None or isinstance(pair.key, Unreadable):
        return f"failure loading {pair.base_name} key: {_reason(pair.key, f'{pair.base_name}.key')}"
    if not isinstance(pair.chain, tuple):
        return f"failure loading {pair.base_name} certificate: {_certificate_problem(pair)}"
    return None


def _certificate_problem(pair: ObservedPair) -> str:
    return _reason(pair.chain if isinstance(pair.chain, Unreadable) else None, f"{pair.base_name}.crt")


def _reason(found: Unreadable | None, name: str) -> str:
    return found.reason if found else f"there is no {name}"


def signer_problem(ca: ObservedPair) -> str | None:
    """Say why `ca` cannot sign, if it cannot."""
    if ca.certificate is None:
        return _certificate_problem(ca)
    if ca.key is None or isinstance(ca.key, Unreadable):
        return _reason(ca.key, f"{ca.base_name}.key")
    if not is_authority(ca.certificate):
        return f"{ca.base_name} certificate is not a certificate authority"
    if ca.certificate.public_key() != ca.key.public_key():
        return f"{ca.base_name}.key does not belong to {ca.base_name}.crt"
    return None


def _period_warnings(pairs: tuple[ObservedPair, ...], now: datetime) -> tuple[str, ...]:
    return tuple(
        f"could not validate bounds for certificate {pair.base_name}: {problem}"
        for pair in pairs
        if pair.certificate is not None and (problem := period_problem(pair.certificate, now))
    )


def _mismatch_warnings(pair: ObservedPair) -> tuple[str, ...]:
    # kubeadm says nothing here; the component that is given such a pair does not start.
    signer = pair.as_signer()
    if signer is None or signer.certificate.public_key() == signer.key.public_key():
        return ()
    return (f"{pair.base_name}.key does not belong to {pair.base_name}.crt",)


@dataclass(frozen=True, slots=True)
class AuthorityState:
    """One certificate authority as found; `problem` says what is missing or wrong about it, if anything."""

    name: str
    is_external: bool
    problem: str | None = None


def authority_state(name: str, observed: ObservedPairs, now: datetime) -> AuthorityState:
    """Say whether the CA is external, and then whether everything that it should have signed is there."""
    spec = certificate(name)
    pair = observed[spec.base_name]
    if pair.certificate is None:
        return AuthorityState(name, False, _absent(spec, observed))
    if not is_authority(pair.certificate):
        return AuthorityState(name, False, f"certificate {name} is not a CA")
    if pair.key is not None:
        return AuthorityState(name, False)
    for leaf in _signed_outside(spec):
        if problem := signed_pair_problem(observed[leaf.base_name], pair.certificate, now):
            return AuthorityState(name, True, problem)
    return AuthorityState(name, True)


def external_authorities(observed: ObservedPairs, now: datetime) -> tuple[AuthorityState, ...]:
    """Return the state of every CA that is there without its key."""
    states = (authority_state(spec.name, observed, now) for spec in CERTIFICATES if spec.is_ca)
    return tuple(state for state in states if state.is_external)


def _absent(spec: CertSpec, observed: ObservedPairs) -> str:
    chain = observed[spec.base_name].chain
    reason = chain.reason if isinstance(chain, Unreadable) else f"there is no {spec.base_name}.crt"
    return f"failure loading certificate for {spec.name}: {reason}"


def _signed_outside(ca: CertSpec) -> tuple[CertSpec, ...]:
    return tuple(spec for spec in CERTIFICATES if spec.ca == ca.name)
