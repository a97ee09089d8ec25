"""TLS contexts: all of them are made here, so that each trusts the same certificates, whatever Python runs it.

Python's own defaults changed with 3.13. A context of ours accepts what Go programs accept (docs/decisions/tls.md):
authorities without key identifiers, as clusters of many years ago have (VERIFY_X509_STRICT refuses them), and an
authority that is itself signed by another one (VERIFY_X509_PARTIAL_CHAIN allows it).
"""

import os
import ssl
from pathlib import Path


def new_client_context(
    ca: bytes = b"", credential: bytes = b"", *, ca_file: str | Path | None = None, is_unverified: bool = False
) -> ssl.SSLContext:
    """Return the context of a client that trusts `ca`, or else `ca_file`, or else the authorities of the system.

    `credential` is a certificate with its key, as PEM.
    """
    if is_unverified:
        # No authorities are loaded: those of the system would take as long as the whole request.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cafile=ca_file, cadata=ca.decode("ascii", "replace") or None)
    if credential:
        _load_credential(context, credential)
    return _as_go_verifies(context)


def new_server_context(client_ca_file: str | Path | None = None) -> ssl.SSLContext:
    """Return the context of a server; with an authority, clients must show a certificate of it."""
    if client_ca_file is None:
        return _as_go_verifies(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    return _as_go_verifies(context)


def _as_go_verifies(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _load_credential(context: ssl.SSLContext, pem: bytes) -> None:
    # The ssl module takes certificates from files only; one in memory keeps the key off every disk.
    file = os.memfd_create("credential")
    try:
        os.write(file, pem)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
