"""A machine in memory, and init's context on it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from garboard.config import FixedFacts, Loaded, ReadOptions
from garboard.config.load import ConfigFile
from garboard.manifests import NodeHost
from garboard.model.go import clean_path
from garboard.model.lifecycle import InitConfiguration
from garboard.phases.init import InitContext, InitOptions, observe_init
from garboard.phases.node.context import ClusterView
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import MachineInspector

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
# ECDSA because a key costs microseconds; parity tests compare every algorithm.
CONFIG = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
"""


@dataclass
class MemoryMachine:
    """Files by path; `services` is None where there is no service manager, else those that run."""

    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    services: set[str] | None = None
    owners: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    mounts: set[str] = field(default_factory=set)

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def has_folder(self, path: str) -> bool:
        return path in self.folders

    def has_files(self, path: str) -> bool:
        return any(each.startswith(f"{path}/") for each in self.files)

    def resolve(self, path: str) -> str:
        cleaned = clean_path(path)
        for link, target in self.links.items():
            if f"{cleaned}/".startswith(f"{link}/"):
                return self.resolve(f"{target}{cleaned[len(link) :]}")
        return cleaned

    def mount_point(self, path: str) -> str:
        return max((each for each in self.mounts if f"{path}/".startswith(f"{each}/")), key=len, default="/")

    def owner(self, path: str) -> tuple[int, int, int] | None:
        return self.owners.get(path)

    def change_owner(self, path: str, *, uid: int, gid: int, mode: int | None) -> None:
        self.owners[path] = (uid, gid, mode or 0)

    def folder(self, path: str) -> "MemoryFolderAt":
        return MemoryFolderAt(self, path)

    def has_service_manager(self) -> bool:
        return self.services is not None

    def is_active(self, service: str) -> bool:
        return self.services is not None and service in self.services

    def new_file(self, path: str, *, mode: int, folder_mode: int) -> AbstractContextManager[Callable[[bytes], object]]:
        raise AssertionError(path)

    def make_folder(self, path: str, *, mode: int) -> None:
        self.folders.add(path)

    def write(self, path: str, data: bytes, *, new_mode: int, folder_mode: int, expected: str | None = None) -> None:
        self.files[path] = data
        self.modes.setdefault(path, new_mode)

    def entries(self, path: str) -> tuple[str, ...]:
        below = (each for each in (*self.files, *self.folders) if each.startswith(f"{path}/"))
        return tuple(sorted({each[len(path) + 1 :].partition("/")[0] for each in below}))

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def remove_folder(self, path: str) -> None:
        if not any(each.startswith(f"{path}/") for each in (*self.files, *self.folders)):
            self.folders.discard(path)

    def empty_folder(
        self,
        path: str,
        *,
        keeps: tuple[str, ...] = (),
        only: tuple[str, ...] = (),
        is_resolved: bool = False,
        mount: str = "",
    ) -> None:
        assert not keeps
        self.files = {name: data for name, data in self.files.items() if not name.startswith(f"{path}/")}

    def unmount(self, path: str, *, flags: tuple[str, ...] = (), keeps: tuple[str, ...] = ()) -> None:
        raise AssertionError("nothing is mounted in memory")

    def start(self, service: str) -> None:
        assert self.services is not None
        self.services.add(service)

    restart = start

    def stop(self, service: str) -> None:
        assert self.services is not None
        self.services.discard(service)


@dataclass(frozen=True)
class MemoryFolderAt:
    machine: MemoryMachine
    root: str

    def read(self, name: str) -> bytes | None:
        return self.machine.files.get(self.path_of(name))

    def write_new(self, name: str, data: bytes, *, mode: int) -> None:
        path = self.path_of(name)
        assert path not in self.machine.files, f"{path} is there"
        self.machine.files[path], self.machine.modes[path] = data, mode

    def remove(self, name: str) -> None:
        del self.machine.files[self.path_of(name)]

    def path_of(self, name: str) -> str:
        return name if name.startswith("/") else f"{self.root}/{name}"


def load(text: str = CONFIG) -> Loaded[InitConfiguration]:
    facts = FixedFacts(host="node-1")
    return ConfigFile.read(text, file="kubeadm.yaml", host=facts, options=ReadOptions(detects_cri=False)).init()


def context_on(
    machine: MemoryMachine,
    text: str = CONFIG,
    patches: NodePatches | None = None,
    *,
    options: InitOptions | None = None,
    cluster: ClusterView | None = None,
    inspector: MachineInspector | None = None,
    ignored_checks: frozenset[str] = frozenset(),
) -> InitContext:
    context, _ = observe_init(
        load(text),
        options or InitOptions(),
        host=NodeHost(hostname="node-1"),
        machine=machine,
        patches=patches or NodePatches(),
        now=NOW,
        cluster=cluster,
        inspector=inspector,
        ignored_checks=ignored_checks,
    )
    return context
