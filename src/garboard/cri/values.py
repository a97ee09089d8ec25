"""What the container runtime tells us, as plain values. Times are nanoseconds since 1970, 0 for "not yet"."""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from types import MappingProxyType

from garboard.values import dataclass

# What the kubelet says of a container to the runtime.
CONTAINER_LABEL, POD_LABEL = "io.kubernetes.container.name", "io.kubernetes.pod.name"
NAMESPACE_LABEL = "io.kubernetes.pod.namespace"
# Where the kubelet has a pod from: a static one from a file, all others from the API server.
_SOURCE, _FROM_FILE = "kubernetes.io/config.source", "file"
NO_LABELS: Mapping[str, str] = MappingProxyType({})


class SandboxState(IntEnum):
    READY = 0
    NOT_READY = 1


class ContainerState(IntEnum):
    CREATED = 0
    RUNNING = 1
    EXITED = 2
    UNKNOWN = 3


class CgroupDriver(IntEnum):
    SYSTEMD = 0
    CGROUPFS = 1


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    version: str = ""
    runtime_name: str = ""
    runtime_version: str = ""
    runtime_api_version: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeCondition:
    """`RuntimeReady`, `NetworkReady` and what else the runtime reports."""

    type: str = ""
    status: bool = False
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeConditions:
    conditions: tuple[RuntimeCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """`info` is filled when asked for: JSON texts by name."""

    status: RuntimeConditions | None = None
    info: Mapping[str, str] = field(default_factory=dict)

    @property
    def conditions(self) -> tuple[RuntimeCondition, ...]:
        return self.status.conditions if self.status else ()

    def condition(self, kind: str) -> RuntimeCondition | None:
        return next((each for each in self.conditions if each.type == kind), None)


@dataclass(frozen=True, slots=True)
class SandboxMetadata:
    name: str = ""
    uid: str = ""
    namespace: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A pod sandbox; `state` is a `SandboxState`, or a number we do not know."""

    id: str = ""
    metadata: SandboxMetadata | None = None
    state: int = 0
    created_at_ns: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    runtime_handler: str = ""

    @property
    def is_ready(self) -> bool:
        return self.state == SandboxState.READY

    @property
    def is_static(self) -> bool:
        """Say whether the pod is a static one of this node."""
        return self.annotations.get(_SOURCE) == _FROM_FILE


@dataclass(frozen=True, slots=True)
class ContainerMetadata:
    name: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class ImageSpec:
    image: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Container:
    """A container in a list; `state` is a `ContainerState`, or a number we do not know."""

    id: str = ""
    sandbox_id: str = ""
    metadata: ContainerMetadata | None = None
    image: ImageSpec | None = None
    image_ref: str = ""
    state: int = 0
    created_at_ns: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """All about one container; `log_path` is a file of this machine."""

    id: str = ""
    metadata: ContainerMetadata | None = None
    state: int = 0
    created_at_ns: int = 0
    started_at_ns: int = 0
    finished_at_ns: int = 0
    exit_code: int = 0
    image: ImageSpec | None = None
    image_ref: str = ""
    reason: str = ""
    message: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    log_path: str = ""
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    id: str = ""
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()
    size: int = 0
    username: str = ""
    spec: ImageSpec | None = None
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class RegistryAuth:
    """How to log in at a registry; never shown."""

    username: str = ""
    password: str = field(default="", repr=False)
    auth: str = field(default="", repr=False)
    server_address: str = ""
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)
