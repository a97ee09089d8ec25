"""A throw-away authority with a server and a client certificate, made by the openssl command."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


def make_certificates(folder: Path, server_name: str = "localhost") -> Certificates:
    """For `server_name`, localhost and 127.0.0.1."""
    ca, ca_key = folder / "ca.crt", folder / "ca.key"
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    _openssl("req", "-x509", *new_key, "-keyout", ca_key, "-out", ca, "-subj", "/CN=test-ca")
    made = []
    for name in ("server", "client"):
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        names = f"subjectAltName=DNS:localhost,DNS:{server_name},IP:127.0.0.1"
        signed_by: list[str | Path] = ["-CA", ca, "-CAkey", ca_key, "-addext", names]
        _openssl("req", "-x509", *new_key, *signed_by, "-keyout", key, "-out", certificate, "-subj", f"/CN={name}")
        made += [certificate, key]
    return Certificates(ca, *made)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
