"""An authority as Go made them many years ago: neither it nor what it signs has key identifiers."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tools.harness.certificates import Certificates


def make_old_certificates(folder: Path) -> Certificates:
    """Return a server certificate for localhost and 127.0.0.1, and a client certificate."""
    ca_key = _new_key(folder / "ca.key")
    ca = _signed("old-ca", ca_key.public_key(), "old-ca", ca_key, is_ca=True)
    _write(folder / "ca.crt", ca)
    for name in ("server", "client"):
        key = _new_key(folder / f"{name}.key")
        _write(folder / f"{name}.crt", _signed(name, key.public_key(), "old-ca", ca_key, is_ca=False))
    return Certificates(*(folder / name for name in ("ca.crt", "server.crt", "server.key", "client.crt", "client.key")))


def _signed(
    name: str, key: ec.EllipticCurvePublicKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey, *, is_ca: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if not is_ca:
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(*pem))
    return key


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
