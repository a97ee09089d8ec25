"""The client of a container runtime: a dozen calls of the CRI over its unix socket, and how they fail."""

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from garboard.cri import schema, values
from garboard.errors import GarboardError, NotReady
from garboard.rpc import BlockingClient, PeerUnreachable, RpcFailed, Status, StatusCode, parse_unix_target
from garboard.rpc.message import Message
from garboard.rpc.wire import BadWire

RUNTIME: Final = "/runtime.v1.RuntimeService"
IMAGES: Final = "/runtime.v1.ImageService"

CALL_TIMEOUT_S: Final = 30.0
PULL_TIMEOUT_S: Final = 15 * 60.0

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")

_HINTS = {
    StatusCode.UNIMPLEMENTED: "enable the CRI plugin: containerd leaves it out when its disabled_plugins name cri",
    StatusCode.DEADLINE_EXCEEDED: "the runtime is reached but slow: look at its log and at the load of the machine",
}


class RuntimeUnavailable(NotReady):
    """Nothing answers at the runtime's socket; `error_class` is that of the transport (socket-missing, refused, …)."""

    def __init__(self, socket: str, cause: PeerUnreachable) -> None:
        super().__init__(
            f"the container runtime does not answer: {cause.message}",
            hint=f"start it, or name its socket in the configuration (tried {socket})",
            error_class=cause.error_class,
        )


class RuntimeCallFailed(GarboardError):
    """The runtime answered, with an error."""

    default_class = "runtime-failed"

    def __init__(self, socket: str, cause: RpcFailed) -> None:
        call = cause.method.rsplit("/", 1)[-1]
        detail = cause.status.message or "no details"
        super().__init__(
            f"{call} of the container runtime failed ({cause.code.name}): {detail}", hint=_HINTS.get(cause.code)
        )
        self.socket = socket
        self.code = cause.code


