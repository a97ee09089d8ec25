"""External certificate authorities: a CA certificate without its key means that others sign, and all must be there."""

from dataclasses import dataclass
from datetime import datetime

from garboard.pki.chain import is_authority
from garboard.pki.decide import signed_pair_problem
from garboard.pki.spec import CERTIFICATES, CertSpec, certificate
from garboard.pki.store import ObservedPairs, Unreadable


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
        reason = pair.chain.reason if isinstance(pair.chain, Unreadable) else f"there is no {spec.base_name}.crt"
        return AuthorityState(name, False, f"failure loading certificate for {name}: {reason}")
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


def _signed_outside(ca: CertSpec) -> tuple[CertSpec, ...]:
    return tuple(spec for spec in CERTIFICATES if spec.ca == ca.name)
