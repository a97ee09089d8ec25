"""Connections of http.client that take a proxy, and trust what our other connections trust."""

import http.client
import ssl

from garboard.net.connect import Route, open_connection, start_tls


class ProxiedHttps(http.client.HTTPSConnection):
    """An HTTPS connection along a route."""

    def __init__(self, route: Route, context: ssl.SSLContext, timeout_s: float | None) -> None:
        super().__init__(route.host, route.port, timeout=timeout_s, context=context)
        self._route = route
        self._tls = context

    def connect(self) -> None:
        self.sock = start_tls(open_connection(self._route, self.timeout), self._tls, self.host)
