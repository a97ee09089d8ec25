"""A node as gates see it: its files, services and containers, its API server, and etcd. It is only read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from garboard.documents import Json
from garboard.engine import Probe
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a web server said; `date` is its own idea of the time, as it writes it."""

    status: int
    text: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedContainer:
    """A container of a pod, the newest attempt of its name first in every list."""

    id: str
    name: str
    pod: str
    namespace: str = ""
    is_running: bool
    is_static: bool = False  # of a static pod
    exit_code: int = 0
    attempt: int = 0
    reason: str = ""
    message: str = ""
    log_path: str = ""


class NodeView(Protocol):
    """What can be asked of a node; a part that does not answer raises a GarboardError that says why."""

    @property
    def endpoint(self) -> str:
        """The endpoint that the API servers of the cluster share, as HOST:PORT; empty if there is none."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def tail(self, path: str, lines: int) -> Sequence[str]:
        """Return the last lines of a file that may be large; none where there is no file."""
        ...

    def get(self, url: str) -> Answer:
        """Ask a web server of this node; whom its certificate is from does not matter."""
        ...

    def served_certificate(self, host: str, port: int) -> bytes:
        """Return the certificate that a server shows in a new TLS connection, in DER; whose it is does not matter."""
        ...

    def ask_api_server(self, server: str, path: str) -> Answer:
        """Ask an API server as a user whom it knows; its certificate has to be the cluster's."""
        ...

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    def list_all(self, kind: str, *, fields: str = "") -> Sequence[dict[str, Json]]:
        """Return the objects of a kind of the whole cluster, or those that a field selector selects."""
        ...

    def containers(self) -> Sequence[ObservedContainer]:
        """Return the containers of this node in the namespace of the cluster's own pods."""
        ...

    def ready_pods(self) -> Sequence[str]:
        """Return the pods of this node that have a sandbox at work, as NAMESPACE/NAME."""
        ...

    def is_listening(self, host: str, port: int) -> bool:
        """Say whether anybody takes connections there, also one who does not answer."""
        ...

    def service_state(self, service: str) -> str:
        """Return what the service manager calls the state of a service, such as `active`."""
        ...

    def service_log(self, service: str, lines: int) -> Sequence[str]:
        """Return the end of what a service wrote, as far as the machine keeps that."""
        ...

    def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a name."""
        ...

    def etcd_probe(self, *, without: str = "") -> Probe:
        """Find etcd, and return the probe that says why it has no majority of healthy members.

        With the peer URL of a member, it says why there is no majority of all without that one.
        """
        ...

    def member_probe(self, peer_url: str) -> Probe:
        """Find etcd, and return the probe that says what a member has not caught up with since."""
        ...

    def etcd_cluster_version(self) -> str:
        """Return etcd's cluster version as the data of this node's member or any other member has it, the highest."""
        ...

    def now(self) -> datetime: ...

    def monotonic_s(self) -> float:
        """Return seconds that only grow."""
        ...