class CriClient:
    """Talks to containerd or CRI-O at `socket` (`unix:///run/containerd/containerd.sock` or a bare path)."""

    def __init__(self, socket: str, *, timeout_s: float = CALL_TIMEOUT_S) -> None:
        target = parse_unix_target(socket)
        self.socket = str(target)
        self._client = BlockingClient(target, connect_timeout_s=min(timeout_s, 10.0))
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def version(self) -> values.RuntimeVersion:
        request = schema.VersionRequest(version="v1")
        return self._call(f"{RUNTIME}/Version", schema.VERSION_REQUEST, request, schema.VERSION_RESPONSE)

    def status(self, *, verbose: bool = False) -> values.RuntimeStatus:
        request = schema.StatusRequest(verbose)
        return self._call(f"{RUNTIME}/Status", schema.STATUS_REQUEST, request, schema.STATUS_RESPONSE)

    def cgroup_driver(self) -> values.CgroupDriver | None:
        """What RuntimeConfig says; None from a runtime too old to have it (containerd before 2.0)."""
        try:
            answer = self._call(
                f"{RUNTIME}/RuntimeConfig", schema.EMPTY, schema.Empty(), schema.RUNTIME_CONFIG_RESPONSE
            )
        except RuntimeCallFailed as failed:
            if failed.code is StatusCode.UNIMPLEMENTED:
                return None
            raise
        if answer.linux is None or answer.linux.cgroup_driver not in tuple(values.CgroupDriver):
            return None
        return values.CgroupDriver(answer.linux.cgroup_driver)

    def list_sandboxes(
        self, *, state: values.SandboxState | None = None, labels: Mapping[str, str] = values.NO_LABELS
    ) -> tuple[values.Sandbox, ...]:
        chosen = schema.SandboxFilter(state=None if state is None else schema.StateValue(state), label_selector=labels)
        request = schema.ListPodSandboxRequest(chosen)
        return self._call(
            f"{RUNTIME}/ListPodSandbox", schema.LIST_POD_SANDBOX_REQUEST, request, schema.LIST_POD_SANDBOX_RESPONSE
        ).items

    def stop_sandbox(self, sandbox_id: str) -> None:
        """Stop all containers of the sandbox and free its network; doing it again is no error."""
        request = schema.SandboxRequest(sandbox_id)
        self._call(f"{RUNTIME}/StopPodSandbox", schema.SANDBOX_REQUEST, request, schema.EMPTY)

    def remove_sandbox(self, sandbox_id: str) -> None:
        """Remove the sandbox and its containers by force; one that is gone is no error."""
        request = schema.SandboxRequest(sandbox_id)
        self._call(f"{RUNTIME}/RemovePodSandbox", schema.SANDBOX_REQUEST, request, schema.EMPTY)

    def list_containers(
        self,
        *,
        sandbox_id: str = "",
        state: values.ContainerState | None = None,
        labels: Mapping[str, str] = values.NO_LABELS,
    ) -> tuple[values.Container, ...]:
        chosen = schema.ContainerFilter(
            state=None if state is None else schema.StateValue(state),
            pod_sandbox_id=sandbox_id,
            label_selector=labels,
        )
        request = schema.ListContainersRequest(chosen)
        return self._call(
            f"{RUNTIME}/ListContainers", schema.LIST_CONTAINERS_REQUEST, request, schema.LIST_CONTAINERS_RESPONSE
        ).containers

    def container_status(self, container_id: str) -> values.ContainerStatus | None:
        """All about one container; None when there is no such container."""
        request = schema.ContainerStatusRequest(container_id)
        try:
            return self._call(
                f"{RUNTIME}/ContainerStatus",
                schema.CONTAINER_STATUS_REQUEST,
                request,
                schema.CONTAINER_STATUS_RESPONSE,
            ).status
        except RuntimeCallFailed as failed:
            if failed.code is StatusCode.NOT_FOUND:
                return None
            raise

    def stop_container(self, container_id: str, *, grace_s: int = 0) -> None:
        """Stop the container; it is killed when the grace period is over."""
        request = schema.StopContainerRequest(container_id, grace_s)
        timeout_s = self._timeout_s + grace_s
        self._call(f"{RUNTIME}/StopContainer", schema.STOP_CONTAINER_REQUEST, request, schema.EMPTY, timeout_s)

    def image_status(self, image: str) -> values.Image | None:
        """The image under this name or id; None when the runtime does not have it."""
        request = schema.ImageStatusRequest(values.ImageSpec(image))
        return self._call(
            f"{IMAGES}/ImageStatus", schema.IMAGE_STATUS_REQUEST, request, schema.IMAGE_STATUS_RESPONSE
        ).image

    def list_images(self) -> tuple[values.Image, ...]:
        request = schema.ListImagesRequest()
        return self._call(
            f"{IMAGES}/ListImages", schema.LIST_IMAGES_REQUEST, request, schema.LIST_IMAGES_RESPONSE
        ).images

    def pull_image(
        self, image: str, *, auth: values.RegistryAuth | None = None, timeout_s: float = PULL_TIMEOUT_S
    ) -> str:
        """Pull an image and return the id under which the runtime has it."""
        request = schema.PullImageRequest(values.ImageSpec(image), auth)
        return self._call(
            f"{IMAGES}/PullImage", schema.PULL_IMAGE_REQUEST, request, schema.PULL_IMAGE_RESPONSE, timeout_s
        ).image_ref

    def _call(
        self,
        method: str,
        request_schema: Message[RequestT],
        request: RequestT,
        answer_schema: Message[AnswerT],
        timeout_s: float | None = None,
    ) -> AnswerT:
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            answer = self._client.unary(method, request_schema.encode(request), timeout_s=timeout_s)
        except PeerUnreachable as error:
            raise RuntimeUnavailable(self.socket, error) from error
        except RpcFailed as error:
            raise RuntimeCallFailed(self.socket, error) from error
        try:
            return answer_schema.decode(answer)
        except BadWire as error:
            failure = RpcFailed(method, Status(StatusCode.INTERNAL, f"its answer cannot be read: {error.message}"))
            raise RuntimeCallFailed(self.socket, failure) from error
