"""This node as gates and diagnostics see it: files, services, web servers, its API server, its containers, etcd."""

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from garboard.documents import Json
from garboard.engine import Probe
from garboard.errors import GarboardError
from garboard.host.files import read_tail
from garboard.host.inspection import is_listening, resolve
from garboard.host.node_machine import NodeMachine
from garboard.host.web import probe
from garboard.lazy import lazy_module
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.phases.gates import Answer, ObservedContainer

if TYPE_CHECKING:
    from garboard import cri
    from garboard.net import tls
else:
    cri = lazy_module("garboard.cri")
    tls = lazy_module("garboard.net.tls")

_RUNTIME_TIMEOUT_S = 5.0
_SERVED_WITHIN_S = 5.0


class ClusterReader(Protocol):
    """The cluster of this node, as its own user reads it."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    def list_all(self, kind: str, *, fields: str = "") -> Sequence[dict[str, Json]]: ...

    def get_text(self, server: str, path: str) -> tuple[int, str, str]: ...


class EtcdMajority(Protocol):
    """The members of etcd."""

    def majority_probe(self, without: str = "") -> Probe: ...

    def caught_up_probe(self, peer_url: str) -> Probe: ...

    def cluster_version(self) -> str: ...


class LiveNodeView:
    """This machine, and the cluster behind it, for `phases.gates`; `membership` is there where a run may ask etcd."""

    def __init__(
        self,
        machine: NodeMachine,
        cluster: ClusterReader,
        cri_socket: str,
        endpoint: str,
        membership: "Callable[[], EtcdMajority | None]" = lambda: None,
    ) -> None:
        self.machine = machine
        self.cluster = cluster
        self.cri_socket = cri_socket
        self.endpoint = endpoint
        self._membership = membership

    def etcd_probe(self, *, without: str = "") -> Probe:
        return self._etcd().majority_probe(without)

    def member_probe(self, peer_url: str) -> Probe:
        return self._etcd().caught_up_probe(peer_url)

    def etcd_cluster_version(self) -> str:
        return self._etcd().cluster_version()

    def _etcd(self) -> EtcdMajority:
        membership = self._membership()
        assert membership is not None, "a plan that waits for etcd is carried out by a run that may ask it"
        return membership

    def read(self, path: str) -> bytes | None:
        return self.machine.read(path)

    def tail(self, path: str, lines: int) -> Sequence[str]:
        return read_tail(path, lines)

    def get(self, url: str) -> Answer:
        found = probe(url)
        return Answer(found.status, found.text, found.date)

    def served_certificate(self, host: str, port: int) -> bytes:
        return served_certificate(host, port)

    def ask_api_server(self, server: str, path: str) -> Answer:
        return Answer(*self.cluster.get_text(server, path))

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        return self.cluster.find(kind, namespace, name)

    def list_all(self, kind: str, *, fields: str = "") -> Sequence[dict[str, Json]]:
        return self.cluster.list_all(kind, fields=fields)

    def containers(self) -> Sequence[ObservedContainer]:
        with closing(cri.CriClient(self.cri_socket, timeout_s=_RUNTIME_TIMEOUT_S)) as runtime:
            own = {cri.NAMESPACE_LABEL: KUBE_SYSTEM}
            static = {each.id for each in runtime.list_sandboxes(labels=own) if each.is_static}
            found = runtime.list_containers(labels=own)
            newest = sorted(found, key=lambda each: each.created_at_ns, reverse=True)
            return [_seen(each, runtime, is_static=each.sandbox_id in static) for each in newest]

    def ready_pods(self) -> Sequence[str]:
        with closing(cri.CriClient(self.cri_socket, timeout_s=_RUNTIME_TIMEOUT_S)) as runtime:
            found = (each.metadata for each in runtime.list_sandboxes(state=cri.SandboxState.READY))
            return [f"{of.namespace}/{of.name}" for of in found if of is not None]

    def is_listening(self, host: str, port: int) -> bool:
        return is_listening(host, port)

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

    def monotonic_s(self) -> float:
        return time.monotonic()


def served_certificate(host: str, port: int) -> bytes:
    """Return the certificate that a TLS server shows, in DER, without verifying it.

    A server that wants one of the client, too, shows its own before it finds out that there is none.
    """
    context = tls.new_client_context(is_unverified=True)
    try:
        with socket.create_connection((host, port), _SERVED_WITHIN_S) as plain, context.wrap_socket(plain) as secured:
            return secured.getpeercert(binary_form=True) or b""
    except OSError as error:
        raise GarboardError(f"{host} port {port}: {error.strerror or error}") from error


def _seen(container: "cri.Container", runtime: "cri.CriClient", *, is_static: bool) -> ObservedContainer:
    status = runtime.container_status(container.id)
    return ObservedContainer(
        id=container.id,
        name=container.labels.get(cri.CONTAINER_LABEL, ""),
        pod=container.labels.get(cri.POD_LABEL, ""),
        namespace=container.labels.get(cri.NAMESPACE_LABEL, ""),
        is_running=container.state == cri.ContainerState.RUNNING,
        is_static=is_static,
        exit_code=status.exit_code if status else 0,
        attempt=container.metadata.attempt if container.metadata else 0,
        reason=status.reason if status else "",
        message=status.message if status else "",
        log_path=status.log_path if status else "",
    )
