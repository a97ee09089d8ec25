"""Dialling an endpoint, with failures in the words of Go's dialer, which servers and operators look for."""

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from garboard.tunnel.dialer.resolving import Resolver, TooManyLookUps

DIAL_TIMEOUT_S: Final = 5.0

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
    """Why an endpoint was not reached: a message as Go writes it, and its kind for metrics."""

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


@lru_cache(maxsize=1024)
def _host_port(address: str) -> tuple[str, int, bool]:
    """Host and port, and whether the host is an address, which needs no lookup. Raises `DialFailed`."""
    host, port = split_address(address)
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return host, port, True
    return host, port, False


async def dial(address: str, make: Callable[[], asyncio.Protocol], resolver: Resolver) -> None:
    """Connect to the first address that takes us; how long that may take is up to the caller. Raises `DialFailed`."""
    host, port, is_address = _host_port(address)
    try:
        if is_address:
            await asyncio.get_running_loop().create_connection(make, host, port)
        else:
            await _dial_each(host, port, make, resolver)
    except TimeoutError:
        raise timed_out(address) from None
    except socket.gaierror:
        raise DialFailed(f"dial tcp: lookup {host}: no such host", "no_such_host") from None
    except TooManyLookUps as error:
        raise DialFailed(f"dial tcp: lookup {host}: {error}") from None
    except OSError as error:
        text = _GO_TEXTS.get(error.errno or 0) or f"connect: {os.strerror(error.errno) if error.errno else error}"
        raise DialFailed(f"dial tcp {address}: {text}", _KINDS.get(error.errno or 0, "failed")) from None


def timed_out(address: str) -> DialFailed:
    return DialFailed(f"dial tcp {address}: i/o timeout", "timed_out")


async def _dial_each(host: str, port: int, make: Callable[[], asyncio.Protocol], resolver: Resolver) -> None:
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for address in await resolver.addresses(host):
        try:
            await loop.create_connection(make, address, port)
        except OSError as error:
            failure = failure or error
        else:
            return
    raise failure or OSError(errno.EHOSTUNREACH, "no address")


OnDialEnd = Callable[[DialFailed | None, float], None]  # how a dial ended, and how many seconds it took


class Dials:
    """The dials of one end that are under way: a task for each, and one timer for all of them."""

    def __init__(self, resolver: Resolver, timeout_s: float = DIAL_TIMEOUT_S) -> None:
        self._resolver = resolver
        self._timeout_s = timeout_s
        # When each began, the earliest first.
        self._began: dict[asyncio.Task[None], tuple[float, str, OnDialEnd]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, address: str, make: Callable[[], asyncio.Protocol], on_end: OnDialEnd) -> "asyncio.Task[None]":
        """Dial; `on_end` is called with the result, unless the dial is stopped."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._run(address, make))
        self._began[task] = time.monotonic(), address, on_end
        if self._timer is None:
            self._timer = loop.call_later(self._timeout_s, self._expire)
        return task

    def stop(self, task: "asyncio.Task[None]") -> float:
        """Give a dial up; how many seconds it has taken until now is returned."""
        began, _, _ = self._began.pop(task)
        task.cancel()
        return time.monotonic() - began

    async def _run(self, address: str, make: Callable[[], asyncio.Protocol]) -> None:
        failed: DialFailed | None = None
        try:
            await dial(address, make, self._resolver)
        except DialFailed as error:
            failed = error
        task = asyncio.current_task()
        assert task is not None
        self._end(task, failed)

    def _end(self, task: "asyncio.Task[None]", failed: DialFailed | None) -> None:
        under_way = self._began.pop(task, None)
        if under_way is not None:
            began, _, on_end = under_way
            on_end(failed, time.monotonic() - began)

    def _expire(self) -> None:
        """End the dials whose time is up, and come back when that of the next is."""
        now = time.monotonic()
        for task, (began, address, _) in list(self._began.items()):
            left_s = began + self._timeout_s - now
            if left_s > 0:
                self._timer = asyncio.get_running_loop().call_later(left_s, self._expire)
                return
            task.cancel()
            self._end(task, timed_out(address))
        self._timer = None
