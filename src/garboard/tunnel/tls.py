"""TLS contexts from files, with failures in words."""

import ssl
from pathlib import Path

from garboard.errors import NotReady
from garboard.rpc import client_tls, server_tls


def server_context(certificate: Path, key: Path, client_ca: Path | None, *, speaks_h2: bool) -> ssl.SSLContext:
    """For a listener; with `client_ca` clients must show a certificate of it."""
    try:
        context = server_tls(certificate, key, client_ca_file=client_ca)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, certificate, key, client_ca) from error
    if not speaks_h2:
        context.set_alpn_protocols(["http/1.1"])
    return context


def client_context(
    ca: Path | None, certificate: Path | None, key: Path | None, alpn: tuple[str, ...] = ()
) -> ssl.SSLContext:
    try:
        context = client_tls(ca, certificate=certificate, key=key)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, certificate, key, ca) from error
    if alpn:
        context.set_alpn_protocols(["h2", *alpn])
    return context


def _unusable(error: OSError, *files: Path | None) -> NotReady:
    missing = [file for file in files if file is not None and not file.is_file()]
    if missing:
        return NotReady(f"{missing[0]} is missing", hint="check the path", error_class="file-missing")
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    named = ", ".join(str(file) for file in files if file is not None)
    hint = "check that they are PEM files and that certificate and key belong together"
    return NotReady(f"cannot use {named} for TLS: {reason}", hint=hint, error_class="bad-certificate")
