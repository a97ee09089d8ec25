"""This machine and its container runtime, for the checks before a run."""

from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

from garboard.errors import GarboardError
from garboard.host.examination import Examination
from garboard.host.service_manager import ServiceManager
from garboard.host.web import probe_as
from garboard.model.component import ExternalEtcd
from garboard.phases.preflight import RuntimeSeen

if TYPE_CHECKING:
    from garboard.cri import CriClient

_RUNTIME_TIMEOUT_S = 10.0


class NodeExam(Examination):
    """The machine for `phases.preflight`; the runtime is asked once for all checks."""

    def __init__(self, manager: ServiceManager | None) -> None:
        super().__init__(manager)
        self._runtime = cache(_look_at_runtime)
        self._images = cache(_images)

    def runtime(self, socket: str) -> RuntimeSeen:
        return self._runtime(socket)

    def has_image(self, socket: str, image: str) -> bool:
        return image in self._images(socket)

    def etcd_version(self, etcd: ExternalEtcd, endpoint: str) -> str:
        import json

        url = f"{endpoint.rstrip('/')}/version"
        answer = probe_as(url, ca_file=etcd.ca_file, cert_file=etcd.cert_file, key_file=etcd.key_file)
        try:
            found = json.loads(answer.text)["etcdserver"]
        except (ValueError, KeyError, TypeError):
            raise GarboardError(f"{url} answers {answer.status} and no version") from None
        return str(found)


def _connected(socket: str) -> "closing[CriClient]":
    from garboard.cri import CriClient

    return closing(CriClient(socket, timeout_s=_RUNTIME_TIMEOUT_S))


def _look_at_runtime(socket: str) -> RuntimeSeen:
    with _connected(socket) as runtime:
        ready = runtime.status().condition("RuntimeReady")
        reason = (ready.message or ready.reason) if ready else ""
        problem = "" if ready and ready.status else reason or "it does not say why"
        return RuntimeSeen(problem, runtime.cgroup_driver() is not None)


def _images(socket: str) -> frozenset[str]:
    with _connected(socket) as runtime:
        return frozenset(name for image in runtime.list_images() for name in (*image.repo_tags, *image.repo_digests))
