"""What etcd refuses, changes of members that we refuse, and an etcd that does not answer."""

import ssl
from collections.abc import Sequence

from garboard.errors import ClusterUnreachable, GarboardError
from garboard.net.connect import ProxyFailed
from garboard.rpc import PeerUnreachable, RpcFailed, StatusCode

# Parts of etcd's messages: its codes are not as fine, and these texts have been the same for years.
NOT_IN_SYNC = "in sync with leader"
FROM_A_LEARNER = "not supported for learner"
IS_NO_LEARNER = "can only promote a learner"
_HINTS = (
    (NOT_IN_SYNC, "it is still catching up: wait, and look at the disks of both machines"),
    ("not enough started members", "start the members that are down, or remove one of those for good, then try again"),
    ("unhealthy cluster", "wait until every member answers; `etcdctl endpoint status --cluster` shows them"),
    ("too many learner members", "another node is joining: wait for it, or remove its learner if it is never to come"),
    ("no leader", "start enough members for a majority"),
)


class EtcdRefused(GarboardError):
    """etcd answered, with a failure; the message is its own."""

    default_class = "etcd-refused"

    def __init__(self, what: str, said: str) -> None:
        hint = next((hint for part, hint in _HINTS if part in said), "look at the log of etcd")
        super().__init__(f"etcd cannot {what}: {said}", hint=hint)
        self.said = said


class EtcdUnreachable(ClusterUnreachable):
    """No endpoint of etcd gave an answer."""

    default_class = "etcd-unreachable"


class MembershipRefused(GarboardError):
    """A harmful change of members, such as one that loses quorum, was refused; nothing has been changed."""

    default_class = "membership"


class DatabaseUnreadable(GarboardError):
    """The database of a member cannot be read: it is damaged, or not what etcd writes."""

    default_class = "etcd-data"


# What happened, by the class of the error of our rpc.
_CASES = {
    "untrusted": "its certificate is not trusted",
    "tls-failed": "it ended the TLS handshake",
    "unknown-host": "its name does not resolve",
    "refused": "connection refused",
    "timed-out": "no answer in time",
    "connection-lost": "the connection broke",
    "not-http2": "it does not speak HTTP/2",
}


def why(error: PeerUnreachable | RpcFailed) -> str:
    """Say in a few words why an endpoint gave no answer, or what it answered."""
    if isinstance(error, RpcFailed):
        is_silent = error.code is StatusCode.DEADLINE_EXCEEDED and isinstance(error.__cause__, TimeoutError)
        return "no answer in time" if is_silent else error.status.message or error.code.name
    text = _CASES.get(error.error_class, error.message)
    cause = error.__cause__
    if isinstance(cause, ProxyFailed):
        return str(cause)
    return f"{text} ({cause.verify_message})" if isinstance(cause, ssl.SSLCertVerificationError) else text


def unreachable(what: str, failures: Sequence[tuple[str, str]]) -> EtcdUnreachable:
    """Return the error for endpoints none of which answered, with the reason of each."""
    reasons = "; ".join(f"{endpoint}: {reason}" for endpoint, reason in failures) or "no endpoint is known"
    is_distrusted = any("trusted" in reason or "handshake" in reason for _, reason in failures)
    hint = (
        "check that etcd/ca.crt and etcd/healthcheck-client.crt are of this cluster (--cert-dir)"
        if is_distrusted
        else "check that etcd runs on those machines (`crictl ps --name etcd`) and that its port is open"
    )
    return EtcdUnreachable(f"cannot {what}: {reasons}", hint=hint)
