"""Issuing certificates and signing requests, field by field equal to kubeadm's.

Nothing here reads a clock or random numbers: times are in the request, keys and serial numbers come from a KeySource.
"""

import hashlib
import warnings
from datetime import datetime
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtensionOID, NameOID

from garboard.errors import InvalidValue
from garboard.pki.files import IssuedPair
from garboard.pki.inputs import KeyAlgorithm, PkiInputs
from garboard.pki.keys import KeySource, PrivateKey, PublicKey
from garboard.pki.names import AltNames
from garboard.pki.spec import CertRequest, CertSpec

# What ASN.1 allows in a PrintableString, without `*` and `&`, which Go does not count in.
_PRINTABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 '()+,-./:=?")
_Hash: TypeAlias = hashes.SHA256 | hashes.SHA384 | hashes.SHA512
_SHA256 = hashes.SHA256()
_CURVE_HASHES: dict[str, _Hash] = {"secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}


def issue_certificate(
    spec: CertSpec, inputs: PkiInputs, signer: IssuedPair | None, keys: KeySource, started_at: datetime
) -> IssuedPair:
    """Return one certificate of the tree; an authority signs itself and needs no `signer`."""
    request = spec.request(inputs, started_at)
    if spec.is_ca:
        return issue_ca(request, inputs.key_algorithm, keys)
    assert signer is not None, f"{spec.name} is signed by {spec.ca}"
    return issue_leaf(request, signer, inputs.key_algorithm, keys)


def issue_ca(request: CertRequest, algorithm: KeyAlgorithm, keys: KeySource) -> IssuedPair:
    """Return a new self-signed certificate authority."""
    key = keys.private_key(algorithm)
    subject = _subject(request)
    builder = _start(request, subject, subject, key.public_key(), keys)
    builder = builder.add_extension(_key_usage(is_ca=True), critical=True)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_identifier(key.public_key()), critical=False)
    builder = _with_names(builder, request.alt_names)
    return IssuedPair(builder.sign(key, _hash_for(key)), key)


def issue_leaf(request: CertRequest, signer: IssuedPair, algorithm: KeyAlgorithm, keys: KeySource) -> IssuedPair:
    """Return a new certificate signed by `signer`, with a new key."""
    key = keys.private_key(algorithm)
    return IssuedPair(sign_certificate(request, key.public_key(), signer, keys), key)


def sign_certificate(
    request: CertRequest, public_key: PublicKey, signer: IssuedPair, keys: KeySource
) -> x509.Certificate:
    """Return a certificate for `public_key` signed by `signer`; a signer whose two halves do not match is refused."""
    if not request.usages:
        raise InvalidValue(f"the certificate for {request.common_name} has no extended key usage")
    if signer.certificate.public_key() != signer.key.public_key():
        raise InvalidValue(
            f"the key of the CA {signer.certificate.subject.rfc4514_string()} does not belong to its certificate",
            hint="put the matching .crt and .key of the CA side by side",
        )
    subject, issuer = _subject(request), signer.certificate.subject
    builder = _start(request, subject, issuer, public_key, keys, signer.certificate)
    builder = builder.add_extension(_key_usage(is_ca=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([x509.ObjectIdentifier(u) for u in request.usages]), False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    if (identifier := _signer_identifier(signer.certificate)) and subject != issuer:
        builder = builder.add_extension(x509.AuthorityKeyIdentifier(identifier, None, None), critical=False)
    builder = _with_names(builder, request.alt_names)
    return builder.sign(signer.key, _hash_for(signer.key))


def make_csr(request: CertRequest, key: PrivateKey) -> x509.CertificateSigningRequest:
    """Return a signing request with the subject and names of `request`."""
    builder = x509.CertificateSigningRequestBuilder(subject_name=_subject(request))
    if names := _general_names(request.alt_names):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, _hash_for(key))


def certificate_pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def csr_pem(csr: x509.CertificateSigningRequest) -> bytes:
    return csr.public_bytes(serialization.Encoding.PEM)


def _start(
    request: CertRequest,
    subject: x509.Name,
    issuer: x509.Name,
    public_key: PublicKey,
    keys: KeySource,
    signer: x509.Certificate | None = None,
) -> x509.CertificateBuilder:
    not_before = request.not_before or (signer.not_valid_before_utc if signer else None)
    assert not_before is not None, "a self-signed certificate says when it starts"
    try:
        return (
            x509.CertificateBuilder()
            .issuer_name(issuer)
            .subject_name(subject)
            .public_key(public_key)
            .serial_number(keys.serial_number())
            .not_valid_before(not_before.replace(microsecond=0))
            .not_valid_after(request.not_after.replace(microsecond=0))
        )
    except ValueError as error:
        raise InvalidValue(
            f"the certificate for {request.common_name} cannot be valid from {not_before} to {request.not_after}",
            hint="choose a longer validity period",
        ) from error


def _subject(request: CertRequest) -> x509.Name:
    if not request.common_name:
        raise InvalidValue("a certificate needs a common name", hint="give the node a name")
    rdns = [x509.RelativeDistinguishedName([_attribute(NameOID.COMMON_NAME, request.common_name)])]
    if request.organizations:
        # All organizations are one multi-valued part of the name, as Go's pkix.Name writes them.
        groups = [_attribute(NameOID.ORGANIZATION_NAME, each) for each in dict.fromkeys(request.organizations)]
        rdns.insert(0, x509.RelativeDistinguishedName(groups))
    return x509.Name(rdns)


def _attribute(oid: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    kind = _ASN1Type.PrintableString if _PRINTABLE.issuperset(value) else _ASN1Type.UTF8String
    with warnings.catch_warnings():
        # X.520 ends a common name at 64 characters; `system:node:` and a long host name go beyond, and Go reads it.
        warnings.simplefilter("ignore")
        return x509.NameAttribute(oid, value, kind, _validate=False)


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    # Key encipherment also for ECDSA, and no CRL signing for a CA: kubeadm makes no difference between algorithms.
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=is_ca,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_identifier(public_key: PublicKey) -> x509.SubjectKeyIdentifier:
    """Return the first 160 bits of the SHA-256 of the key (RFC 7093, method 1)."""
    encoding = (
        (serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        if isinstance(public_key, ec.EllipticCurvePublicKey)
        else (serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    )
    return x509.SubjectKeyIdentifier(hashlib.sha256(public_key.public_bytes(*encoding)).digest()[:20])


def _signer_identifier(certificate: x509.Certificate) -> bytes | None:
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_KEY_IDENTIFIER)
    except x509.ExtensionNotFound:
        return None
    assert isinstance(extension.value, x509.SubjectKeyIdentifier)
    return extension.value.digest


def _with_names(builder: x509.CertificateBuilder, alt_names: AltNames) -> x509.CertificateBuilder:
    names = _general_names(alt_names)
    return builder.add_extension(x509.SubjectAlternativeName(names), critical=False) if names else builder


def _general_names(alt_names: AltNames) -> list[x509.GeneralName]:
    names = alt_names.canonical()
    try:
        return [*(x509.DNSName(each) for each in names.dns), *(x509.IPAddress(each) for each in names.ips)]
    except ValueError as error:
        raise InvalidValue(
            f"a certificate cannot carry the name {', '.join(n for n in names.dns if not n.isascii())}",
            hint="write an international name in its ASCII form (xn--…)",
        ) from error


def _hash_for(key: PrivateKey) -> _Hash:
    return _CURVE_HASHES.get(key.curve.name, _SHA256) if isinstance(key, ec.EllipticCurvePrivateKey) else _SHA256
