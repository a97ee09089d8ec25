"""The world as those see it who wait: a machine, the API server of a node, the containers on it. It is only read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from garboard.documents import Json
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a web server said; `date` is its own idea of the time, as it writes it."""

    status: int
    text: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSeen:
    """A container of a pod, the newest attempt of its name first in every list."""

    id: str
    name: str
    pod: str
    is_running: bool
    exit_code: int = 0
    attempt: int = 0
    reason: str = ""
    message: str = ""
    log_path: str = ""


class World(Protocol):
    """Everything raises a GarboardError where it finds nobody, whose message says why."""

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is no file."""
        ...

    def tail(self, path: str, lines: int) -> Sequence[str]:
        """Return the last lines of a file that may be large; none where there is no file."""
        ...

    def get(self, url: str) -> Answer:
        """Ask a web server of this node; whom its certificate is from does not matter."""
        ...

    def ask_api_server(self, server: str, path: str) -> Answer:
        """Ask an API server as a user whom it knows; its certificate has to be the cluster's."""
        ...

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]:
        """Return the objects of a kind of the whole cluster."""
        ...

    def containers(self) -> Sequence[ContainerSeen]: ...

    def service_state(self, service: str) -> str:
        """Return what the service manager calls the state of a service, such as `active`."""
        ...

    def service_log(self, service: str, lines: int) -> Sequence[str]:
        """Return the end of what a service wrote, as far as the machine keeps that."""
        ...

    def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a name."""
        ...

    def now(self) -> datetime: ...
