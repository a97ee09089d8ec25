"""Fetching a file over HTTP(S), and asking a server of this machine for its health; both bounded."""

from typing import TYPE_CHECKING

from garboard.errors import GarboardError
from garboard.values import dataclass

if TYPE_CHECKING:
    import ssl

MAX_BYTES = 512 * 1024 * 1024
CONNECT_TIMEOUT_S = 5.0


class Unreachable(GarboardError):
    """A server that does not answer, or answers with anything but the file."""

    default_class = "download"


def fetch(url: str, *, timeout_s: float = CONNECT_TIMEOUT_S, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes behind `url`."""
    # Most runs fetch nothing, and these take longer to import than everything else together.
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise Unreachable(f"{url} is no web address")
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            data: bytes = answer.read(limit + 1)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise Unreachable(f"{url}: {getattr(error, 'reason', None) or error}") from error
    if len(data) > limit:
        raise Unreachable(f"{url} is larger than {limit // 1024**2} MiB")
    return data


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """What a server said, whatever the status; `date` is its header of that name."""

    status: int
    text: str
    date: str = ""


_PROBE_TIMEOUT_S = 5.0
_PROBE_BYTES = 64 * 1024


def probe(url: str, *, timeout_s: float = _PROBE_TIMEOUT_S) -> WebAnswer:
    """Ask a server whose certificate does not matter, as the kubelet's own probes do; proxies are not used."""
    import ssl

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return _ask(url, tls, timeout_s)


def probe_as(
    url: str, *, ca_file: str, cert_file: str, key_file: str, timeout_s: float = _PROBE_TIMEOUT_S
) -> WebAnswer:
    """Ask a server that has to be trusted by a CA, as the owner of a client certificate; each file may be empty."""
    import ssl

    try:
        tls = ssl.create_default_context(cafile=ca_file or None)
        if cert_file and key_file:
            tls.load_cert_chain(cert_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise Unreachable(f"{url}: its certificates cannot be read: {error}") from error
    return _ask(url, tls, timeout_s)


def _ask(url: str, tls: "ssl.SSLContext", timeout_s: float) -> WebAnswer:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout_s, context=tls)
    else:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", parts.path or "/")
        with connection.getresponse() as answer:
            text = answer.read(_PROBE_BYTES).decode("utf-8", "replace")
            return WebAnswer(answer.status, text, answer.headers.get("Date", ""))
    except (http.client.HTTPException, OSError) as error:
        raise Unreachable(f"{url}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        connection.close()
