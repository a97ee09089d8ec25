"""What the API server says no to, and a server that says nothing, as errors that their reader can act on."""

import socket
import ssl
from typing import ClassVar

from garboard.documents import Json
from garboard.errors import ClusterUnreachable, GarboardError


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
    """The API server does not know who asks: a token that ended, a certificate of somebody else's."""

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
    """Somebody else changed the object in between."""

    default_class = "conflict"
    default_hint = "run the command again"


class ObjectInvalid(RequestRefused):
    """The API server does not accept the object, or not this change of it."""

    default_class = "invalid-object"
    default_hint = "check the configuration and the patches; some fields of an existing object cannot be changed"


_BY_REASON: dict[str, type[RequestRefused]] = {
    "Unauthorized": Unauthenticated,
    "Forbidden": Forbidden,
    "NotFound": ObjectMissing,
    "AlreadyExists": ObjectExists,
    "Conflict": ObjectConflict,
    "Invalid": ObjectInvalid,
    "BadRequest": ObjectInvalid,
}
_BY_CODE = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
}


def refusal(what: str, code: int, status: Json) -> RequestRefused:
    """Return the error that an answer stands for; `status` is its body, a Status if the API server itself wrote it."""
    fields = status if isinstance(status, dict) and status.get("kind") == "Status" else {}
    reason = str(fields.get("reason") or _BY_CODE.get(code, ""))
    kind = _BY_REASON.get(reason, RequestRefused)
    error = kind(f"{what}: {fields.get('message') or f'HTTP status {code}'}", hint=kind.default_hint)
    error.http_status = code
    return error


# OpenSSL's numbers for a certificate whose time has not come, or is over.
_NOT_YET_VALID, _EXPIRED = 9, 10
_CLOCKS = {
    _NOT_YET_VALID: "has a certificate that is not valid yet by this machine's clock",
    _EXPIRED: "has a certificate that has expired by this machine's clock",
}

# The first that fits is taken: error type, what happened, hint.
_CASES: tuple[tuple[type[OSError], str, str], ...] = (
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
            return ClusterUnreachable(
                f"the API server at {server} {text}{detail}",
                hint=hint,
                error_class="untrusted" if is_untrusted else None,
            )
    return ClusterUnreachable(
        f"the API server at {server} gave no answer: {error}", hint="check the server in the kubeconfig"
    )
