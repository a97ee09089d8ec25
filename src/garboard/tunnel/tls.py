"""TLS contexts from files, with failures in words; a listener's certificate is read again when its files change."""

import logging
import ssl
from pathlib import Path

from garboard.errors import NotReady
from garboard.rpc import client_tls, server_tls

log = logging.getLogger("garboard.tunnel")


def server_context(certificate: Path, key: Path, client_ca: Path | None, *, speaks_h2: bool) -> ssl.SSLContext:
    """For a listener; with `client_ca` clients must show a certificate of it."""
    try:
        context = server_tls(certificate, key, client_ca_file=client_ca)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, certificate, key, client_ca) from error
    if not speaks_h2:
        context.set_alpn_protocols(["http/1.1"])
    return context


class ListenerKeys:
    """A listener's context, kept in step with the certificate and key on disk for connections to come."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None, *, speaks_h2: bool) -> None:
        self.context = server_context(certificate, key, client_ca, speaks_h2=speaks_h2)
        self._files = (certificate, key)
        self._seen = _versions(self._files)

    def refresh(self) -> bool:
        """Load the files again if they changed; a pair that cannot be used is left alone until it can be."""
        found = _versions(self._files)
        if found == self._seen:
            return False
        self._seen = found
        try:
            # On a context of its own first: a certificate without its key must not get into the one in use.
            server_context(*self._files, None, speaks_h2=True)
            self.context.load_cert_chain(*self._files)
        except (NotReady, OSError) as error:
            log.warning("certificate.not-reloaded file=%s reason=%s", self._files[0], error)
            return False
        log.info("certificate.reloaded file=%s", self._files[0])
        return True


def _versions(files: tuple[Path, ...]) -> tuple[tuple[int, int] | None, ...]:
    """What tells one version of a file from the next."""
    return tuple((file.stat().st_mtime_ns, file.stat().st_ino) if file.exists() else None for file in files)


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
