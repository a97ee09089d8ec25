"""Certificate authorities that come from elsewhere: signed for by others, or shared between control-plane nodes."""

from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric import rsa

from garboard.pki.chain import is_authority
from garboard.pki.decide import signed_pair_problem
from garboard.pki.keys import PrivateKey, PublicKey
from garboard.pki.observed import ObservedPairs, ObservedServiceAccount, Unreadable
from garboard.pki.spec import CERTIFICATES, CertSpec, certificate, expected_certificates


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


@dataclass(frozen=True, slots=True)
class SharedCertificates:
    """What a joining control-plane node must have been given; any problem means that it cannot join."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def shared_certificates(
    observed: ObservedPairs, service_account: ObservedServiceAccount, *, has_external_etcd: bool
) -> SharedCertificates:
    """Check what all control-plane nodes have in common: the authorities and the service account keys."""
    problems, warnings = [], []
    for spec in expected_certificates(has_external_etcd=has_external_etcd):
        if not spec.is_ca:
            continue
        pair = observed[spec.base_name]
        if pair.certificate is None:
            problems.append(_absent(spec, observed))
        elif not is_authority(pair.certificate):
            problems.append(f"certificate {spec.name} is not a CA")
        elif pair.as_signer() is None:
            warnings.append(f"assuming external key for {spec.name}: there is no usable {spec.base_name}.key")
    if problem := _key_pair_problem(service_account):
        problems.append(f"failure loading key for service account: {problem}")
    return SharedCertificates(tuple(problems), tuple(warnings))


def _key_pair_problem(found: ObservedServiceAccount) -> str | None:
    for key, name in ((found.private, "sa.key"), (found.public, "sa.pub")):
        if key is None:
            return f"there is no {name}"
        if isinstance(key, Unreadable):
            return key.reason
    if _is_rsa(found.private) == _is_rsa(found.public):
        return None
    kind = "RSA" if _is_rsa(found.private) else "ECDSA"
    return f"the private key sa.key is an {kind} key, but the public key sa.pub is not"


def _is_rsa(key: PrivateKey | PublicKey | Unreadable | None) -> bool:
    return isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey)
