"""TLS contexts: all of them are made here, so that each trusts the same certificates, whatever Python runs it.

Python's own defaults changed with 3.13. A context of ours accepts what Go programs accept (docs/decisions/tls.md):
authorities without key identifiers, as clusters of many years ago have (VERIFY_X509_STRICT refuses them), and an
authority that is itself signed by another one (VERIFY_X509_PARTIAL_CHAIN allows it).
"""

import contextlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_DER: Final = 2  # ssl.ENCODING_DER, which is public from 3.13 on


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


def new_server_context(client_ca_file: str | Path | None = None, credential: bytes = b"") -> ssl.SSLContext:
    """Return the context of a server; with an authority, clients must show a certificate of it.

    `credential` is its certificate with its key, as PEM, where these are in no files.
    """
    if client_ca_file is None:
        bare = _as_go_verifies(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        if credential:
            _load_credential(bare, credential)
        return bare
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    return _as_go_verifies(context)


def keep_chain(context: ssl.SSLContext, key: Path) -> int:
    """Have a server show the chain that OpenSSL finds for its certificate, without finding it in every handshake.

    If the certificate comes alone, OpenSSL looks for its authorities among those of clients, and verifies what it has
    found, for each client anew. The length of the chain is returned; a context that shows none is left as it is.
    """
    chain = _chain_shown(context)
    if len(chain) > 1:
        pem = "".join(map(ssl.DER_cert_to_PEM_cert, chain))
        with _in_memory(pem.encode()) as file:
            context.load_cert_chain(file, key)
    return len(chain)


def _chain_shown(context: ssl.SSLContext) -> list[bytes]:
    """What a client gets to see, as DER: it is asked in a handshake that reaches no socket."""
    asker = new_client_context(is_unverified=True)
    mode, context.verify_mode = context.verify_mode, ssl.CERT_NONE
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asker.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    try:
        for each in (client, server, client):
            with contextlib.suppress(ssl.SSLWantReadError):
                each.do_handshake()
    except ssl.SSLError:
        return []
    finally:
        context.verify_mode = mode
    found = client._sslobj.get_unverified_chain() or ()  # type: ignore[attr-defined]  # noqa: SLF001  # public from 3.13
    return [each.public_bytes(_DER) for each in found]


def _as_go_verifies(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _load_credential(context: ssl.SSLContext, pem: bytes) -> None:
    with _in_memory(pem) as file:
        context.load_cert_chain(file)


@contextlib.contextmanager
def _in_memory(pem: bytes) -> Iterator[str]:
    """A file for the ssl module, which takes certificates from files only; one in memory keeps a key off every disk."""
    file = os.memfd_create("credential")
    try:
        os.write(file, pem)
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)
