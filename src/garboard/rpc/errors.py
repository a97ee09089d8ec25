"""Failures of remote calls that a user can see, and errors of the operating system and of TLS turned into them."""

import errno
import socket
import ssl

from garboard.errors import ClusterUnreachable, GarboardError
from garboard.net.connect import ProxyFailed
from garboard.rpc.status import Status, StatusCode
from garboard.rpc.targets import Target, UnixTarget


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


class NotHttp2(OSError):
    """The TLS peer did not agree to speak h2."""


# Error type: stable class, what happened, hint. The first that fits is taken.
_TCP_CASES: tuple[tuple[type[OSError], str, str, str], ...] = (
    (ProxyFailed, "proxy", "cannot be reached", "check HTTPS_PROXY and NO_PROXY"),
    (NotHttp2, "not-http2", "did not agree to speak HTTP/2", "check that the port is a gRPC server's"),
    (ssl.SSLCertVerificationError, "untrusted", "has a certificate that is not trusted", "check the CA file and name"),
    (ssl.SSLError, "tls-failed", "ended the TLS handshake", "check certificates on both sides"),
    (socket.gaierror, "unknown-host", "has a name that does not resolve", "check the name and the DNS servers"),
    (ConnectionRefusedError, "refused", "refused the connection", "check that the server runs and the port is right"),
    (TimeoutError, "timed-out", "did not answer in time", "check the address and firewalls on the way"),
    (ConnectionError, "connection-lost", "broke the connection", "look at the log of the peer"),
)
_UNIX_CASES: tuple[tuple[type[OSError], str, str, str], ...] = (
    (FileNotFoundError, "socket-missing", "does not exist", "start the service that makes the socket, or name another"),
    (ConnectionRefusedError, "refused", "has nobody listening", "start the service; the socket is left from before"),
    (PermissionError, "permission-denied", "may not be opened by this user", "run as root"),
    (TimeoutError, "timed-out", "did not answer in time", "the service hangs or is overloaded: look at its log"),
    (ConnectionError, "connection-lost", "broke the connection", "look at the log of the service"),
)


def _detail(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f" ({error.verify_message})"
    return f": {error}" if isinstance(error, ProxyFailed) else ""


def unreachable(target: Target, error: OSError) -> PeerUnreachable:
    """The same failure as an error that its reader can act on."""
    cases = _UNIX_CASES if isinstance(target, UnixTarget) else _TCP_CASES
    for kind, error_class, text, hint in cases:
        if isinstance(error, kind):
            detail = _detail(error)
            return PeerUnreachable(f"{target} {text}{detail}", hint=hint, error_class=error_class)
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return PeerUnreachable(f"{target} cannot be reached: {error.strerror or error} ({name})", hint="check the address")
