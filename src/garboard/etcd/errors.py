"""What etcd says no to, what we refuse for its sake, and an etcd that says nothing."""

import socket
import ssl
from collections.abc import Sequence

from garboard.errors import ClusterUnreachable, GarboardError

# Parts of etcd's messages: its JSON form has no finer codes, and these texts have been the same for years.
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
    """A change of members that would do harm; nothing has been changed."""

    default_class = "membership"


# The first that fits is taken: error type, what happened.
_CASES: tuple[tuple[type[OSError], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
    (ssl.SSLError, "it ended the TLS handshake"),
    (socket.gaierror, "its name does not resolve"),
    (ConnectionRefusedError, "connection refused"),
    (TimeoutError, "no answer in time"),
    (ConnectionError, "the connection broke"),
)


def why(error: Exception) -> str:
    """Say in a few words why an endpoint gave no answer."""
    for kind, text in _CASES:
        if isinstance(error, kind):
            return f"{text} ({error.verify_message})" if isinstance(error, ssl.SSLCertVerificationError) else text
    return str(error) or type(error).__name__


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
