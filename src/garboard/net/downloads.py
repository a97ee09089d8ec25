"""urllib with our proxies and certificates: redirects and the rest of HTTP are left to it."""

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from ssl import SSLContext
from urllib.parse import urlsplit
from urllib.request import AbstractHTTPHandler, OpenerDirector, ProxyHandler, Request, build_opener

from garboard.net.connect import ProxyFailed, Route, proxy_headers
from garboard.net.https import ProxiedHttps
from garboard.net.proxies import DEFAULT_PORTS, proxy_for
from garboard.net.tls import new_client_context


def opener(environment: Mapping[str, str], context: SSLContext | None = None) -> OpenerDirector:
    """Return what opens URLs through the proxies that an environment names, redirects included.

    Without a context, the authorities of the system are trusted.
    """
    return build_opener(ProxyHandler({}), _ProxiedHandler(environment, context))


class _ProxiedHandler(AbstractHTTPHandler):
    """Opens http and https URLs, in place of urllib's own handlers."""

    handler_order = 100  # before those

    def __init__(self, environment: Mapping[str, str], context: SSLContext | None) -> None:
        super().__init__()
        self._environment = environment
        self._tls = context

    http_request = https_request = AbstractHTTPHandler.do_request_

    def https_open(self, request: Request) -> HTTPResponse:
        route = self._route(request, "https")

        def connect(_host: str, *, timeout: float) -> HTTPConnection:
            return ProxiedHttps(route, self._tls or new_client_context(), timeout)

        return self.do_open(connect, request)  # type: ignore[arg-type]  # it passes nothing else

    def http_open(self, request: Request) -> HTTPResponse:
        proxy = self._route(request, "http").proxy
        if proxy is not None:  # it is asked for the whole URL
            if proxy.scheme != "http":
                raise ProxyFailed(f"the proxy {proxy} serves https:// addresses only")
            request.set_proxy(str(proxy).partition("://")[2], "http")
            for name, value in proxy_headers(proxy).items():
                request.add_unredirected_header(name, value)
        return self.do_open(HTTPConnection, request)

    def _route(self, request: Request, scheme: str) -> Route:
        parts = urlsplit(request.full_url)
        host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[scheme]
        return Route(host, port, proxy_for(scheme, host, port, self._environment))
