"""What is read of this machine before a workflow is planned: configuration, facts, patches, and preflight inputs."""

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

from garboard.config import GivenFlags, ReadOptions
from garboard.documents import Json
from garboard.engine import Observation
from garboard.engine.pre_image import FileView, digest_of
from garboard.errors import GarboardError
from garboard.host import list_tree, read_file
from garboard.host.facts import socket_address
from garboard.host.files import HostFolder
from garboard.host.inspection import HostInspector
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import ServiceManager
from garboard.host.web import probe_as
from garboard.lazy import lazy_module
from garboard.model.component import ExternalEtcd
from garboard.model.go import clean_path
from garboard.model.lifecycle import InitConfiguration, JoinConfiguration
from garboard.node.observations import OBJECT, version_of
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import ObservedRuntime

if TYPE_CHECKING:
    from garboard import cri, patches
else:
    cri = lazy_module("garboard.cri")
    patches = lazy_module("garboard.patches")

_RUNTIME_TIMEOUT_S = 10.0
# How a plan names what it has observed.
_FILE, _MEMBERS = "file", "members of etcd"

Role: TypeAlias = Literal["control-plane", "worker"]
NodeConfig: TypeAlias = InitConfiguration | JoinConfiguration
NodeConfigT = TypeVar("NodeConfigT", InitConfiguration, JoinConfiguration)


class ObservedMachine(NodeMachine):
    """This machine while a plan is made: it remembers each file as it was first read, for the plan's preconditions."""

    def __init__(self, manager: ServiceManager | None) -> None:
        super().__init__(manager)
        self._digests: dict[str, str] = {}

    def read(self, path: str) -> bytes | None:
        return self._remembered(path, super().read(path))

    def folder(self, path: str) -> HostFolder:
        return _ObservedFolder(path, self._remembered)

    def digest(self, path: str) -> str:
        """Return the digest of a file as planning found it; empty if there was none."""
        key = clean_path(path)
        if key not in self._digests:
            self.read(path)
        return self._digests[key]

    def observed(self) -> tuple[Observation, ...]:
        """Return all files that planning has read."""
        return tuple(Observation(f"{_FILE} {path}", digest) for path, digest in sorted(self._digests.items()))

    def _remembered(self, path: str, data: bytes | None) -> bytes | None:
        self._digests.setdefault(clean_path(path), "" if data is None else digest_of(data))
        return data


class _ObservedFolder(HostFolder):
    def __init__(self, root: str, remembered: Callable[[str, bytes | None], bytes | None]) -> None:
        super().__init__(root)
        self._remembered = remembered

    def read(self, name: str) -> bytes | None:
        return self._remembered(self.path_of(name), super().read(name))


class ObjectReader(Protocol):
    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None: ...


def observed_members(members: Iterable[str]) -> Observation:
    """Return the members of etcd as a plan has found them; each is given as one line."""
    return Observation(_MEMBERS, digest_of("\n".join(sorted(members)).encode()))


def looking_again(
    machine: FileView, objects: ObjectReader, members: Callable[[], Iterable[str]] | None = None
) -> Callable[[str], str]:
    """Return what tells the digest or version that something has now which a plan has observed; none if it has gone."""

    def look(name: str) -> str:
        kind, _, what = name.partition(" ")
        if kind == _FILE:
            data = machine.read(what)
            return "" if data is None else digest_of(data)
        if kind == OBJECT:
            kind, _, place = what.partition(" ")
            namespace, _, of = place.partition("/")
            return version_of(objects.find(kind, namespace, of))
        assert name == _MEMBERS, f"{name} is nothing that planning observes"
        assert members is not None, "a plan that read the members of etcd is carried out by a run that may ask etcd"
        return observed_members(members()).digest

    return look


def node_patches(config: NodeConfig, flags: GivenFlags, *, role: Role) -> NodePatches:
    """Return the patches that a configuration names for this node, to be read when they are needed."""
    return directory_patches(config.patches_directory or "", config.node_registration.name, flags, role=role)


def directory_patches(directory: str, node_name: str, flags: GivenFlags, *, role: Role) -> NodePatches:
    """Return the patches of a directory, to be read when they are needed; without a directory there are none."""
    accepted = flags.list("accept")
    if accepted:
        patches.check_codes(accepted, patches.ACCEPT, "--accept")
    if not directory:
        return NodePatches()
    files = partial(_patch_files, directory)
    return NodePatches(files, flags.switch("strict-patches"), node_name, role, accepted)


def _patch_files(directory: str) -> "list[patches.PatchFile]":
    root = Path(directory)
    paths = list_tree(root)
    if not paths:  # as in many a directory that is only kept for later: the engine need not be loaded
        return []
    return [patches.PatchFile(path, str(root / path), partial(read_file, root / path)) for path in paths]


def read_options(flags: GivenFlags) -> ReadOptions:
    # Sockets are looked for where a phase takes one: the others do not use it.
    return ReadOptions(is_strict=flags.switch("strict-config"), detects_cri="cri-socket" in flags.values)


def with_node_name(config: NodeConfigT, flags: GivenFlags) -> NodeConfigT:
    """Return the configuration with the name that the command line gives; its capitals stay, as with kubeadm."""
    name = flags.text("node-name")
    return replace(config, node_registration=replace(config.node_registration, name=name)) if name else config


class NodeInspector(HostInspector):
    """The machine for `phases.preflight`; the runtime is asked once for all checks."""

    def __init__(self, manager: ServiceManager | None) -> None:
        super().__init__(manager)
        self._runtime = cache(_look_at_runtime)
        self._images = cache(_images)

    def runtime(self, socket: str) -> ObservedRuntime:
        return self._runtime(socket)

    def has_image(self, socket: str, image: str) -> bool:
        return image in self._images(socket)

    def etcd_version(self, etcd: ExternalEtcd, endpoint: str) -> str:
        url = f"{endpoint.rstrip('/')}/version"
        # Read as all other files that a configuration names: below --rootfs, and nothing that would have us wait.
        ca = read_file(etcd.ca_file) if etcd.ca_file else b""
        if etcd.ca_file and not ca:  # the authorities of the system would be trusted instead
            raise GarboardError(f"{etcd.ca_file} is empty")
        pair = (etcd.cert_file, etcd.key_file) if etcd.cert_file and etcd.key_file else ()
        answer = probe_as(url, ca=ca, credential=b"\n".join(map(read_file, pair)))
        try:
            found = json.loads(answer.text)["etcdserver"]
        except (ValueError, KeyError, TypeError):
            raise GarboardError(f"{url} answers {answer.status} and no version") from None
        return str(found)


def _connected(socket: str) -> "closing[cri.CriClient]":
    return closing(cri.CriClient(socket_address(socket), timeout_s=_RUNTIME_TIMEOUT_S))


def _look_at_runtime(socket: str) -> ObservedRuntime:
    with _connected(socket) as runtime:
        ready = runtime.status().condition("RuntimeReady")
        reason = (ready.message or ready.reason) if ready else ""
        problem = "" if ready and ready.status else reason or "it does not say why"
        return ObservedRuntime(problem, runtime.cgroup_driver() is not None)


def _images(socket: str) -> frozenset[str]:
    with _connected(socket) as runtime:
        return frozenset(name for image in runtime.list_images() for name in (*image.repo_tags, *image.repo_digests))
