"""The sockets that belong to the supervisor: those for API servers, which workers accept from, and a hold on the port.

Unix sockets cannot be bound by several workers, and a port that each of them bound would give its queue to workers that
have no agents; so the supervisor binds both and passes them on.
"""

import contextlib
import os
import socket
import stat
from pathlib import Path

from garboard.tunnel.server.accepting import addresses_of, listening_socket
from garboard.tunnel.server.tenants import FrontendConfig
from garboard.tunnel.web import cannot_listen
from garboard.tunnel.wire.sockets import BACKLOG


class FrontSockets:
    """The sockets for API servers that listen, by the place that workers know them by."""

    def __init__(self) -> None:
        self.by_place: dict[str, list[socket.socket]] = {}

    @property
    def port(self) -> int:
        """Of the first that has one."""
        names = (each.getsockname() for sockets in self.by_place.values() for each in sockets)
        return next((int(name[1]) for name in names if isinstance(name, tuple)), 0)

    async def open(self, frontends: list[FrontendConfig]) -> list[str]:
        """Listen wherever nothing listens yet; the new places are returned. Raises `NotReady` and opens none then."""
        opened: list[str] = []
        try:
            for each in frontends:
                if each.place not in self.by_place:
                    self.by_place[each.place] = [_unix_socket(each)] if each.uds_name else await _tcp_sockets(each)
                    opened.append(each.place)
        except BaseException:
            self.close(opened)
            raise
        return opened

    def keep_only(self, frontends: list[FrontendConfig]) -> None:
        """Close and remove what is at no place of these."""
        kept = {each.place for each in frontends}
        self.close([place for place in self.by_place if place not in kept])

    def close(self, places: list[str] | None = None, *, removes: bool = True) -> None:
        for place in list(self.by_place) if places is None else places:
            for each in self.by_place.pop(place):
                if removes and each.family == socket.AF_UNIX:
                    Path(place).unlink(missing_ok=True)
                each.close()


def _unix_socket(frontend: FrontendConfig) -> socket.socket:
    path = Path(frontend.uds_name)
    if path.exists() and not frontend.delete_existing_uds_file:
        raise cannot_listen(str(path), FileExistsError(17, "File exists"))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o007)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.stat().st_mode):
                path.unlink()
        listener.bind(str(path))
        listener.setblocking(False)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise cannot_listen(str(path), error) from error
    finally:
        os.umask(mask)
    return listener


async def _tcp_sockets(frontend: FrontendConfig) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for family, address in await addresses_of(frontend.bind_address, frontend.port):
            sockets.append(listening_socket(family, address))
    except OSError as error:
        for each in sockets:
            each.close()
        raise cannot_listen(f"port {frontend.port}", error) from error
    return sockets


class PortHold:
    """The port for agents: nobody else had it when the server began, and it stays ours while workers come and go."""

    def __init__(self, port: int, sockets: list[socket.socket]) -> None:
        self.port = port
        self._sockets = sockets

    @classmethod
    async def take(cls, host: str, port: int) -> "PortHold":
        """Listen alone for a moment, since workers would share the port with any program that shares it too."""
        held: list[socket.socket] = []
        try:
            for family, (name, _, *rest) in await addresses_of(host, port):
                with listening_socket(family, (name, port, *rest)) as alone:
                    port = int(alone.getsockname()[1])
                held.append(_bound_socket(family, (name, port, *rest)))
        except OSError as error:
            for each in held:
                each.close()
            raise cannot_listen(f"port {port}", error) from error
        return cls(port, held)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def _bound_socket(family: int, address: tuple[object, ...]) -> socket.socket:
    """Bound and not listening: it gets no connections."""
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        held.bind(address)
    except BaseException:
        held.close()
        raise
    return held
