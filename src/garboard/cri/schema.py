"""Field numbers of `runtime.v1` (module k8s.io/cri-api), as far as we use it: requests, answers, and their tables."""

from collections.abc import Mapping
from dataclasses import field

from garboard.cri import values
from garboard.rpc.message import (
    boolean,
    enumeration,
    message,
    nested,
    repeated,
    signed,
    string,
    string_map,
    unsigned,
)
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Empty:
    """A request or an answer that says nothing."""


@dataclass(frozen=True, slots=True)
class VersionRequest:
    version: str = ""


@dataclass(frozen=True, slots=True)
class StatusRequest:
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class LinuxRuntimeConfiguration:
    cgroup_driver: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeConfigResponse:
    linux: LinuxRuntimeConfiguration | None = None


@dataclass(frozen=True, slots=True)
class StateValue:
    state: int = 0


@dataclass(frozen=True, slots=True)
class SandboxFilter:
    id: str = ""
    state: StateValue | None = None
    label_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListPodSandboxRequest:
    filter: SandboxFilter | None = None


@dataclass(frozen=True, slots=True)
class ListPodSandboxResponse:
    items: tuple[values.Sandbox, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """StopPodSandbox and RemovePodSandbox."""

    pod_sandbox_id: str = ""


@dataclass(frozen=True, slots=True)
class ContainerFilter:
    id: str = ""
    state: StateValue | None = None
    pod_sandbox_id: str = ""
    label_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListContainersRequest:
    filter: ContainerFilter | None = None


@dataclass(frozen=True, slots=True)
class ListContainersResponse:
    containers: tuple[values.Container, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerStatusRequest:
    container_id: str = ""
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class ContainerStatusResponse:
    status: values.ContainerStatus | None = None
    info: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopContainerRequest:
    container_id: str = ""
    timeout: int = 0


@dataclass(frozen=True, slots=True)
class ImageStatusRequest:
    image: values.ImageSpec | None = None
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class ImageStatusResponse:
    image: values.Image | None = None


@dataclass(frozen=True, slots=True)
class ImageFilter:
    image: values.ImageSpec | None = None


@dataclass(frozen=True, slots=True)
class ListImagesRequest:
    filter: ImageFilter | None = None


@dataclass(frozen=True, slots=True)
class ListImagesResponse:
    images: tuple[values.Image, ...] = ()


@dataclass(frozen=True, slots=True)
class PullImageRequest:
    image: values.ImageSpec | None = None
    auth: values.RegistryAuth | None = None


@dataclass(frozen=True, slots=True)
class PullImageResponse:
    image_ref: str = ""


EMPTY = message(Empty)
VERSION_REQUEST = message(VersionRequest, version=string(1))
VERSION_RESPONSE = message(
    values.RuntimeVersion,
    version=string(1),
    runtime_name=string(2),
    runtime_version=string(3),
    runtime_api_version=string(4),
)
STATUS_REQUEST = message(StatusRequest, verbose=boolean(1))
RUNTIME_CONDITION = message(
    values.RuntimeCondition, type=string(1), status=boolean(2), reason=string(3), message=string(4)
)
RUNTIME_STATUS = message(values.RuntimeConditions, conditions=repeated(nested(1, RUNTIME_CONDITION)))
STATUS_RESPONSE = message(values.RuntimeStatus, status=nested(1, RUNTIME_STATUS), info=string_map(2))
LINUX_RUNTIME_CONFIGURATION = message(LinuxRuntimeConfiguration, cgroup_driver=enumeration(1))
RUNTIME_CONFIG_RESPONSE = message(RuntimeConfigResponse, linux=nested(1, LINUX_RUNTIME_CONFIGURATION))

STATE_VALUE = message(StateValue, state=enumeration(1))
SANDBOX_FILTER = message(SandboxFilter, id=string(1), state=nested(2, STATE_VALUE), label_selector=string_map(3))
LIST_POD_SANDBOX_REQUEST = message(ListPodSandboxRequest, filter=nested(1, SANDBOX_FILTER))
SANDBOX_METADATA = message(
    values.SandboxMetadata, name=string(1), uid=string(2), namespace=string(3), attempt=unsigned(4, bits=32)
)
SANDBOX = message(
    values.Sandbox,
    id=string(1),
    metadata=nested(2, SANDBOX_METADATA),
    state=enumeration(3),
    created_at_ns=signed(4),
    labels=string_map(5),
    annotations=string_map(6),
    runtime_handler=string(7),
)
LIST_POD_SANDBOX_RESPONSE = message(ListPodSandboxResponse, items=repeated(nested(1, SANDBOX)))
SANDBOX_REQUEST = message(SandboxRequest, pod_sandbox_id=string(1))

CONTAINER_FILTER = message(
    ContainerFilter,
    id=string(1),
    state=nested(2, STATE_VALUE),
    pod_sandbox_id=string(3),
    label_selector=string_map(4),
)
LIST_CONTAINERS_REQUEST = message(ListContainersRequest, filter=nested(1, CONTAINER_FILTER))
CONTAINER_METADATA = message(values.ContainerMetadata, name=string(1), attempt=unsigned(2, bits=32))
IMAGE_SPEC = message(values.ImageSpec, image=string(1), annotations=string_map(2))
CONTAINER = message(
    values.Container,
    id=string(1),
    sandbox_id=string(2),
    metadata=nested(3, CONTAINER_METADATA),
    image=nested(4, IMAGE_SPEC),
    image_ref=string(5),
    state=enumeration(6),
    created_at_ns=signed(7),
    labels=string_map(8),
    annotations=string_map(9),
    image_id=string(10),
)
LIST_CONTAINERS_RESPONSE = message(ListContainersResponse, containers=repeated(nested(1, CONTAINER)))
CONTAINER_STATUS_REQUEST = message(ContainerStatusRequest, container_id=string(1), verbose=boolean(2))
CONTAINER_STATUS = message(
    values.ContainerStatus,
    id=string(1),
    metadata=nested(2, CONTAINER_METADATA),
    state=enumeration(3),
    created_at_ns=signed(4),
    started_at_ns=signed(5),
    finished_at_ns=signed(6),
    exit_code=signed(7, bits=32),
    image=nested(8, IMAGE_SPEC),
    image_ref=string(9),
    reason=string(10),
    message=string(11),
    labels=string_map(12),
    annotations=string_map(13),
    log_path=string(15),
    image_id=string(17),
)
CONTAINER_STATUS_RESPONSE = message(ContainerStatusResponse, status=nested(1, CONTAINER_STATUS), info=string_map(2))
STOP_CONTAINER_REQUEST = message(StopContainerRequest, container_id=string(1), timeout=signed(2))

IMAGE = message(
    values.Image,
    id=string(1),
    repo_tags=repeated(string(2)),
    repo_digests=repeated(string(3)),
    size=unsigned(4),
    username=string(6),
    spec=nested(7, IMAGE_SPEC),
    is_pinned=boolean(8),
)
IMAGE_STATUS_REQUEST = message(ImageStatusRequest, image=nested(1, IMAGE_SPEC), verbose=boolean(2))
IMAGE_STATUS_RESPONSE = message(ImageStatusResponse, image=nested(1, IMAGE))
IMAGE_FILTER = message(ImageFilter, image=nested(1, IMAGE_SPEC))
LIST_IMAGES_REQUEST = message(ListImagesRequest, filter=nested(1, IMAGE_FILTER))
LIST_IMAGES_RESPONSE = message(ListImagesResponse, images=repeated(nested(1, IMAGE)))
REGISTRY_AUTH = message(
    values.RegistryAuth,
    username=string(1),
    password=string(2),
    auth=string(3),
    server_address=string(4),
    identity_token=string(5),
    registry_token=string(6),
)
PULL_IMAGE_REQUEST = message(PullImageRequest, image=nested(1, IMAGE_SPEC), auth=nested(2, REGISTRY_AUTH))
PULL_IMAGE_RESPONSE = message(PullImageResponse, image_ref=string(1))
