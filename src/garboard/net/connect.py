"""Opening a connection, directly or through a proxy: CONNECT over HTTP or HTTPS, or SOCKS 5."""

import base64
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import TypeAlias

from garboard.net.nested_tls import NestedTls
from garboard.net.proxies import ProxyAddress
from garboard.net.tls import new_client_context
from garboard.values import dataclass

Connection: TypeAlias = socket.socket | NestedTls

_MAX_ANSWER_BYTES = 64 * 1024


class ProxyFailed(OSError):
    """The proxy could not be reached, or refused; the server behind it has heard nothing. Its text has no secrets."""


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a server; a proxy that speaks TLS is trusted if `ca`, or an authority of the system, signed for it.

    With `entrance`, a host and a port where a tunnel to the server begins, there is no other way.
    """

    host: str
    port: int
    proxy: ProxyAddress | None = None
    ca: bytes = b""
    entrance: tuple[str, int] | None = None


def open_connection(route: Route, timeout_s: float | None) -> socket.socket:
    """Return a connection over which the server at the end of the route hears what is sent."""
    if route.entrance is not None or route.proxy is None:
        return _tcp(*(route.entrance or (route.host, route.port)), timeout_s)
    try:
        return _through(route.proxy, route, timeout_s)
    except ProxyFailed:
        raise
    except OSError as error:
        reason = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else error.strerror or error
        raise ProxyFailed(f"the proxy {route.proxy} cannot be used: {reason}") from error


def start_tls(connection: socket.socket, context: ssl.SSLContext, server_name: str) -> ssl.SSLSocket | NestedTls:
    """Return the connection with TLS on top, which proves that it leads to `server_name`."""
    try:
        if isinstance(connection, ssl.SSLSocket):
            return NestedTls(connection, context, server_name)
        return context.wrap_socket(connection, server_hostname=server_name)
    except BaseException:
        connection.close()
        raise


def proxy_headers(proxy: ProxyAddress) -> dict[str, str]:
    """Return what a proxy is told about its user."""
    if proxy.user is None:
        return {}
    secret = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {secret}"}


def _tcp(host: str, port: int, timeout_s: float | None) -> socket.socket:
    connection = socket.create_connection((host, port), timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _through(proxy: ProxyAddress, route: Route, timeout_s: float | None) -> socket.socket:
    ask = _ASKING.get(proxy.scheme)
    if ask is None or not proxy.host:
        raise ProxyFailed(f"the proxy {proxy} is none of {', '.join(f'{scheme}://' for scheme in _ASKING)}")
    connection = _tcp(proxy.host, proxy.port, timeout_s)
    try:
        if proxy.scheme == "https":
            connection = _tls_of_proxy(route.ca).wrap_socket(connection, server_hostname=proxy.host)
        ask(connection, proxy, route)
    except BaseException:
        connection.close()
        raise
    return connection


def _tls_of_proxy(ca: bytes) -> ssl.SSLContext:
    context = new_client_context(ca)
    if ca:
        context.load_default_certs()
    return context


def _ask_by_connect(connection: socket.socket, proxy: ProxyAddress, route: Route) -> None:
    host = f"[{route.host}]" if ":" in route.host else route.host
    place = f"{host}:{route.port}"
    headers = {"Host": place, **proxy_headers(proxy)}
    lines = [f"CONNECT {place} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    connection.sendall("\r\n".join(lines).encode())
    answer = b""
    # By single bytes: what follows the empty line belongs to the server behind, which may speak first.
    while not answer.endswith(b"\r\n\r\n") and len(answer) < _MAX_ANSWER_BYTES:
        if not (byte := connection.recv(1)):
            break
        answer += byte
    status = answer.partition(b"\r\n")[0].decode("latin-1")
    if not re.match(r"HTTP/1\.[01] 200\b", status):
        said = status.partition(" ")[2].strip() or "it ended the connection"
        raise ProxyFailed(f"the proxy {proxy} does not connect to {place}: {said}")


_SOCKS_REFUSALS: Mapping[int, str] = {
    1: "general failure",
    2: "its rules do not allow it",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "it took too long",
    7: "it knows no CONNECT",
    8: "it does not know this type of address",
}
_NO_AUTHENTICATION, _BY_PASSWORD = 0, 2
_NAME, _IPV4_BYTES, _IPV6_BYTES = 3, 4, 16


def _ask_by_socks(connection: socket.socket, proxy: ProxyAddress, route: Route) -> None:
    """Ask by SOCKS 5 (RFC 1928, RFC 1929); the proxy resolves names, as it does for Go programs."""
    methods = bytes([_NO_AUTHENTICATION] if proxy.user is None else [_NO_AUTHENTICATION, _BY_PASSWORD])
    connection.sendall(bytes([5, len(methods)]) + methods)
    version, method = _exactly(connection, 2, proxy)
    if version != 5 or method not in methods:
        raise ProxyFailed(f"the proxy {proxy} does not speak SOCKS 5, or wants another kind of user")
    if method == _BY_PASSWORD:
        name, password = (proxy.user or "").encode(), proxy.password.encode()
        connection.sendall(bytes([1, len(name)]) + name + bytes([len(password)]) + password)
        if _exactly(connection, 2, proxy)[1]:
            raise ProxyFailed(f"the proxy {proxy} does not accept its user and password")
    connection.sendall(b"\x05\x01\x00" + _socks_address(route.host) + route.port.to_bytes(2, "big"))
    _, refusal, _, kind = _exactly(connection, 4, proxy)
    if refusal:
        reason = _SOCKS_REFUSALS.get(refusal, f"code {refusal}")
        raise ProxyFailed(f"the proxy {proxy} does not connect to {route.host}:{route.port}: {reason}")
    size = {1: _IPV4_BYTES, 4: _IPV6_BYTES}.get(kind) or _exactly(connection, 1, proxy)[0]
    _exactly(connection, size + 2, proxy)  # where the proxy connects from


def _socks_address(host: str) -> bytes:
    for kind, family in ((1, socket.AF_INET), (4, socket.AF_INET6)):
        try:
            return bytes([kind]) + socket.inet_pton(family, host)
        except OSError:
            continue
    name = host.encode("ascii" if host.isascii() else "idna")
    return bytes([_NAME, len(name)]) + name


def _exactly(connection: socket.socket, size: int, proxy: ProxyAddress) -> bytes:
    data = b""
    while len(data) < size:
        if not (part := connection.recv(size - len(data))):
            raise ProxyFailed(f"the proxy {proxy} ended the connection")
        data += part
    return data


_ASKING: Mapping[str, Callable[[socket.socket, ProxyAddress, Route], None]] = {
    "http": _ask_by_connect,
    "https": _ask_by_connect,
    "socks5": _ask_by_socks,
    "socks5h": _ask_by_socks,
}
