"""Dialling an endpoint, with failures in the words of Go's dialer, which servers and operators look for."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final, TypeVar

DIAL_TIMEOUT_S: Final = 5.0

ProtocolT = TypeVar("ProtocolT", bound=asyncio.BaseProtocol)

_GO_TEXTS: Final = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.ENETUNREACH: "connect: network is unreachable",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ECONNRESET: "connect: connection reset by peer",
    errno.EMFILE: "socket: too many open files",
    errno.ENFILE: "socket: too many open files in system",
}


_KINDS: Final = {
    errno.ECONNREFUSED: "refused",
    errno.ENETUNREACH: "no_route",
    errno.EHOSTUNREACH: "no_route",
}


class DialFailed(Exception):
    """Why an endpoint was not reached: in words, and as one word of a few."""

    def __init__(self, text: str, kind: str = "failed") -> None:
        super().__init__(text)
        self.kind = kind


def split_address(address: str) -> tuple[str, int]:
    """`host:port`, IPv6 in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise DialFailed(f"dial tcp: address {address}: missing or invalid port in address")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise DialFailed(f"dial tcp: address {address}: too many colons in address")
    return host or "localhost", int(port)


async def dial(address: str, make: Callable[[], ProtocolT], timeout_s: float = DIAL_TIMEOUT_S) -> ProtocolT:
    """Connect to the first address that takes us. Raises `DialFailed`."""
    host, port = split_address(address)
    try:
        async with asyncio.timeout(timeout_s):
            return await _dial_each(host, port, make)
    except TimeoutError:
        raise DialFailed(f"dial tcp {address}: i/o timeout", "timed_out") from None
    except socket.gaierror:
        raise DialFailed(f"dial tcp: lookup {host}: no such host", "no_such_host") from None
    except UnicodeError:
        raise DialFailed(f"dial tcp: lookup {host}: no such host", "no_such_host") from None
    except OSError as error:
        text = _GO_TEXTS.get(error.errno or 0) or f"connect: {os.strerror(error.errno) if error.errno else error}"
        raise DialFailed(f"dial tcp {address}: {text}", _KINDS.get(error.errno or 0, "failed")) from None


async def _dial_each(host: str, port: int, make: Callable[[], ProtocolT]) -> ProtocolT:
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for place in await _resolve(host, port):
        try:
            _, protocol = await loop.create_connection(make, place, port)
        except OSError as error:
            failure = failure or error
        else:
            return protocol
    raise failure or OSError(errno.EHOSTUNREACH, "no address")


async def _resolve(host: str, port: int) -> list[str]:
    """The addresses of a host; asking for those of an address would cost a thread's attention for nothing."""
    try:
        return [str(ip_address(host))]
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(place[0]) for _, _, _, _, place in found]
