"""What those see who wait on this machine: its files and services, its web servers, its API server, its containers."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from garboard.documents import Json
from garboard.engine import GateWatcher
from garboard.host.examination import resolve
from garboard.host.files import read_tail
from garboard.host.node_machine import NodeMachine
from garboard.host.web import probe
from garboard.phases.waiting import Answer, ContainerSeen, gather, look_at

if TYPE_CHECKING:
    from garboard.cri import Container, CriClient

_CONTAINER_LABEL, _POD_LABEL = "io.kubernetes.container.name", "io.kubernetes.pod.name"
_RUNTIME_TIMEOUT_S = 5.0


class ClusterReader(Protocol):
    """The cluster of this node, as its own user reads it."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]: ...

    def get_text(self, server: str, path: str) -> tuple[int, str, str]: ...


class NodeWorld:
    """This machine for `phases.waiting`."""

    def __init__(self, machine: NodeMachine, cluster: ClusterReader, cri_socket: str) -> None:
        self.machine = machine
        self.cluster = cluster
        self.cri_socket = cri_socket

    def read(self, path: str) -> bytes | None:
        return self.machine.read(path)

    def tail(self, path: str, lines: int) -> Sequence[str]:
        return read_tail(path, lines)

    def get(self, url: str) -> Answer:
        found = probe(url)
        return Answer(found.status, found.text, found.date)

    def ask_api_server(self, server: str, path: str) -> Answer:
        return Answer(*self.cluster.get_text(server, path))

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        return self.cluster.find(kind, namespace, name)

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]:
        return self.cluster.list_all(kind)

    def containers(self) -> Sequence[ContainerSeen]:
        from garboard.cri import CriClient

        with closing(CriClient(self.cri_socket, timeout_s=_RUNTIME_TIMEOUT_S)) as runtime:
            newest = sorted(runtime.list_containers(), key=lambda each: each.created_at_ns, reverse=True)
            return [_seen(each, runtime) for each in newest]

    def service_state(self, service: str) -> str:
        manager = self.machine.manager
        return manager.state(service) if manager else "unknown (there is no service manager)"

    def service_log(self, service: str, lines: int) -> Sequence[str]:
        manager = self.machine.manager
        return manager.log(service, lines) if manager else ()

    def resolve(self, host: str) -> Sequence[str]:
        return resolve(host)

    def now(self) -> datetime:
        return datetime.now(UTC)


def _seen(container: "Container", runtime: "CriClient") -> ContainerSeen:
    from garboard.cri import ContainerState

    status = runtime.container_status(container.id)
    return ContainerSeen(
        id=container.id,
        name=container.labels.get(_CONTAINER_LABEL, ""),
        pod=container.labels.get(_POD_LABEL, ""),
        is_running=container.state == ContainerState.RUNNING,
        exit_code=status.exit_code if status else 0,
        attempt=container.metadata.attempt if container.metadata else 0,
        reason=status.reason if status else "",
        message=status.message if status else "",
        log_path=status.log_path if status else "",
    )


def watcher(world: NodeWorld, *, endpoint: str = "") -> GateWatcher:
    """Return who waits on this machine; `endpoint` is the cluster's shared one, whose name evidence resolves."""

    return GateWatcher(lambda gate: look_at(gate, world), lambda gate: gather(gate, world, endpoint=endpoint))
