"""A node in memory, as gates see it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from garboard.documents import Json, write_yaml
from garboard.engine import Probe
from garboard.errors import GarboardError
from garboard.phases.gates import Answer, ObservedContainer

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@dataclass
class MemoryNodeView:
    """What is not there is refused, as on a real node."""

    files: dict[str, bytes] = field(default_factory=dict)
    web: dict[str, Answer] = field(default_factory=dict)
    api: dict[str, Answer] = field(default_factory=dict)
    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    running: list[ObservedContainer] | None = field(default_factory=list)
    state: str = "active"
    log: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    endpoint: str = ""
    etcd: str = ""

    served: dict[tuple[str, int], bytes] = field(default_factory=dict)
    spared: str = ""
    cluster_version: str = ""

    def etcd_cluster_version(self) -> str:
        return self.cluster_version

    def etcd_probe(self, *, without: str = "") -> Probe:
        return lambda: (self.spared if without else self.etcd) or None

    def member_probe(self, peer_url: str) -> Probe:
        return self.etcd_probe()

    def ready_pods(self) -> Sequence[str]:
        return [f"{each.namespace}/{each.pod}" for each in self.containers() if each.is_running]

    def is_listening(self, host: str, port: int) -> bool:
        return any(url.startswith(f"https://{host}:{port}/") for url in (*self.web, *self.api))

    def monotonic_s(self) -> float:
        return 0.0

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def tail(self, path: str, lines: int) -> Sequence[str]:
        return self.files.get(path, b"").decode().splitlines()[-lines:]

    def get(self, url: str) -> Answer:
        return self._answer(self.web, url)

    def served_certificate(self, host: str, port: int) -> bytes:
        if (host, port) not in self.served:
            raise GarboardError(f"{host} port {port}: Connection refused")
        return self.served[host, port]

    def ask_api_server(self, server: str, path: str) -> Answer:
        return self._answer(self.api, server + path)

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        return self.objects.get(f"{kind}/{name}")

    def list_all(self, kind: str, *, fields: str = "") -> Sequence[dict[str, Json]]:
        return [each for name, each in self.objects.items() if name.startswith(f"{kind}/")]

    def containers(self) -> Sequence[ObservedContainer]:
        if self.running is None:
            raise GarboardError("the container runtime does not answer")
        return self.running

    def service_state(self, service: str) -> str:
        return self.state

    def service_log(self, service: str, lines: int) -> Sequence[str]:
        return self.log[-lines:]

    def resolve(self, host: str) -> Sequence[str]:
        if host not in self.names:
            raise GarboardError("Name or service not known")
        return [self.names[host]]

    def now(self) -> datetime:
        return NOW

    def _answer(self, answers: dict[str, Answer], url: str) -> Answer:
        if url not in answers:
            raise GarboardError(f"{url}: Connection refused")
        return answers[url]


def manifest(component: str, *flags: str) -> dict[str, bytes]:
    """Return the file of a static pod whose second container has the flags."""
    pod = {"spec": {"containers": [{"command": ["sidecar"]}, {"command": [component, *flags]}]}}
    return {f"/etc/kubernetes/manifests/{component}.yaml": write_yaml(pod).encode()}  # type: ignore[arg-type]
