"""Destinations in the control plane's network: what nodes want to reach, and what a server allows them to.

Both sides are brought to one spelling and then compared; nothing is ever resolved to decide whether it is allowed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

from garboard.errors import InvalidValue

_MAPPED = IPv6Network("::ffff:0:0/96")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_SHAPE = "write host:port, an IPv6 address in brackets"


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """A host and a port; the host is a name in lower case without a final dot, or an address as it is written best."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        host, port = _split(text)
        return cls(_canonical(host, text), port)

    @property
    def is_address(self) -> bool:
        return _is_address(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """Every address of a network on one port; names are not in it, whatever they resolve to."""

    network: IPv4Network | IPv6Network
    port: int

    def holds(self, destination: Destination) -> bool:
        if destination.port != self.port or not destination.is_address:
            return False
        address = ip_address(destination.host)
        if isinstance(address, IPv6Address) and address.ipv4_mapped and not self._is_of_mapped:
            return False  # it leads to an IPv4 address, which a network of IPv6 addresses does not mean
        return address.version == self.network.version and address in self.network

    @property
    def _is_of_mapped(self) -> bool:
        return isinstance(self.network, IPv6Network) and self.network.subnet_of(_MAPPED)

    def __str__(self) -> str:
        return f"[{self.network}]:{self.port}" if self.network.version == 6 else f"{self.network}:{self.port}"


@dataclass(frozen=True, slots=True)
class AllowList:
    """What agents may reach through a server; nothing unless it is named here."""

    destinations: frozenset[Destination] = frozenset()
    networks: tuple[AllowedNetwork, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """From `host:port` and `network/bits:port`, as `--allowed-destination` takes them."""
        destinations: set[Destination] = set()
        networks: list[AllowedNetwork] = []
        for text in texts:
            if "/" in text:
                networks.append(_parse_network(text))
            else:
                destinations.add(Destination.parse(text))
        return cls(frozenset(destinations), tuple(networks))

    def allows(self, destination: Destination) -> bool:
        return destination in self.destinations or any(each.holds(destination) for each in self.networks)

    def entry_for(self, destination: Destination) -> str:
        """What of the list allows it, of which there is no more than was listed; empty if nothing does."""
        if destination in self.destinations:
            return str(destination)
        return next((str(each) for each in self.networks if each.holds(destination)), "")

    def refused(self, wanted: Iterable[Destination]) -> tuple[Destination, ...]:
        """Those of the wanted ones that are not allowed."""
        return tuple(each for each in wanted if not self.allows(each))

    @property
    def is_empty(self) -> bool:
        return not self.destinations and not self.networks

    def __str__(self) -> str:
        return ",".join([*map(str, sorted(self.destinations)), *map(str, self.networks)]) or "nothing"


@dataclass(frozen=True, slots=True)
class NodeTarget:
    """A port on the node that stands for a destination."""

    local_port: int
    destination: Destination

    @classmethod
    def parse(cls, text: str) -> Self:
        """`local_port:dst_host:dst_port`, as `--target` takes it."""
        local, _, rest = text.partition(":")
        try:
            return cls(_port(local), Destination.parse(rest))
        except InvalidValue as error:
            hint = "write local_port:host:port, an IPv6 address in brackets"
            raise InvalidValue(f"{text!r} is not a target: {error.message}", hint=hint) from error

    def __str__(self) -> str:
        return f"{self.local_port}:{self.destination}"


def _split(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon:
        raise InvalidValue(f"{text!r} has no port", hint=_SHAPE)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise InvalidValue(f"{text!r} has brackets around what is no IPv6 address", hint=_SHAPE)
    elif ":" in host:
        raise InvalidValue(f"{text!r} has too many colons", hint=_SHAPE)
    return host, _port(port)


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) or not 0 < int(text) < 65536:
        raise InvalidValue(f"{text!r} is not a port", hint="ports go from 1 to 65535")
    return int(text)


def _canonical(host: str, text: str) -> str:
    # A zone would let one address be written in many ways, and means nothing on another machine.
    if _is_address(host) and "%" not in host:
        return str(ip_address(host))
    name = host.lower().removesuffix(".")
    if _is_address(name):  # with a dot at its end: a name to a resolver, and an address to whoever compares it
        raise InvalidValue(f"{text!r} is neither an address nor a name", hint=_SHAPE)
    if len(name) > 253 or not name.isascii() or _NAME.fullmatch(name) is None:
        raise InvalidValue(f"{text!r} names no host", hint=_SHAPE)
    return name


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _parse_network(text: str) -> AllowedNetwork:
    host, port = _split(text)
    try:
        return AllowedNetwork(ip_network(host), port)
    except ValueError as error:
        hint = "write network/bits:port, an IPv6 network in brackets"
        raise InvalidValue(f"{text!r} is not a network: {error}", hint=hint) from error
