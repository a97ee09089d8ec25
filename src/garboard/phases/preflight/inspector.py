"""The machine as checks see it; a method that cannot find out raises a GarboardError whose message says why."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from garboard.model.component import ExternalEtcd
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class ObservedRuntime:
    """The container runtime: why it is not ready, if it is not, and whether it reports its cgroup driver."""

    problem: str = ""
    has_runtime_config: bool = True


class MachineInspector(Protocol):
    def user_id(self) -> int: ...

    def cpu_count(self) -> int: ...

    def memory_mib(self) -> int: ...

    def can_listen(self, address: str, port: int) -> bool:
        """Say whether a port is free at an address, or everywhere if it is empty."""
        ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def entries(self, path: str) -> Sequence[str] | None:
        """Return the names in a folder, or None where there is no folder."""
        ...

    def has_program(self, name: str) -> bool: ...

    def environment(self) -> Mapping[str, str]: ...

    def kernel_release(self) -> str: ...

    def kernel_config(self) -> Mapping[str, str]:
        """Return the kernel's settings by name, `y`, `m` or another value."""
        ...

    def kubelet_version(self) -> str: ...

    def resolve(self, host: str) -> Sequence[str]: ...

    def runtime(self, socket: str) -> ObservedRuntime: ...

    def has_image(self, socket: str, image: str) -> bool: ...

    def has_service_manager(self) -> bool: ...

    def has_service(self, service: str) -> bool: ...

    def is_enabled(self, service: str) -> bool: ...

    def is_active(self, service: str) -> bool: ...

    def etcd_version(self, etcd: ExternalEtcd, endpoint: str) -> str:
        """Ask a member of an external etcd for its version."""
        ...
