"""How to reach an API server, from a kubeconfig or a service account: address, trusted CAs and user credentials."""

import posixpath
import ssl
from collections.abc import Mapping
from dataclasses import field
from urllib.parse import urlsplit

from garboard.errors import BadDocument, InvalidValue
from garboard.net.connect import Route
from garboard.net.proxies import ProxyAddress, parse_proxy_url, proxy_for
from garboard.net.tls import new_client_context
from garboard.pki.kubeconfig import CurrentContext, ReadFile, read_kubeconfig
from garboard.values import dataclass


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
    proxy: ProxyAddress | None = None  # if the kubeconfig names one; else the environment may
    entrance: tuple[str, int] | None = None  # where a tunnel to the server begins, if there is no other way

    def route(self, environment: Mapping[str, str]) -> Route:
        """Return the way to the server: a proxy of the kubeconfig comes before one of the environment."""
        proxy = self.proxy or proxy_for("https", self.host, self.port, environment)
        return Route(self.host, self.port, proxy, self.ca, self.entrance)

    def tls(self) -> ssl.SSLContext:
        """Return the TLS settings; only the kubeconfig's own authorities are trusted, if it names any."""
        return new_client_context(self.ca, self.credential, is_unverified=self.is_unverified)


def read_access(data: bytes, source: str, read: ReadFile, *, server: str | None = None) -> Access:
    """Return the access that the current context of a kubeconfig gives; `server`, if given, replaces its server.

    `read` returns the content of a file that the kubeconfig names instead of holding it.
    """
    current = read_kubeconfig(data, source)
    address = server or current.server
    host, port, prefix = _split(address, source)
    access = Access(
        server=address,
        host=host,
        port=port,
        prefix=prefix,
        ca=current.content(current.cluster, "certificate-authority", read),
        credential=_credential(current, read),
        token=_token(current, read),
        is_unverified=current.cluster.get("insecure-skip-tls-verify") is True,
        proxy=_proxy(current, source),
    )
    _try(access, source)
    return access


def anonymous_access(server: str, ca: bytes, *, is_unverified: bool = False) -> Access:
    """Return the access of an anonymous user to a server; without `ca` the system's authorities are trusted."""
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


SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def in_cluster_access(environment: Mapping[str, str], read: ReadFile) -> Access:
    """Return the access of a pod's service account, as client-go finds it."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    token, ca = read(f"{SERVICE_ACCOUNT}/token"), read(f"{SERVICE_ACCOUNT}/ca.crt")
    if not host or not port.isdigit() or token is None or ca is None:
        raise BadDocument(
            "this is no pod with a service account, so there is no way to the API server",
            hint="name a kubeconfig with --kubeconfig",
            error_class="bad-kubeconfig",
        )
    shown = f"[{host}]" if ":" in host else host
    return Access(
        server=f"https://{shown}:{port}",
        host=host,
        port=int(port),
        ca=ca,
        token=token.decode("ascii", "replace").strip(),
    )


def _proxy(current: CurrentContext, source: str) -> ProxyAddress | None:
    text = current.cluster.get("proxy-url")
    try:
        return parse_proxy_url(text) if text and isinstance(text, str) else None
    except InvalidValue as error:
        raise _bad(source, error.message) from error


def _credential(current: CurrentContext, read: ReadFile) -> bytes:
    user = current.user or {}
    parts = [current.content(user, key, read) for key in ("client-certificate", "client-key")]
    return b"\n".join(parts) if all(parts) else b""


def _token(current: CurrentContext, read: ReadFile) -> str:
    """Return the user's token; a token file takes precedence, as in client-go."""
    user = current.user or {}
    path, held = user.get("tokenFile"), user.get("token")
    content = read(posixpath.join(posixpath.dirname(current.source), path)) if path and isinstance(path, str) else None
    if content is not None:
        return content.decode("ascii", "replace").strip()
    return held if isinstance(held, str) else ""


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
