"""Facts of this machine: its name, its addresses, the container runtimes that listen."""

import os
import socket
import string
import struct
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from itertools import islice
from pathlib import Path

from garboard.errors import GarboardError
from garboard.host.root import at, changed_root, exists, open_path, opened
from garboard.model.node import KNOWN_CRI_SOCKETS

_ROUTES_V4 = Path("/proc/net/route")
_ROUTES_V6 = Path("/proc/net/ipv6_route")
_LOOPBACK = "lo"
_TOKEN_LETTERS = string.digits + string.ascii_lowercase
# rtnetlink(7): ask for all addresses; one message header, then the family.
_RTM_GETADDR, _RTM_NEWADDR, _NLMSG_DONE, _NLM_F_REQUEST_DUMP = 22, 20, 3, 0x301
_IFA_ADDRESS, _IFA_LOCAL = 1, 2

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface


class MachineFacts:
    """Facts about the machine that garboard runs on, found out when asked."""

    def hostname(self) -> str:
        return socket.gethostname()

    def default_address(self, *, prefer_ipv6: bool) -> str | None:
        """The first global address of an interface that a default route goes through, else of the loopback."""
        routes = {4: _default_interfaces_v4(), 6: _default_interfaces_v6()}
        addresses = list(_interface_addresses())
        for family in (6, 4) if prefer_ipv6 else (4, 6):
            for interface in routes[family]:
                for candidate in (interface, _LOOPBACK):
                    found = _global_address(addresses, candidate, family)
                    if found is not None:
                        return found
        return None

    def loopback_address(self) -> str | None:
        addresses = list(_interface_addresses())
        return _global_address(addresses, _LOOPBACK, 4) or _global_address(addresses, _LOOPBACK, 6)

    def cri_sockets(self) -> Sequence[str]:
        return tuple(filter(self.has_listener, KNOWN_CRI_SOCKETS))

    def has_listener(self, url: str) -> bool:
        """Say whether a program listens at a unix socket."""
        path = url.removeprefix("unix://")
        if changed_root() is None:
            return _is_listening(path)
        try:
            with opened(path, os.O_PATH) as found:
                return _is_listening(f"/proc/self/fd/{found}")
        except (OSError, ValueError):  # links in a circle, a name with a NUL byte
            return False

    def new_token(self) -> str:
        letters = "".join(islice(_random_letters(), 22))
        return f"{letters[:6]}.{letters[6:]}"

    def has_file(self, path: str) -> bool:
        return bool(path) and exists(path)


def socket_address(url: str) -> str:
    """Return the address of a unix socket on the machine whose root is in use.

    Below a changed root that is the socket itself, which stays open from here on: a path could lead elsewhere by the
    time when it is used. One that is not there gets an address at which nothing can ever listen.
    """
    if changed_root() is None or not url:
        return url
    path = url.removeprefix("unix://")
    try:
        return f"unix:///proc/self/fd/{open_path(path, os.O_PATH)}"
    except (FileNotFoundError, NotADirectoryError):
        return f"unix://{at(path)}/"
    except OSError as error:
        raise GarboardError(f"cannot find {url}: {error.strerror}", hint="check --cri-socket") from error


def _random_letters() -> Iterator[str]:
    """Yield random letters for tokens, evenly distributed: bytes above the last multiple of their count are dropped."""
    fair = 256 - 256 % len(_TOKEN_LETTERS)
    while True:
        yield from (_TOKEN_LETTERS[byte % len(_TOKEN_LETTERS)] for byte in os.urandom(32) if byte < fair)


def _default_interfaces_v4() -> list[str]:
    fields = [line.split() for line in _lines(_ROUTES_V4)]
    return [each[0] for each in fields if each[1:2] == ["00000000"]]


def _default_interfaces_v6() -> list[str]:
    fields = [line.split() for line in _lines(_ROUTES_V6)]
    unspecified = "0" * 32
    return [each[9] for each in fields if len(each) >= 10 and each[0] == unspecified and each[4] != unspecified]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _global_address(addresses: list[tuple[str, Address]], interface: str, family: int) -> str | None:
    for name, address in addresses:
        is_global = not (address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified)
        if name == interface and address.version == family and is_global:
            return str(address)
    return None


def _interface_addresses() -> Iterator[tuple[str, Address]]:
    return ((name, found.ip) for name, found in interface_networks())


def interface_networks() -> Iterator[tuple[str, Interface]]:
    """Yield the addresses of this machine with the networks that they are in, each by the name of its interface."""
    names = dict(socket.if_nameindex())
    for payload in _address_messages():
        index = struct.unpack_from("=I", payload, 4)[0]
        attributes = dict(_attributes(payload[8:]))
        packed = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
        if packed is not None and index in names:
            yield names[index], ip_interface((packed, payload[1]))


def _address_messages() -> Iterator[bytes]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as netlink:
        netlink.settimeout(5)
        netlink.send(struct.pack("=IHHIIBxxx", 20, _RTM_GETADDR, _NLM_F_REQUEST_DUMP, 1, 0, socket.AF_UNSPEC))
        while True:
            data = netlink.recv(65536)
            while len(data) >= 16:
                length, kind = struct.unpack_from("=IH", data)
                if kind == _NLMSG_DONE or length < 16:
                    return
                if kind == _RTM_NEWADDR:
                    yield data[16:length]
                data = data[(length + 3) & ~3 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind, data[4:length]
        data = data[(length + 3) & ~3 :]


def _is_listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        try:
            client.connect(path)
        except (OSError, ValueError):
            return False
    return True
