"""What this machine has and what is in use on it, for the checks before it becomes a node."""

import errno
import gzip
import os
import socket
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

from garboard.errors import ClusterUnreachable, GarboardError
from garboard.host import processes
from garboard.host.files import open_regular
from garboard.host.folders import names_in
from garboard.host.root import exists
from garboard.host.service_manager import ServiceManager

_CONFIGS = (
    "/proc/config.gz", "/boot/config-{}", "/usr/src/linux-{}/.config", "/usr/src/linux/.config",
    "/usr/lib/modules/{}/config", "/usr/lib/ostree-boot/config-{}", "/usr/lib/kernel/config-{}",
    "/usr/src/linux-headers-{}/.config", "/lib/modules/{}/build/.config",
)  # fmt: skip
_KUBELET_TIMEOUT_S = 30.0
_PIECE = 4096
_CONNECT_TIMEOUT_S = 1.0


class HostInspector:
    """The machine, looked at when asked; what takes a process to find out is found out once."""

    def __init__(self, manager: ServiceManager | None) -> None:
        self._manager = manager
        self._has_service = cache(manager.exists) if manager else _never
        self._is_enabled = cache(manager.is_enabled) if manager else _never

    def user_id(self) -> int:
        return os.getuid()

    def cpu_count(self) -> int:
        return len(os.sched_getaffinity(0))

    def memory_mib(self) -> int:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024**2

    def can_listen(self, address: str, port: int) -> bool:
        """Try to listen at an address; without one, everywhere and in both families where the machine has both.

        False means that the port is in use; what else prevents it is an error.
        """
        if address:
            return _listens(socket.AF_INET6 if ":" in address else socket.AF_INET, address, port)
        family = socket.AF_INET6 if _has_ipv6() else socket.AF_INET
        return _listens(family, "", port)

    def exists(self, path: str) -> bool:
        return exists(path, follows_last=False)

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is none; in small pieces, for a sysctl refuses to fill more."""
        try:
            with open_regular(path) as (file, _size):
                return b"".join(iter(lambda: os.read(file, _PIECE), b""))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise GarboardError(f"cannot read {path}: {error.strerror}", error_class="unreadable") from error

    def entries(self, path: str) -> list[str] | None:
        try:
            return [*names_in(path)]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise GarboardError(f"cannot list {path}: {error.strerror}", error_class="unreadable") from error

    def has_program(self, name: str) -> bool:
        return processes.find_program(name) is not None

    def environment(self) -> Mapping[str, str]:
        return os.environ

    def kernel_release(self) -> str:
        return os.uname().release

    def kernel_config(self) -> Mapping[str, str]:
        """Return the kernel's settings from the first place that has them; no module is loaded for it."""
        for place in _CONFIGS:
            path = Path(place.format(self.kernel_release()))
            if path.exists():
                data = path.read_bytes()
                text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")
                pairs = (line.partition("=") for line in text.splitlines() if line[:1] != "#")
                return {name: value for name, equals, value in pairs if equals}
        raise GarboardError(f"there is none of {', '.join(place.format(self.kernel_release()) for place in _CONFIGS)}")

    def kubelet_version(self) -> str:
        return self._kubelet_version

    @cached_property
    def _kubelet_version(self) -> str:
        answer = processes.run(["kubelet", "--version"], timeout_s=_KUBELET_TIMEOUT_S).stdout
        return answer.strip().rpartition(" ")[2]

    def resolve(self, host: str) -> list[str]:
        return resolve(host)

    def has_service_manager(self) -> bool:
        return self._manager is not None

    def has_service(self, service: str) -> bool:
        return self._has_service(service)

    def is_enabled(self, service: str) -> bool:
        return self._is_enabled(service)

    def is_active(self, service: str) -> bool:
        return self._manager is not None and self._manager.is_active(service)


def _never(_service: str) -> bool:
    return False


def resolve(host: str) -> list[str]:
    """Return the addresses of a name."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ClusterUnreachable(getattr(error, "strerror", None) or str(error), error_class="unknown-host") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def address_towards(host: str, port: int) -> str:
    """Return the address of this machine from which a host is reached; empty if it cannot be. Nothing is sent."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
    except OSError:
        return ""
    return ""


def is_listening(host: str, port: int) -> bool:
    """Say whether anybody takes connections at an address; one who is too slow to answer does."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return True


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM):
            return Path("/proc/net/if_inet6").exists()
    except OSError:
        return False


def _listens(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1 if address else 0)
            server.bind((address, port))
            server.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise GarboardError(_why_not(address, port, error)) from error
    return True


def _why_not(address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRNOTAVAIL:
        return f"nothing can listen on port {port} at {address}: this machine has no such address"
    return f"nothing can listen on port {port}{f' at {address}' if address else ''}: {error.strerror or error}"
