"""The names a certificate can carry: DNS names and addresses, read from text as kubeadm reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Self, TypeAlias

from garboard.errors import InvalidValue

IPAddress: TypeAlias = IPv4Address | IPv6Address

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_MAX_SUBDOMAIN = 253
_OCTET = re.compile(r"[0-9]{1,12}", re.ASCII)


def parse_ip(text: str) -> IPAddress | None:
    """Return the address that `text` spells, or None.

    Leading zeros are decimal, as Kubernetes has always read them (Python and newer Go refuse them), and an IPv4 address
    written inside IPv6 is the IPv4 address.
    """
    if ":" not in text:
        return _parse_ipv4(text)
    head, colon, tail = text.rpartition(":")
    if "." in tail:
        inner = _parse_ipv4(tail)
        text = f"{head}{colon}{inner}" if inner else text
    try:
        found = IPv6Address(text)
    except AddressValueError:
        return None
    return None if found.scope_id else plain_ip(found)


def _parse_ipv4(text: str) -> IPv4Address | None:
    parts = text.split(".")
    if len(parts) != 4 or not all(_OCTET.fullmatch(part) and int(part) <= 255 for part in parts):
        return None
    return IPv4Address(bytes(int(part) for part in parts))


def plain_ip(address: IPAddress) -> IPAddress:
    """Return the IPv4 address inside an IPv4-mapped one, and any other address as it is."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def is_dns_subdomain(text: str) -> bool:
    """Whether `text` is a lower-case RFC 1123 name of dot-separated labels."""
    return len(text) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def is_dns_name(text: str) -> bool:
    """Whether `text` may stand in a certificate as a DNS name: a subdomain, or one with `*` for its first label."""
    return len(text) <= _MAX_SUBDOMAIN and is_dns_subdomain(text.removeprefix("*."))


@dataclass(frozen=True, slots=True)
class AltNames:
    """The subject alternative names of one certificate, in the order in which they were asked for."""

    dns: tuple[str, ...] = ()
    ips: tuple[IPAddress, ...] = ()

    def canonical(self) -> Self:
        """Return the names as kubeadm writes them: DNS names sorted, addresses as they came, nothing twice."""
        ips = dict.fromkeys(plain_ip(each) for each in self.ips)
        return type(self)(tuple(sorted(set(self.dns))), tuple(ips))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.dns + other.dns, self.ips + other.ips)


NO_NAMES = AltNames()


@dataclass(frozen=True, slots=True)
class SortedNames:
    """Names given as text, told apart; `rejected` are neither addresses nor DNS names and go into no certificate."""

    names: AltNames
    rejected: tuple[str, ...]


def sort_names(texts: Iterable[str]) -> SortedNames:
    """Tell addresses from DNS names in a list of extra names."""
    dns: list[str] = []
    ips: list[IPAddress] = []
    rejected: list[str] = []
    for text in texts:
        if (address := parse_ip(text)) is not None:
            ips.append(address)
        else:
            (dns if is_dns_name(text) else rejected).append(text)
    return SortedNames(AltNames(tuple(dns), tuple(ips)), tuple(rejected))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is reached: a host as it was written, and a port when one was given."""

    host: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        host, port = _split_port(text)
        if parse_ip(host) is None and not is_dns_subdomain(host):
            raise InvalidValue(
                f"{text!r} names no host: an address or a lower-case DNS name was expected",
                hint="write it as api.example.com:6443, 10.0.0.1:6443 or [fd00::1]:6443",
            )
        if port is None:
            return cls(host)
        if not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) or not 1 <= int(port) <= 65535:
            raise InvalidValue(f"{text!r}: the port must be a number from 1 to 65535", hint="leave it out for 6443")
        return cls(host, int(port))

    def names(self) -> AltNames:
        """Return the host as a certificate name."""
        address = parse_ip(self.host)
        return AltNames(dns=(self.host,)) if address is None else AltNames(ips=(address,))

    def url(self, default_port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port or default_port}"


def _split_port(text: str) -> tuple[str, str | None]:
    bracketed = re.fullmatch(r"\[([^\[\]]*)\]:([^:]*)", text)
    if bracketed:
        return bracketed[1], bracketed[2] or None
    host, colon, port = text.rpartition(":")
    # More than one colon without brackets is an IPv6 address and no port, as Go splits it.
    return (host, port or None) if colon and ":" not in host else (text, None)
