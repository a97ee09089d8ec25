"""The names a certificate can carry: DNS names and addresses, distinguished as kubeadm does it."""

from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Self

from garboard.errors import InvalidValue
from garboard.model.addresses import IpAddress, join_host_port, parse_host_port, parse_ip
from garboard.model.names import subdomain_problems, wildcard_problems
from garboard.values import dataclass


def plain_ip(address: IpAddress) -> IpAddress:
    """Return the IPv4 address inside an IPv4-mapped one, and any other address as it is."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def is_dns_name(text: str) -> bool:
    """Whether `text` may stand in a certificate as a DNS name: a subdomain, or one with `*` for its first label."""
    return not subdomain_problems(text) or not wildcard_problems(text)


@dataclass(frozen=True, slots=True)
class AltNames:
    """The subject alternative names of one certificate, in the order in which they were asked for."""

    dns: tuple[str, ...] = ()
    ips: tuple[IpAddress, ...] = ()

    def canonical(self) -> Self:
        """Return the names as kubeadm writes them: DNS names sorted, addresses as they came, nothing twice."""
        ips = dict.fromkeys(plain_ip(each) for each in self.ips)
        return type(self)(tuple(sorted(set(self.dns))), tuple(ips))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.dns + other.dns, self.ips + other.ips)


NO_NAMES = AltNames()


@dataclass(frozen=True, slots=True)
class SortedNames:
    """Names given as text, by kind; `rejected` are neither addresses nor DNS names and go into no certificate."""

    names: AltNames
    rejected: tuple[str, ...]


def sort_names(texts: Iterable[str]) -> SortedNames:
    """Return a list of extra names, divided into addresses, DNS names and neither."""
    dns: list[str] = []
    ips: list[IpAddress] = []
    rejected: list[str] = []
    for text in texts:
        if (address := parse_ip(text)) is not None:
            ips.append(address)
        else:
            (dns if is_dns_name(text) else rejected).append(text)
    return SortedNames(AltNames(tuple(dns), tuple(ips)), tuple(rejected))


@dataclass(frozen=True, slots=True)
class ControlPlaneEndpoint:
    """Where an API server is reached: a host and a port as they were written; without a port, another one is taken."""

    host: str
    port: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            host, port = parse_host_port(text)
        except InvalidValue as error:
            hint = "write it as api.example.com:6443, 10.0.0.1:6443 or [fd00::1]:6443"
            raise InvalidValue(error.message, hint=hint) from None
        return cls(host, port)

    def names(self) -> AltNames:
        """Return the host as a certificate name."""
        address = parse_ip(self.host)
        return AltNames(dns=(self.host,)) if address is None else AltNames(ips=(address,))

    def url(self, default_port: int) -> str:
        return f"https://{join_host_port(self.host, self.port or default_port)}"
