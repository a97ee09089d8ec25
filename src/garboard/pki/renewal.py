"""Renewing certificates: subject, names and usages come from the certificate itself, never from the configuration."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

from garboard.errors import BadUsage, GarboardError
from garboard.pki.chain import is_authority, names_of
from garboard.pki.expiration import ObservedNode, embedded_certificate, is_externally_managed
from garboard.pki.files import IssuedPair
from garboard.pki.inputs import KeyAlgorithm
from garboard.pki.issue import certificate_pem, sign_certificate
from garboard.pki.keys import SystemKeys, algorithm_of, private_key_pem
from garboard.pki.kubeconfig import ClientCertificate, read_kubeconfig
from garboard.pki.spec import KUBECONFIGS, CertContent, CertSpec, KubeconfigSpec, certificate, expected_certificates

# The usages that Go knows by name; a renewed certificate loses any other, as with kubeadm.
_KNOWN_USAGES = frozenset(
    {
        "2.5.29.37.0",
        *(f"1.3.6.1.5.5.7.3.{number}" for number in range(1, 10)),
        "1.3.6.1.4.1.311.10.3.3",
        "2.16.840.1.113730.4.1",
        "1.3.6.1.4.1.311.2.1.22",
        "1.3.6.1.4.1.311.61.1.1",
    }
)


@dataclass(frozen=True, slots=True)
class Renewable:
    """Something that can be renewed: a certificate of the tree, or the one inside a kubeconfig."""

    spec: CertSpec | KubeconfigSpec

    @property
    def name(self) -> str:
        return self.spec.file_name if isinstance(self.spec, KubeconfigSpec) else self.spec.name

    @property
    def summary(self) -> str:
        return self.spec.summary

    @property
    def ca(self) -> str:
        """The name of the authority that signs it."""
        return (self.spec.ca if isinstance(self.spec, CertSpec) else None) or "ca"

    @property
    def is_kubeconfig(self) -> bool:
        return isinstance(self.spec, KubeconfigSpec)


@dataclass(frozen=True, slots=True)
class NothingToRenew:
    """The certificate is not there, which is no failure."""

    target: Renewable

    @property
    def message(self) -> str:
        return f"MISSING! {self.target.summary}"


@dataclass(frozen=True, slots=True)
class External:
    """The key that would have to sign is not here."""

    target: Renewable

    @property
    def message(self) -> str:
        return f"Detected external {certificate(self.target.ca).base_name}, {self.target.summary} can't be renewed"


@dataclass(frozen=True, slots=True)
class Renew:
    """A certificate to be issued again with its present content; only dates and key are new."""

    target: Renewable
    content: CertContent
    found_algorithm: KeyAlgorithm  # of the key it has now

    @property
    def message(self) -> str:
        return f"{self.target.summary} renewed"


RenewalDecision: TypeAlias = NothingToRenew | External | Renew


def renewables(*, has_external_etcd: bool = False) -> tuple[Renewable, ...]:
    """Return what can be renewed, in the order of the names; CAs and the kubelet's own certificate cannot."""
    leafs = [Renewable(spec) for spec in expected_certificates(has_external_etcd=has_external_etcd) if spec.ca]
    files = [Renewable(spec) for spec in KUBECONFIGS if spec.is_renewable]
    return tuple(sorted(leafs + files, key=lambda each: each.name))


def renewable(name: str) -> Renewable:
    found = {each.name: each for each in renewables()}
    if name not in found:
        raise BadUsage(f"{name!r} cannot be renewed", hint=f"what can is {', '.join(found)}, or all")
    return found[name]


def decide_renewals(
    targets: Iterable[Renewable], observed: ObservedNode, validity: timedelta, now: datetime
) -> tuple[RenewalDecision, ...]:
    """Decide about some certificates; one that could not be issued is refused before anything is written."""
    decisions = tuple(decide_renewal(each, observed, now) for each in targets)
    for each in decisions:
        if isinstance(each, Renew):
            _check_issuing(each, observed, validity, now)
    return decisions


def decide_renewal(target: Renewable, observed: ObservedNode, now: datetime) -> RenewalDecision:
    """Decide about one certificate: renewal does not ask whether it is due."""
    if not _is_there(target, observed):
        return NothingToRenew(target)
    if is_externally_managed(target.ca, observed, now):
        return External(target)
    existing = _existing(target, observed)
    algorithm = algorithm_of(existing.public_key()) or KeyAlgorithm.RSA_2048
    return Renew(target, content_of(existing), algorithm)


def _check_issuing(decision: Renew, observed: ObservedNode, validity: timedelta, now: datetime) -> None:
    """Refuse what cannot be signed: it is signed once, for the key of the authority itself, and thrown away."""
    signer = _signer(decision.target.ca, observed)
    sign_certificate(decision.content.request(now, validity), signer.key.public_key(), signer, SystemKeys())


def _is_there(target: Renewable, observed: ObservedNode) -> bool:
    if target.is_kubeconfig:
        return observed.kubeconfigs.get(target.name) is not None
    return observed.pairs[certificate(target.name).base_name].chain is not None


def _existing(target: Renewable, observed: ObservedNode) -> x509.Certificate:
    if target.is_kubeconfig:
        found = observed.kubeconfigs[target.name]
        assert found is not None
        return embedded_certificate(found)
    pair = observed.pairs[certificate(target.name).base_name]
    if pair.certificate is None:
        raise GarboardError(
            f"failed to load existing certificate {pair.base_name}",
            hint="restore it from a backup, or remove it and have `garboard init phase certs` make a new one",
            error_class="unreadable",
        )
    return pair.certificate


def content_of(existing: x509.Certificate) -> CertContent:
    """Return the subject, names and usages of a certificate."""
    subject = existing.subject
    common_names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return CertContent(
        common_name=common_names[-1] if common_names else "",
        organizations=tuple(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        usages=_usages(existing),
        alt_names=names_of(existing),
    )


def _usages(existing: x509.Certificate) -> tuple[str, ...]:
    try:
        usages = existing.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(each.dotted_string for each in usages if each.dotted_string in _KNOWN_USAGES)


def _signer(ca: str, observed: ObservedNode) -> IssuedPair:
    base_name = certificate(ca).base_name
    signer = observed.pairs[base_name].as_signer()
    if signer is None or not is_authority(signer.certificate):
        raise GarboardError(
            f"failure loading {base_name} certificate authority",
            hint=f"put {base_name}.crt and {base_name}.key into the certificate folder",
            error_class="bad-authority",
        )
    return signer


def renewed_kubeconfig(found: bytes, path: str, pair: IssuedPair, ca: x509.Certificate) -> bytes:
    """Return a kubeconfig with another client certificate and the CA that signed it; everything else stays."""
    credential = ClientCertificate(certificate_pem(pair.certificate), private_key_pem(pair.key))
    return read_kubeconfig(found, path).with_credential(certificate_pem(ca), credential)
