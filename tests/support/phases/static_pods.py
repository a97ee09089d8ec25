"""A control-plane node in memory whose kubelet takes its time, as a real one does."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from garboard.documents import Json, write_yaml
from garboard.engine import Interpreters, Plan, Probe
from garboard.errors import GarboardError
from garboard.model.paths import manifest_path
from garboard.node.interpreters import ProbingWaiter, interpreters_over
from garboard.node.interpreters.runtime import RuntimeInterpreter
from garboard.node.static_pods import Swap, plan_under_lease
from garboard.phases.gates import Answer, ObservedContainer
from garboard.phases.static_pods import ORDER, ReplacedPod, SwapSettings
from garboard.retry import Clock
from tests.support.engine.actions import MemoryFiles
from tests.support.phases.gates.views import MemoryNodeView

NODE = "cp-1"
_PORTS = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259, "etcd": 2381}
_GRACE_S = {"kube-apiserver": 30.0}
_PUT_BACK_S = 10.0
_START_S, _FORGET_S = 0.4, 1.5


def manifest_of(component: str, note: str) -> bytes:
    port = _PORTS[component]
    request: dict[str, Json] = {"host": "127.0.0.1", "port": port, "scheme": "HTTP"}
    container: dict[str, Json] = {
        "name": component,
        "image": f"registry.invalid/{component}:{note}",
        "command": [component, "--advertise-address=192.0.2.1", f"--secure-port={port}", f"--note={note}"],
        "readinessProbe": {"httpGet": {**request, "path": "/readyz"}},
        "livenessProbe": {"httpGet": {**request, "path": "/livez"}},
    }
    return write_yaml({"metadata": {"name": component}, "spec": {"containers": [container]}}).encode()


def swap_of_all(node_name: str = NODE, *, has_images: bool = True) -> Plan:
    """Return the plan that replaces all four pods of a node with a member of etcd."""
    pods = [
        ReplacedPod(component=each, former=manifest_of(each, "old"), manifest=manifest_of(each, "new"))
        for each in ORDER
    ]
    settings = SwapSettings(member_url="https://192.0.2.1:2380")
    swap = Swap(manifests={}, cause="it changed", node_name=node_name, cri_socket="", settings=settings)
    return plan_under_lease(swap, pods, lambda _image: has_images)


@dataclass
class Pod:
    manifest: bytes
    container: str
    is_running: bool = True
    has_sandbox: bool = True
    ends_at_s: float | None = None
    forgotten_at_s: float | None = None
    is_put_back: bool = False
    since_s: float = 0.0  # when its container started, or ended


@dataclass
class StaticPodNode(MemoryNodeView):
    """Its static pods follow the manifests; `breaks` are notes of manifests whose containers end at once.

    Containers of `exits_after_s` end after so many seconds each time, and start again a second later. With `is_unready`
    the API server of this node alone is not ready; `lag` is what its member of etcd has not applied.
    """

    machine: MemoryFiles = field(default_factory=MemoryFiles)
    now_s: float = 100.0
    pods: dict[str, Pod] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    traps: list[str] = field(default_factory=list)
    breaks: str = ""
    exits_after_s: dict[str, float] = field(default_factory=dict)
    is_unready: bool = False
    lag: str = ""
    workloads: list[ObservedContainer] = field(default_factory=list)  # containers of pods that are not static
    name: str = NODE
    address: str = "192.0.2.1"  # of its API server
    _made: int = 0

    def begin(self, note: str) -> None:
        for component in ORDER:
            self.machine.files[manifest_path(component)] = (0o600, manifest_of(component, note))
        self.sleep(60)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.sleep)

    def sleep(self, seconds: float) -> None:
        end = self.now_s + seconds
        while self.now_s < end:
            self.now_s = min(end, self.now_s + 0.05)
            self._sync()

    def notes(self) -> dict[str, str]:
        """Return which manifest every running container was made of."""
        running = {name: pod.manifest for name, pod in self.pods.items() if pod.is_running}
        return {name: data.decode().partition("--note=")[2].split()[0] for name, data in running.items()}

    def interpreters(self) -> Interpreters:
        found = interpreters_over(files=self.machine, waiter=ProbingWaiter(self, self.clock))
        RuntimeInterpreter(self, self.machine, self.clock).add_to(found)
        return found

    def pull(self, action: object) -> None:
        raise AssertionError(action)

    def remove_sandboxes(self, keeps: tuple[str, ...]) -> None:
        raise AssertionError(keeps)

    def stop_pods(self, namespace: str, selector: Mapping[str, str], grace_s: int) -> list[str]:
        raise AssertionError(selector)

    def stop_containers(self, name: str) -> None:
        if name in self.pods:
            self.stopped.append(name)
            self.pods[name].ends_at_s = self.now_s

    # The node as gates see it.

    def read(self, path: str) -> bytes | None:
        return self.machine.read(path)

    def ready_pods(self) -> list[str]:
        return [f"kube-system/{name}-{self.name}" for name, pod in self.pods.items() if pod.has_sandbox]

    def is_listening(self, host: str, port: int) -> bool:
        assert (host, port) == (self.address, 6443)
        pod = self.pods.get("kube-apiserver")
        is_ending = pod is not None and pod.ends_at_s is not None
        return pod is not None and pod.is_running and not (is_ending and self._has_etcd())

    def containers(self) -> list[ObservedContainer]:
        return [
            *self.workloads,
            *(
                ObservedContainer(
                    id=pod.container, name=name, pod=f"{name}-{self.name}", is_running=pod.is_running, is_static=True
                )
                for name, pod in self.pods.items()
                if pod.has_sandbox
            ),
        ]

    def get(self, url: str) -> Answer:
        component = next(name for name, port in _PORTS.items() if f":{port}/" in url)
        return self._answer_of(component, url)

    def ask_api_server(self, server: str, path: str) -> Answer:
        is_well = path == "/livez" or (self._has_etcd() and not self.is_unready)
        return self._answer_of("kube-apiserver", f"{server}{path}", 200 if is_well else 500)

    def member_probe(self, peer_url: str) -> Probe:
        return lambda: self.lag or None

    def etcd_cluster_version(self) -> str:
        if self._has_etcd():
            self.traps.append("the cluster version was looked at while the member could still raise it")
        return self.cluster_version

    def _answer_of(self, component: str, url: str, status: int = 200) -> Answer:
        pod = self.pods.get(component)
        if pod is None or not pod.is_running:
            raise GarboardError(f"{url}: Connection refused")
        return Answer(status)

    def monotonic_s(self) -> float:
        return self.now_s

    def _has_etcd(self) -> bool:
        return "etcd" in self.pods and self.pods["etcd"].is_running

    def _sync(self) -> None:
        for component in ORDER:
            data, pod = self.machine.read(manifest_path(component)), self.pods.get(component)
            if pod is None:
                if data is not None:
                    self._start(component, data)
            elif data != pod.manifest and pod.ends_at_s is None:
                pod.ends_at_s = self.now_s + _GRACE_S.get(component, 0.5)
            if pod is not None:
                self._end(component, pod, is_replaced=data is not None)
        api_server = self.pods.get("kube-apiserver")
        if api_server and api_server.is_running and self.machine.read(manifest_path("etcd")) is None:
            self.traps.append("etcd was taken away under the API server")

    def _start(self, component: str, data: bytes) -> None:
        due_s = self.starts.setdefault(component, self.now_s + _START_S)
        if self.now_s >= due_s:
            del self.starts[component]
            self._made += 1
            digest = hashlib.sha256(data).hexdigest()[:8]
            self.pods[component] = Pod(data, f"{component}-{digest}-{self._made}", since_s=self.now_s)

    def _restart(self, component: str, pod: Pod) -> None:
        """End a container that cannot work, or start it again, as a kubelet does."""
        lasts_s = self.exits_after_s[component] if pod.is_running else 1.0
        if self.now_s - pod.since_s >= lasts_s:
            pod.is_running, pod.since_s = not pod.is_running, self.now_s
            self._made += pod.is_running
            pod.container = f"{component}-{self._made}"

    def _end(self, component: str, pod: Pod, *, is_replaced: bool) -> None:
        if self.breaks and self.breaks.encode() in pod.manifest:
            pod.is_running = False
        if component in self.exits_after_s and pod.ends_at_s is None:
            self._restart(component, pod)
        if pod.ends_at_s is None or self.now_s < pod.ends_at_s:
            return
        if pod.has_sandbox:
            pod.is_running = pod.has_sandbox = False
            pod.forgotten_at_s = self.now_s + _FORGET_S
        elif is_replaced and not pod.is_put_back:
            # A pod of the same name came too early.
            pod.is_put_back, pod.forgotten_at_s = True, self.now_s + _PUT_BACK_S
        if pod.forgotten_at_s is not None and self.now_s >= pod.forgotten_at_s:
            del self.pods[component]
