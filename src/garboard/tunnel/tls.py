"""TLS contexts from files, and the flags that choose versions and suites; a listener reads its files again when they
change.

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

from garboard.errors import GarboardError, InvalidValue, NotReady
from garboard.net import tls as contexts
from garboard.rpc import client_tls, server_tls
from garboard.tunnel.log_text import quoted

# A peer that sends nothing holds a socket no longer than this.
HANDSHAKE_TIMEOUT_S: Final = 10.0
# Cipher suites by Go's names, which the stock flags take: those that Go counts as secure. Suites of TLS 1.3 cannot be
# chosen there either, and change nothing.
SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
NEWER: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
# Older versions are taken, as in the stock server, and mean 1.2: nothing below it is safe, nor in our OpenSSL.
_VERSIONS: Final = {
    **dict.fromkeys(("", "VersionTLS10", "VersionTLS11", "VersionTLS12"), ssl.TLSVersion.TLSv1_2),
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

_DER: Final = 2  # ssl.ENCODING_DER, which is public from 3.13 on

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


def parse_suites(names: Iterable[str]) -> tuple[str, ...]:
    """OpenSSL's names for suites of TLS 1.2; none for none given."""
    wanted = tuple(names)
    unknown = sorted(set(wanted) - SUITES.keys() - NEWER)
    if unknown:
        raise InvalidValue(f"{unknown[0]} is not a secure cipher suite", hint=f"known are {', '.join(sorted(SUITES))}")
    return tuple(SUITES[name] for name in wanted if name in SUITES)


def parse_minimum(text: str) -> ssl.TLSVersion:
    try:
        return _VERSIONS[text]
    except KeyError:
        raise InvalidValue(f"{text!r} is not a TLS version", hint="write VersionTLS12 or VersionTLS13") from None


def server_context(keys: KeyPair, policy: TlsPolicy) -> ssl.SSLContext:
    """For a listener; with an authority, clients must show a certificate of it."""
    try:
        context = _agree(server_tls(keys.certificate, keys.key, client_ca_file=keys.client_ca), policy)
        contexts.keep_chain(context, keys.key)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, *keys.files) from error
    return context


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
        self._use(server_context(files, policy))
        self._seen = _versions(files.files)

    def _use(self, context: ssl.SSLContext) -> None:
        self.context = context
        self._authorities = frozenset(context.get_ca_certs(binary_form=True))

    def refresh(self) -> bool:
        """Load the files again if they changed; files that cannot be used are left alone until they can be.

        A new context takes the place of the old one: an authority that is gone from its file is gone.
        """
        found = _versions(self.files.files)
        if found == self._seen:
            return False
        self._seen = found
        try:
            self._use(server_context(self.files, self._policy))
        except NotReady as error:
            log.warning("certificate.not-reloaded file=%s reason=%s", self.files.certificate, quoted(str(error)))
            return False
        log.info("certificate.reloaded file=%s", self.files.certificate)
        return True

    def objection(self, peer: ssl.SSLObject) -> str:
        """Why a client is refused after its handshake; empty if it is not."""
        if peer.session_reused:
            return "it resumed a session, which proves nothing about its certificate"
        if self.files.client_ca is None:
            return ""
        if _authority_of(peer) not in self._authorities:
            return "it showed no certificate of the authority for this server name"
        return ""


def _authority_of(peer: ssl.SSLObject) -> bytes:
    """The authority at the end of the peer's chain, as DER; nothing if the peer showed no certificate."""
    verified = peer._sslobj.get_verified_chain()  # type: ignore[attr-defined]  # noqa: SLF001  # public from 3.13 on
    return verified[-1].public_bytes(_DER) if verified else b""


class ListenerTls:
    """The context of a listening socket, which serves every client with the keys for the server name it asks for."""

    def __init__(self, choose: Callable[[str | None], ListenerKeys | None], policy: TlsPolicy) -> None:
        self._choose = choose
        self._owners: WeakKeyDictionary[ssl.SSLContext, ListenerKeys] = WeakKeyDictionary()
        self.context = _agree(contexts.new_server_context(), policy)
        self.context.sni_callback = self._on_hello

    def ask_for(self, keys: Iterable[ListenerKeys]) -> None:
        """Ask clients for certificates as these keys require; to be called before the first client connects."""
        # Whether a certificate is asked for is settled before the name is known; whether it must be there, after.
        asks = [each.files.client_ca is not None for each in keys]
        self.context.verify_mode = ssl.CERT_REQUIRED if all(asks) else ssl.CERT_OPTIONAL if any(asks) else ssl.CERT_NONE

    def owner_of(self, peer: ssl.SSLObject) -> ListenerKeys | None:
        """The keys that were used in a client's handshake."""
        return self._owners.get(peer.context)

    def _on_hello(self, peer: ssl.SSLObject | ssl.SSLSocket, name: str | None, _base: ssl.SSLContext) -> int | None:
        keys = self._choose(name)
        if keys is None:
            log.warning("tls.refused reason=unknown-server-name name=%s", quoted((name or "")[:253]))
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        self._owners[keys.context] = keys
        peer.context = keys.context
        return None


def handshake(listening: ListenerTls) -> dict[str, Any]:
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


class FileMissing(NotReady):
    """A TLS file that is not there; with the exit code that a missing file has everywhere."""

    exit_code = GarboardError.exit_code
    default_class = "file-missing"


def _unusable(error: OSError, *files: Path | None) -> NotReady:
    missing = [file for file in files if file is not None and not file.is_file()]
    if missing:
        return FileMissing(f"{missing[0]} is missing", hint="check the path")
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    named = ", ".join(str(file) for file in files if file is not None)
    hint = "check that they are PEM files and that certificate and key belong together"
    return NotReady(f"cannot use {named} for TLS: {reason}", hint=hint, error_class="bad-certificate")
