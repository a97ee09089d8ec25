"""TLS contexts from files, with failures in words; a listener reads all of its files again when they change.

One listener can serve many server names, each with a certificate and an authority of its own. OpenSSL lets a ticket
that one name gave out be shown to another, and then verifies nothing: so tickets are not given out, and a session that
is resumed all the same is refused after the handshake (`ListenerKeys.objection`).
"""

import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from garboard.errors import NotReady
from garboard.rpc import client_tls, server_tls

# A peer that says nothing holds a socket no longer than this.
HANDSHAKE_TIMEOUT_S: Final = 10.0

log = logging.getLogger("garboard.tunnel")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Certificate and key files, and the authority whose clients are let in."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.certificate, self.key, *((self.client_ca,) if self.client_ca else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPolicy:
    """What a listener agrees to; `ciphers` are OpenSSL's names and concern TLS 1.2 only."""

    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()
    speaks_h2: bool = True


def server_context(keys: KeyPair, policy: TlsPolicy) -> ssl.SSLContext:
    """For a listener; with an authority, clients must show a certificate of it."""
    try:
        context = server_tls(keys.certificate, keys.key, client_ca_file=keys.client_ca)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, *keys.files) from error
    return _agree(context, policy)


def _agree(context: ssl.SSLContext, policy: TlsPolicy) -> ssl.SSLContext:
    context.minimum_version = policy.minimum
    context.set_alpn_protocols(["h2"] if policy.speaks_h2 else ["http/1.1"])
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    if policy.ciphers:
        context.set_ciphers(":".join(policy.ciphers))
    return context


class ListenerKeys:
    """The certificate and the authority behind one or more server names, in step with their files on disk."""

    def __init__(self, files: KeyPair, policy: TlsPolicy) -> None:
        self.files = files
        self._policy = policy
        self.context = server_context(files, policy)
        self._seen = _versions(files.files)

    def refresh(self) -> bool:
        """Load the files again if they changed; files that cannot be used are left alone until they can be.

        A new context takes the place of the old one: an authority that is gone from its file is gone.
        """
        found = _versions(self.files.files)
        if found == self._seen:
            return False
        self._seen = found
        try:
            self.context = server_context(self.files, self._policy)
        except NotReady as error:
            log.warning("certificate.not-reloaded file=%s reason=%s", self.files.certificate, error)
            return False
        log.info("certificate.reloaded file=%s", self.files.certificate)
        return True

    def objection(self, peer: ssl.SSLObject) -> str:
        """Why a client that has shaken hands is not let in after all; empty for one that is."""
        if peer.session_reused:
            return "it resumed a session, which proves nothing about its certificate"
        if self.files.client_ca is None:
            return ""
        chain = _verified_chain(peer)
        if not chain or chain[-1] not in self.context.get_ca_certs(binary_form=True):
            return "it showed no certificate of the authority for this server name"
        return ""


def _verified_chain(peer: ssl.SSLObject) -> list[bytes]:
    """The peer's certificate first, the authority last, as DER; nothing if the peer showed none."""
    verified = peer._sslobj.get_verified_chain()  # type: ignore[attr-defined]  # noqa: SLF001  # public from 3.13 on
    return [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in verified or ()]


class Listening:
    """The context of a listening socket, which turns every client over to the keys for the name it asks for."""

    def __init__(self, choose: Callable[[str | None], ListenerKeys | None], policy: TlsPolicy) -> None:
        self._choose = choose
        self._owners: WeakKeyDictionary[ssl.SSLContext, ListenerKeys] = WeakKeyDictionary()
        self.context = _agree(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), policy)
        # As Go does: whatever the authority's file holds is trusted, an intermediate too.
        self.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.context.sni_callback = self._on_hello

    def ask_for(self, keys: Iterable[ListenerKeys]) -> None:
        """Ask clients for certificates as these keys want it; to be said before the first of them comes."""
        # Whether a certificate is asked for is settled before the name is known; whether it must be there, after.
        asks = [each.files.client_ca is not None for each in keys]
        self.context.verify_mode = ssl.CERT_REQUIRED if all(asks) else ssl.CERT_OPTIONAL if any(asks) else ssl.CERT_NONE

    def owner_of(self, peer: ssl.SSLObject) -> ListenerKeys | None:
        """The keys that a client has shaken hands with."""
        return self._owners.get(peer.context)

    def _on_hello(self, peer: ssl.SSLObject | ssl.SSLSocket, name: str | None, _base: ssl.SSLContext) -> int | None:
        keys = self._choose(name)
        if keys is None:
            log.warning("tls.refused reason=unknown-server-name name=%s", (name or "")[:253])
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        self._owners[keys.context] = keys
        peer.context = keys.context
        return None


def handshake(listening: Listening) -> dict[str, Any]:
    """How a listening socket agrees on TLS, as the event loop's `create_server` takes it."""
    return {"ssl": listening.context, "ssl_handshake_timeout": HANDSHAKE_TIMEOUT_S}


def _versions(files: tuple[Path, ...]) -> tuple[tuple[int, int, int] | None, ...]:
    """What tells one version of a file from the next."""
    return tuple(version_of(file) for file in files)


def version_of(file: Path) -> tuple[int, int, int] | None:
    """What tells one version of a file from the next; nothing of one that is not there."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_ino, stat.st_size)


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
