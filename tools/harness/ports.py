"""Free ports of loopback for programs that are told where to listen: no two test processes get the same one."""

import contextlib
import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice

# Below the ports that the kernel picks itself, from 32768 upwards, for listeners on port 0 and outgoing connections.
_FIRST, _END, _BLOCK = 20000, 32000, 600


def free_ports(count: int) -> list[int]:
    """Ports that no process listens on; a port is handed out again only after all the others of this process."""
    _, ports = _block()
    found: list[int] = []
    for port in islice(ports, _BLOCK):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


@cache
def _block() -> tuple[socket.socket, Iterator[int]]:
    """The ports of this process: a program may take its time before it listens, and until then they look free.

    The process that holds the first port of a block owns the whole block for as long as it lives.
    """
    for first in range(_FIRST, _END, _BLOCK):
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", first))
        except OSError:
            holder.close()
        else:
            return holder, cycle(range(first + 1, first + _BLOCK))
    raise AssertionError("every block of ports is held by another process")
