"""What a TLS client needs of certificates that are in memory: kube and etcd both connect with it."""

import os
import ssl


def client_context(ca: bytes, credential: bytes, *, is_unverified: bool = False) -> ssl.SSLContext:
    """Return how connections are made: `ca` alone is trusted if it is given; `credential` is a certificate and key."""
    if is_unverified:
        # Nobody's authorities are loaded: the system's alone would take as long as the whole request.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cadata=ca.decode("ascii", "replace") or None)
    if credential:
        _load_credential(context, credential)
    return context


def _load_credential(context: ssl.SSLContext, pem: bytes) -> None:
    # The ssl module takes certificates from files only; one in memory keeps the key off every disk.
    file = os.memfd_create("credential")
    try:
        os.write(file, pem)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
