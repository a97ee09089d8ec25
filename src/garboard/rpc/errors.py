"""Failures of remote calls that a user can see."""

from garboard.errors import ClusterUnreachable, GarboardError
from garboard.rpc.status import Status, StatusCode


class RpcFailed(GarboardError):
    """The peer was reached and the call did not succeed; `status` says how."""

    default_class = "rpc-failed"

    def __init__(self, method: str, status: Status, *, hint: str | None = None) -> None:
        detail = f": {status.message}" if status.message else ""
        super().__init__(f"{method} failed with {status.code.name}{detail}", hint=hint)
        self.method = method
        self.status = status

    @property
    def code(self) -> StatusCode:
        return self.status.code


class PeerUnreachable(ClusterUnreachable):
    """No connection, or one that broke; `error_class` tells refused, timed-out, socket-missing and the others apart."""


class SendQueueFull(Exception):
    """More was sent than the peer takes; wait until the call has room. A mistake of the caller, never of a user."""
