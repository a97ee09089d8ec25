"""A machine in memory, ready for everything unless a test says otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from garboard.errors import GarboardError
from garboard.model.component import ExternalEtcd
from garboard.phases.preflight import ObservedRuntime
from garboard.phases.preflight.checks import _SETTINGS, _SETTINGS_V1, _SETTINGS_V2

KERNEL = {f"CONFIG_{names[0]}": "y" for names in (*_SETTINGS, *_SETTINGS_V1, *_SETTINGS_V2)}
FILES = {
    "/proc/mounts": b"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "/sys/fs/cgroup/cgroup.controllers": b"cpuset cpu io memory hugetlb pids\n",
    "/proc/swaps": b"Filename Type Size Used Priority\n",
    "/proc/sys/net/ipv4/ip_forward": b"1\n",
    "/proc/sys/net/ipv6/conf/default/forwarding": b"1\n",
}


@dataclass
class MemoryInspector:
    uid: int = 0
    cpus: int = 2
    memory: int = 2000
    taken: set[tuple[str, int]] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    folders: dict[str, list[str]] = field(default_factory=dict)
    programs: set[str] = field(default_factory=lambda: {"losetup", "mount", "cp"})
    variables: dict[str, str] = field(default_factory=dict)
    release: str = "6.1.0"
    kernel: dict[str, str] | None = field(default_factory=lambda: dict(KERNEL))
    kubelet: str | None = "v1.37.1"
    names: set[str] = field(default_factory=lambda: {"node-1"})
    seen: ObservedRuntime | None = field(default_factory=ObservedRuntime)
    images: set[str] = field(default_factory=set)
    images_asked: int = 0
    manager: bool = True
    services: dict[str, str] = field(default_factory=lambda: {"kubelet": "enabled"})
    etcd: str = "3.6.8"

    def user_id(self) -> int:
        return self.uid

    def cpu_count(self) -> int:
        return self.cpus

    def memory_mib(self) -> int:
        return self.memory

    def can_listen(self, address: str, port: int) -> bool:
        # A listener on one address blocks a listener on all addresses.
        return not any(number == port and (not address or place in ("", address)) for place, number in self.taken)

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.folders

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def entries(self, path: str) -> Sequence[str] | None:
        return self.folders.get(path)

    def has_program(self, name: str) -> bool:
        return name in self.programs

    def environment(self) -> Mapping[str, str]:
        return self.variables

    def kernel_release(self) -> str:
        return self.release

    def kernel_config(self) -> Mapping[str, str]:
        if self.kernel is None:
            raise GarboardError("there is none of /proc/config.gz")
        return self.kernel

    def kubelet_version(self) -> str:
        if self.kubelet is None:
            raise GarboardError("cannot run kubelet: No such file or directory")
        return self.kubelet

    def resolve(self, host: str) -> Sequence[str]:
        if host not in self.names:
            raise GarboardError("Name or service not known")
        return ["192.0.2.10"]

    def runtime(self, socket: str) -> ObservedRuntime:
        if self.seen is None:
            raise GarboardError("the container runtime does not answer: there is no socket")
        return self.seen

    def has_image(self, socket: str, image: str) -> bool:
        self.images_asked += 1
        return image in self.images

    def has_service_manager(self) -> bool:
        return self.manager

    def has_service(self, service: str) -> bool:
        return service in self.services

    def is_enabled(self, service: str) -> bool:
        return self.services.get(service) == "enabled"

    def is_active(self, service: str) -> bool:
        return self.services.get(service) == "active"

    def etcd_version(self, etcd: ExternalEtcd, endpoint: str) -> str:
        return self.etcd
