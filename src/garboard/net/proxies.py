"""Which proxy a connection takes: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, read as Go programs read them.

The rules are those of golang.org/x/net/http/httpproxy and, for the address of a proxy, of net/url; the tests compare
with both. They differ from those of Python's urllib in most details.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import unquote

from garboard.errors import InvalidValue
from garboard.values import dataclass

DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}

_Address: TypeAlias = IPv4Address | IPv6Address
_Matches: TypeAlias = Callable[[str, str, _Address | None], bool]  # of a host, its port, and the host as an address


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """A proxy; as text it is shown without its user, whose password must not get into a message."""

    scheme: str
    host: str
    port: int
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "ProxyAddress | None":
        """Return the proxy of an environment variable; None if Go would not take it for an address either."""
        found = _parse_url(text)
        if found is None or not found.scheme or not found.authority:
            # Such as proxy.example:3128.
            found = _parse_url(f"http://{text}") or found
        return None if found is None else _proxy_of(found)


def proxy_for(scheme: str, host: str, port: int, environment: Mapping[str, str]) -> ProxyAddress | None:
    """Return the proxy for a connection to `host`, whose scheme is `http` or `https`; None if it is made directly."""
    text = _first(environment, f"{scheme.upper()}_PROXY", f"{scheme}_proxy")
    proxy = ProxyAddress.parse(text) if text else None
    if proxy is None:
        return None
    if scheme == "http" and environment.get("REQUEST_METHOD"):
        raise InvalidValue(
            "HTTP_PROXY is not used in a CGI program, where a client could have set it",
            hint="unset REQUEST_METHOD if this is no CGI program",
        )
    return None if _is_exempt(_ascii(host), str(port), _first(environment, "NO_PROXY", "no_proxy")) else proxy


def parse_proxy_url(text: str) -> ProxyAddress:
    """Return the proxy that a kubeconfig names in `proxy-url`, by the rules of client-go."""
    found = _parse_url(text)
    if found is None or found.scheme not in ("http", "https", "socks5") or not found.authority:
        raise InvalidValue(
            "its proxy-url is no address of a proxy", hint="write it as http://, https:// or socks5:// host:port"
        )
    return _proxy_of(found)


def _first(environment: Mapping[str, str], *names: str) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")


# NO_PROXY


def _is_exempt(host: str, port: str, exceptions: str) -> bool:
    if host == "localhost":
        return True
    address = _as_ipv4(_parse_address(host.partition("%")[0] if ":" in host else host))
    if address is not None and address.is_loopback:
        return True
    return any(matches(host.strip().lower(), port, address) for matches in _matchers(exceptions))


def _matchers(exceptions: str) -> list[_Matches]:
    found: list[_Matches] = []
    for part in exceptions.split(","):
        entry = part.strip().lower()
        if entry == "*":
            return [lambda _host, _port, _address: True]
        if matcher := _matcher(entry):
            found.append(matcher)
    return found


def _matcher(entry: str) -> _Matches | None:
    network = _parse_network(entry)
    if network is not None:
        return lambda _host, _port, address: address is not None and address in network
    host, port = _split_host_port(entry) or (entry, "")
    if not host:
        return None
    exact = _as_ipv4(_parse_address(host))
    if exact is not None:
        return lambda _host, at, address: address == exact and port in ("", at)
    return _domain_matcher(host, port)


def _domain_matcher(host: str, port: str) -> _Matches:
    """`example.com` matches itself and what is below; `.example.com` and `*.example.com` only what is below."""
    domain = host[1:] if host.startswith("*.") else host
    includes_itself = not domain.startswith(".")
    suffix = f".{_ascii(domain.removeprefix('.'))}"

    def matches(name: str, at: str, address: _Address | None) -> bool:
        is_covered = name.endswith(suffix) or (includes_itself and name == suffix[1:])
        return address is None and is_covered and port in ("", at)

    return matches


def _split_host_port(text: str) -> tuple[str, str] | None:
    """Split as Go's net.SplitHostPort; None where that fails."""
    if found := re.fullmatch(r"\[([^\[\]]*)\]:([^\[\]:]*)", text):
        return found[1], found[2]
    if found := re.fullmatch(r"([^\[\]:]*):([^\[\]:]*)", text):
        return found[1], found[2]
    return None


def _parse_address(text: str) -> _Address | None:
    try:
        return ip_address(text) if "%" not in text else None
    except ValueError:
        return None


def _as_ipv4(address: _Address | None) -> _Address | None:
    """Return an IPv4 address that is written as an IPv6 one in the form that Go compares."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _parse_network(text: str) -> IPv4Network | IPv6Network | None:
    address, slash, bits = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]+", bits) or _parse_address(address) is None:
        return None
    try:
        network = ip_network(f"{address}/{int(bits)}", strict=False)
    except ValueError:
        return None
    if isinstance(network, IPv6Network) and (mapped := network.network_address.ipv4_mapped):
        return IPv4Network((int(mapped), network.prefixlen - 96)) if network.prefixlen >= 96 else network
    return network


def _ascii(host: str) -> str:
    """Return the form of an international name that DNS has; a name that has none stays as it is."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


# The address of a proxy


@dataclass(frozen=True, slots=True)
class _Url:
    """As much of a URL as a proxy has: `authority` is host and port, and `userinfo` is None where there is none."""

    scheme: str
    authority: str = ""
    userinfo: str | None = field(default=None, repr=False)


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_USERINFO = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NAME = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=<>\"\]-]|%[89A-Fa-f][0-9A-Fa-f]|%25|[^\x00-\x7f])*")
_PORT = re.compile(r"(?::[0-9]*)?")


def _parse_url(text: str) -> _Url | None:
    """Split a URL as Go's url.Parse does; None where that fails."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        return None
    whole, _, fragment = text.partition("#")
    found = _SCHEME.fullmatch(whole)
    scheme, rest = (found[1].lower(), found[2]) if found else ("", whole)
    if (not found and whole.startswith(":")) or _BAD_ESCAPE.search(fragment):
        return None
    rest = rest.partition("?")[0]
    if not rest.startswith("/") and (scheme or ":" in rest.partition("/")[0]):
        return _Url(scheme) if scheme else None
    if not rest.startswith("//") or (not scheme and rest.startswith("///")):
        return None if _BAD_ESCAPE.search(rest) else _Url(scheme)
    authority, _, path = rest[2:].partition("/")
    userinfo, at, place = authority.rpartition("@")
    is_sound = _USERINFO.fullmatch(userinfo) and not _BAD_ESCAPE.search(userinfo + "\n" + path)
    return _Url(scheme, place, userinfo if at else None) if is_sound and _is_place(place) else None


def _is_place(text: str) -> bool:
    """Say whether a text is a host, with or without a port."""
    if text.startswith("["):
        literal, bracket, port = text[1:].rpartition("]")
        address = _parse_address(literal.partition("%25")[0])
        return bool(bracket and _PORT.fullmatch(port) and isinstance(address, IPv6Address))
    name, colon, port = text.partition(":")
    return bool(_NAME.fullmatch(name) and _PORT.fullmatch(colon + port))


def _proxy_of(url: _Url) -> ProxyAddress:
    host, _, port = url.authority.partition(":")
    if url.authority.startswith("["):
        host, _, port = url.authority[1:].rpartition("]")
    name, _, password = (url.userinfo or "").partition(":")
    digits = port.removeprefix(":")
    return ProxyAddress(
        scheme=url.scheme,
        host=unquote(host),
        port=int(digits) if digits else DEFAULT_PORTS.get(url.scheme, 0),
        user=None if url.userinfo is None else unquote(name),
        password=unquote(password),
    )
