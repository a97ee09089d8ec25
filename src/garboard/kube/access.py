"""What a kubeconfig grants: where the API server is, whom it trusts, and who we are to it."""

import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from garboard.errors import BadDocument
from garboard.pki.kubeconfig import CurrentContext, ReadFile, read_kubeconfig
from garboard.pki.tls import client_context


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A server and a user; `credential` is a client certificate with its key, as PEM."""

    server: str
    host: str
    port: int
    prefix: str = ""
    ca: bytes = b""
    credential: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    is_unverified: bool = False

    def tls(self) -> ssl.SSLContext:
        """Return how connections are made; only the kubeconfig's own authorities are trusted, if it names any."""
        context = client_context(self.ca, self.credential)
        if self.is_unverified:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def read_access(data: bytes, source: str, read: ReadFile, *, server: str | None = None) -> Access:
    """Return what the current context of a kubeconfig grants, at `server` if that is given instead of its own.

    `read` returns the content of a file that the kubeconfig names instead of holding it.
    """
    current = read_kubeconfig(data, source)
    address = server or current.server
    host, port, prefix = _split(address, source)
    token = (current.user or {}).get("token")
    access = Access(
        server=address,
        host=host,
        port=port,
        prefix=prefix,
        ca=current.content(current.cluster, "certificate-authority", read),
        credential=_credential(current, read),
        token=token if isinstance(token, str) else "",
        is_unverified=current.cluster.get("insecure-skip-tls-verify") is True,
    )
    _try(access, source)
    return access


def anonymous_access(server: str, ca: bytes, *, is_unverified: bool = False) -> Access:
    """Return what nobody in particular may do at a server; without `ca` the system's authorities are trusted."""
    host, port, prefix = _split(server, "the API server's endpoint")
    access = Access(server=server, host=host, port=port, prefix=prefix, ca=ca, is_unverified=is_unverified)
    _try(access, server)
    return access


def _split(address: str, source: str) -> tuple[str, int, str]:
    """Return host, port and path of an API server."""
    url = urlsplit(address)
    try:
        port = url.port or 443
    except ValueError:
        port = 0
    if url.scheme != "https" or not url.hostname or not port:
        raise _bad(source, f"its server {address!r} is not an https:// address")
    return url.hostname, port, url.path.rstrip("/")


def _credential(current: CurrentContext, read: ReadFile) -> bytes:
    user = current.user or {}
    parts = [current.content(user, key, read) for key in ("client-certificate", "client-key")]
    return b"\n".join(parts) if all(parts) else b""


def _try(access: Access, source: str) -> None:
    try:
        access.tls()
    except (ssl.SSLError, TypeError, ValueError, OSError):
        raise _bad(source, "its certificates cannot be read, or its key does not belong to them") from None


def _bad(source: str, why: str) -> BadDocument:
    return BadDocument(
        f"{source}: {why}",
        hint="name another file with --kubeconfig, or have a new one made",
        error_class="bad-kubeconfig",
    )
