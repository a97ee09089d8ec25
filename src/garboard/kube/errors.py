"""What the API server refuses, and a server that does not answer, as errors that their reader can act on."""

import socket
import ssl
from typing import ClassVar

from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.net.connect import ProxyFailed


class RequestRefused(GarboardError):
    """The API server answered, with a failure; the message is its own."""

    http_status = 0
    default_class = "api-failed"
    default_hint: ClassVar[str] = "look at the log of kube-apiserver"


class Forbidden(RequestRefused):
    """The user is unknown, or may not do this."""

    default_class = "forbidden"
    default_hint = "name the kubeconfig of a user who may, such as super-admin.conf, with --kubeconfig"


class Unauthenticated(Forbidden):
    """The API server does not know the user: a token that has expired, a certificate of another authority."""

    default_class = "unauthenticated"


class ObjectMissing(RequestRefused):
    """The object, its namespace or its whole kind does not exist."""

    default_class = "not-found"
    default_hint = "check that the kubeconfig leads to the right cluster"


class ObjectExists(RequestRefused):
    """An object of that name is there already."""

    default_class = "exists"
    default_hint = "delete it, or choose another name"


class ObjectConflict(RequestRefused):
    """Another client changed the object in between."""

    default_class = "conflict"
    default_hint = "run the command again"


class ObjectInvalid(RequestRefused):
    """The API server does not accept the object, or not this change of it."""

    default_class = "invalid-object"
    default_hint = "check the configuration and the patches; some fields of an existing object cannot be changed"


class VersionExpired(RequestRefused):
    """The API server does not remember that version any more: a list, or a watch, has to begin anew."""

    default_class = "expired"
    default_hint = "run the command again"


class ServerBusy(RequestRefused, ClusterUnreachable):
    """The API server cannot do this now: too many requests, an etcd without a leader, a time-out on the way.

    `is_untouched` says that nothing has been done for certain; `retry_after_s` is what the server asks for.
    """

    retry_after_s: float | None = None
    is_untouched = False


class ConnectionBroken(ClusterUnreachable):
    """No whole answer came, or none in time; `was_idle` if the connection was kept since an earlier request, and ended.

    `is_untouched` says that the request was not sent.
    """

    was_idle = False
    is_untouched = False


_BY_REASON: dict[str, type[RequestRefused]] = {
    "Unauthorized": Unauthenticated,
    "Forbidden": Forbidden,
    "NotFound": ObjectMissing,
    "AlreadyExists": ObjectExists,
    "Conflict": ObjectConflict,
    "Invalid": ObjectInvalid,
    "BadRequest": ObjectInvalid,
    "Expired": VersionExpired,
    "Gone": VersionExpired,
}
_BY_CODE = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
}


# The API server rejects a request with this before it looks at it.
_TOO_MANY_REQUESTS = 429
_BUSY = (_TOO_MANY_REQUESTS, 500, 502, 503, 504)
# What etcd says while its members elect a leader, wherever the API server puts it.
_BUSY_ETCD = (
    "etcdserver: leader changed",
    "etcdserver: no leader",
    "etcdserver: request timed out",
    "etcdserver: too many requests",
)
# A budget that an eviction would exceed is an answer, not a lack of time.
_BUDGET = "DisruptionBudget"


def refusal(what: str, code: int, status: Json, retry_after_s: float | None = None) -> RequestRefused:
    """Return the error for a failed request; `status` is the body, a Status if the API server itself wrote it."""
    fields = status if isinstance(status, dict) and status.get("kind") == "Status" else {}
    said = str(fields.get("message") or f"HTTP status {code}")
    kind = _BY_REASON.get(str(fields.get("reason") or _BY_CODE.get(code, "")), RequestRefused)
    details = fields.get("details")
    details = details if isinstance(details, dict) else {}
    if any(part in said for part in _BUSY_ETCD) or (code in _BUSY and not _has_cause(details, _BUDGET)):
        kind = ServerBusy
    error = kind(f"{what}: {said}", hint=kind.default_hint)
    error.http_status = code
    if isinstance(error, ServerBusy):
        error.is_untouched = code == _TOO_MANY_REQUESTS
        error.retry_after_s = retry_after_s or _seconds(details.get("retryAfterSeconds"))
    return error


def _has_cause(details: dict[str, Json], reason: str) -> bool:
    causes = details.get("causes")
    return isinstance(causes, list) and any(isinstance(each, dict) and each.get("reason") == reason for each in causes)


def _seconds(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


# OpenSSL's numbers for a certificate whose time has not come, or is over.
_NOT_YET_VALID, _EXPIRED = 9, 10
_CLOCKS = {
    _NOT_YET_VALID: "has a certificate that is not valid yet by this machine's clock",
    _EXPIRED: "has a certificate that has expired by this machine's clock",
}

# The first that fits is taken: error type, what happened, hint.
_CASES: tuple[tuple[type[OSError], str, str], ...] = (
    (ProxyFailed, "cannot be reached", "check HTTPS_PROXY and NO_PROXY, and proxy-url in the kubeconfig"),
    (
        ssl.SSLCertVerificationError,
        "has a certificate that is not trusted",
        "the kubeconfig is of another cluster, or names another host than the certificate",
    ),
    (ssl.SSLError, "ended the TLS handshake", "check that the port is the API server's and that its clock is right"),
    (socket.gaierror, "has a name that does not resolve", "check the server in the kubeconfig and the DNS servers"),
    (
        ConnectionRefusedError,
        "refused the connection",
        "start the control plane, or check the server in the kubeconfig",
    ),
    (TimeoutError, "did not answer in time", "check the server in the kubeconfig and firewalls on the way"),
    (ConnectionError, "broke the connection", "look at the log of kube-apiserver"),
)


def unreachable(server: str, error: Exception) -> ClusterUnreachable:
    """Return the error for a server that gave no answer."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _CLOCKS:
        return ClusterUnreachable(
            f"the API server at {server} {_CLOCKS[error.verify_code]}",
            hint="compare `date -u` here and there; if the clocks are right, renew: garboard certs renew all",
            error_class="clock-skew",
        )
    for kind, text, hint in _CASES:
        if isinstance(error, kind):
            is_untrusted = isinstance(error, ssl.SSLCertVerificationError)
            detail = f" ({error.verify_message})" if isinstance(error, ssl.SSLCertVerificationError) else ""
            detail = f": {error}" if isinstance(error, ProxyFailed) else detail
            return ClusterUnreachable(
                f"the API server at {server} {text}{detail}",
                hint=hint,
                error_class="untrusted" if is_untrusted else None,
            )
    return ClusterUnreachable(
        f"the API server at {server} gave no answer: {error}", hint="check the server in the kubeconfig"
    )


def broken(server: str, error: Exception, *, was_idle: bool = False, is_untouched: bool = False) -> ConnectionBroken:
    """Return the error for a connection that ended while a request was under way."""
    told = unreachable(server, error)
    found = ConnectionBroken(told.message, hint=told.hint)
    found.was_idle, found.is_untouched = was_idle, is_untouched
    return found
