"""Failures of the container runtime that a user can see."""

from garboard.errors import GarboardError, NotReady
from garboard.rpc import PeerUnreachable, RpcFailed, StatusCode


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


_HINTS = {
    StatusCode.UNIMPLEMENTED: "enable the CRI plugin: containerd leaves it out when its disabled_plugins name cri",
    StatusCode.DEADLINE_EXCEEDED: "the runtime is reached but slow: look at its log and at the load of the machine",
}
