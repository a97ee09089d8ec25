"""Renewing certificates: what each one says is taken from the certificate itself, never from the configuration."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

from garboard.errors import GarboardError, InvalidValue
from garboard.pki.chain import is_authority, names_of
from garboard.pki.expiration import ObservedNode, embedded_certificate, is_externally_managed
from garboard.pki.files import SECRET_MODE, NewFile
from garboard.pki.issue import IssuedPair, certificate_pem, issue_leaf
from garboard.pki.keys import KeySource, algorithm_of, private_key_pem
from garboard.pki.kubeconfig import ClientCertificate, CurrentContext
from garboard.pki.kubeconfig_spec import KUBECONFIGS
from garboard.pki.spec import BACKDATE, CertRequest, KeyAlgorithm, certificate, expected_certificates
from garboard.pki.store import pair_files

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

    name: str
    summary: str
    ca: str
    is_kubeconfig: bool

    @property
    def message(self) -> str:
        return f"{self.summary} renewed"


@dataclass(frozen=True, slots=True)
class Missing:
    """There is nothing to renew, which is no failure."""

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
    """A certificate to be issued again with what it said before; only times and key are new."""

    target: Renewable
    request: CertRequest
    found_algorithm: KeyAlgorithm  # of the key it has now

    @property
    def message(self) -> str:
        return self.target.message


RenewalDecision: TypeAlias = Missing | External | Renew


def renewables(*, has_external_etcd: bool = False) -> tuple[Renewable, ...]:
    """Return what can be renewed, in the order of the names; CAs and the kubelet's own certificate cannot."""
    leafs = [
        Renewable(spec.name, spec.summary, spec.ca, False)
        for spec in expected_certificates(has_external_etcd=has_external_etcd)
        if spec.ca
    ]
    files = [Renewable(spec.file_name, spec.summary, "ca", True) for spec in KUBECONFIGS if spec.is_renewable]
    return tuple(sorted(leafs + files, key=lambda each: each.name))


def renewable(name: str) -> Renewable:
    found = {each.name: each for each in renewables()}
    if name not in found:
        raise InvalidValue(f"{name!r} cannot be renewed", hint=f"what can is {', '.join(found)}, or all")
    return found[name]


def decide_renewal(
    target: Renewable, observed: ObservedNode, validity: timedelta, started_at: datetime
) -> RenewalDecision:
    """Decide about one certificate: renewal does not ask whether it is due."""
    if not _is_there(target, observed):
        return Missing(target)
    if is_externally_managed(target.ca, observed, started_at):
        return External(target)
    existing = _existing(target, observed)
    algorithm = algorithm_of(existing.public_key()) or KeyAlgorithm.RSA_2048
    return Renew(target, renewal_request(existing, validity, started_at), algorithm)


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


def renewal_request(existing: x509.Certificate, validity: timedelta, started_at: datetime) -> CertRequest:
    """Return a request for the same subject, names and usages as `existing`, with new times."""
    subject = existing.subject
    common_names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return CertRequest(
        common_name=common_names[-1] if common_names else "",
        organizations=tuple(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        usages=_usages(existing),
        alt_names=names_of(existing),
        not_before=started_at - BACKDATE,
        not_after=started_at + validity,
    )


def _usages(existing: x509.Certificate) -> tuple[str, ...]:
    try:
        usages = existing.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(each.dotted_string for each in usages if each.dotted_string in _KNOWN_USAGES)


def renewed_files(
    decision: Renew, observed: ObservedNode, algorithm: KeyAlgorithm, keys: KeySource
) -> tuple[NewFile, ...]:
    """Issue what was decided and return the files that change: key and certificate, or one kubeconfig."""
    target = decision.target
    ca = _signer(target.ca, observed)
    pair = issue_leaf(decision.request, ca, algorithm, keys)
    if not target.is_kubeconfig:
        return pair_files(certificate(target.name).base_name, pair)
    found = observed.kubeconfigs[target.name]
    assert found is not None
    assert isinstance(found.current, CurrentContext)
    credential = ClientCertificate(certificate_pem(pair.certificate), private_key_pem(pair.key))
    data = found.current.with_credential(certificate_pem(ca.certificate), credential)
    return (NewFile(target.name, data, SECRET_MODE),)


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
