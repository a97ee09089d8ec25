"""The ways from this machine to the API servers of a cluster that it does not belong to yet."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from garboard.host.node_machine import NodeMachine

if TYPE_CHECKING:
    from garboard.kube import KubeClient


class NodeDoors:
    """What discovery goes through; `tell` is told why it takes long."""

    def __init__(self, machine: NodeMachine, tell: Callable[[str], None]) -> None:
        self.machine = machine
        self.tell = tell

    def unproven(self, server: str) -> "KubeClient":
        from garboard.kube import KubeClient, anonymous_access

        return KubeClient(anonymous_access(server, b"", is_unverified=True))

    def proven(self, server: str, ca: bytes) -> "KubeClient":
        from garboard.kube import KubeClient, anonymous_access

        return KubeClient(anonymous_access(server, ca))

    def entered(self, kubeconfig: bytes, source: str) -> "KubeClient":
        from garboard.kube import KubeClient, read_access

        return KubeClient(read_access(kubeconfig, source, self.machine.read))

    def fetch(self, url: str) -> bytes:
        from garboard.host.web import fetch

        return fetch(url)

    def read(self, path: str) -> bytes | None:
        return self.machine.read(path)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
