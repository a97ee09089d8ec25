"""Fetching a file over HTTP(S), and probing the health of a server; both bounded in size and time."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from garboard.errors import GarboardError
from garboard.lazy import lazy_module
from garboard.values import dataclass

if TYPE_CHECKING:
    import http.client as http_client
    import ssl
    import urllib.error as url_error
    import urllib.parse as url_parse
    import urllib.request as url_request

    from garboard.net import downloads, tls
else:
    # Most runs fetch nothing, and these take longer to import than everything else together.
    http_client = lazy_module("http.client")
    ssl = lazy_module("ssl")
    url_error = lazy_module("urllib.error")
    url_parse = lazy_module("urllib.parse")
    url_request = lazy_module("urllib.request")
    downloads = lazy_module("garboard.net.downloads")
    tls = lazy_module("garboard.net.tls")

MAX_BYTES = 512 * 1024 * 1024
CONNECT_TIMEOUT_S = 5.0


class Unreachable(GarboardError):
    """A server that does not answer, or answers with anything but the file."""

    default_class = "download"


def fetch(
    url: str,
    *,
    timeout_s: float = CONNECT_TIMEOUT_S,
    limit: int = MAX_BYTES,
    environment: Mapping[str, str] = os.environ,
) -> bytes:
    """Return the bytes behind `url`, through the proxy that the environment names for it."""
    if not url.startswith(("https://", "http://")):
        raise Unreachable(f"{url} is no web address")
    try:
        with downloads.opener(environment).open(url, timeout=timeout_s) as answer:
            data: bytes = answer.read(limit + 1)
    except (url_error.URLError, http_client.HTTPException, OSError) as error:
        raise Unreachable(f"{url}: {getattr(error, 'reason', None) or error}") from error
    if len(data) > limit:
        raise Unreachable(f"{url} is larger than {limit // 1024**2} MiB")
    return data


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """The answer of a server, whatever its status; `date` is the header of that name."""

    status: int
    text: str
    date: str = ""


_PROBE_TIMEOUT_S = 5.0
_PROBE_BYTES = 64 * 1024


def probe(url: str, *, timeout_s: float = _PROBE_TIMEOUT_S) -> WebAnswer:
    """Ask a server without verifying its certificate, as the kubelet's own probes do; proxies are not used."""
    return _ask(url, tls.new_client_context(is_unverified=True), timeout_s)


def probe_as(
    url: str,
    *,
    ca: bytes,
    credential: bytes,
    timeout_s: float = _PROBE_TIMEOUT_S,
    environment: Mapping[str, str] = os.environ,
) -> WebAnswer:
    """Ask a server whose certificate the CA must have signed, through the proxy that the environment names for it.

    `credential` is a client certificate with its key. Each may be empty: the authorities of the system are trusted
    then, and no certificate is shown.
    """
    try:
        context = tls.new_client_context(ca, credential)
    except (OSError, ssl.SSLError) as error:
        raise Unreachable(f"{url}: its certificates cannot be read: {error}") from error
    try:
        with downloads.opener(environment, context).open(url, timeout=timeout_s) as answer:
            return WebAnswer(answer.status, answer.read(_PROBE_BYTES).decode("utf-8", "replace"))
    except url_error.HTTPError as error:
        with error:
            return WebAnswer(error.code, error.read(_PROBE_BYTES).decode("utf-8", "replace"))
    except (url_error.URLError, http_client.HTTPException, OSError) as error:
        raise Unreachable(f"{url}: {getattr(error, 'reason', None) or error}") from error


def _ask(url: str, context: "ssl.SSLContext", timeout_s: float) -> WebAnswer:
    parts = url_parse.urlsplit(url)
    connection: http_client.HTTPConnection
    if parts.scheme == "https":
        connection = http_client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout_s, context=context)
    else:
        connection = http_client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", parts.path or "/")
        with connection.getresponse() as answer:
            text = answer.read(_PROBE_BYTES).decode("utf-8", "replace")
            return WebAnswer(answer.status, text, answer.headers.get("Date", ""))
    except (http_client.HTTPException, OSError) as error:
        raise Unreachable(f"{url}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        connection.close()
