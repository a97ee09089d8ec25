"""A swap of static pods on a scratch machine, where nothing runs: a kubelet that follows its manifests at once.

Files, journal and plan are the real ones, so that a swap can be killed at every point of them. The container runtime,
the API server and etcd are stood in for, when the swap begins as well as when it is resumed or undone.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from garboard.documents import Json, write_yaml
from garboard.engine import LEASE_TOKEN, AcquireLease, Observers, Outcomes, Plan, Probe, PullImage, ReleaseLease
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.model.paths import ADMIN_CONF, manifest_path
from garboard.node import static_pods, transaction
from garboard.node.interpreters import ProbingWaiter, interpreters_over
from garboard.node.interpreters.leases import NodeLeases
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.interpreters.runtime import RuntimeInterpreter
from garboard.node.transaction import RunOptions
from garboard.node.wiring import Wiring
from garboard.node.workflow import this_node
from garboard.phases.gates import Answer, ObservedContainer
from garboard.phases.static_pods import ORDER, SwapSettings
from garboard.retry import Clock

NODE = "node-1"
MEMBER = "https://192.0.2.10:2380"


def manifest_of(component: str, note: str) -> bytes:
    """Return the manifest of a static pod that says which one it is."""
    command = [component, "--advertise-address=192.0.2.10", "--secure-port=6443", f"--note={note}"]
    container: Json = {"name": component, "image": f"registry.invalid/{component}:1", "command": [*command]}
    return write_yaml({"metadata": {"name": component}, "spec": {"containers": [container]}}).encode()


def leave_manifests() -> None:
    """Make the manifests of before; they do not all have the same mode and owner."""
    folder = Path(manifest_path(ORDER[0])).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    for number, component in enumerate(ORDER):
        path = Path(manifest_path(component))
        path.write_bytes(manifest_of(component, "old"))
        path.chmod(0o600 if number % 2 else 0o640)
        os.chown(path, number, number)


def swap(report: Any) -> int:
    """Replace all manifests; return the status that a command would end with."""
    given = static_pods.Swap(
        manifests={component: manifest_of(component, "new") for component in ORDER},
        cause="it changed",
        node_name=NODE,
        cri_socket="",
        settings=SwapSettings(member_url=MEMBER, voters=3),
    )
    try:
        static_pods.swap_static_pods(given, this_node(report), RunOptions(command="swap"))
    except GarboardError as error:
        report.report(f"error[{error.error_class}]: {error.message}; {error.hint}")
        return error.exit_code
    return 0


def stand_in() -> None:
    """Have every run of this process, and of its children, find the kubelet that follows its manifests."""
    for module, name, found in ((transaction, "wired_for", _wired), (static_pods, "NodeInspector", EveryImage)):
        setattr(module, name, found)


class EveryImage:
    def __init__(self, _manager: object) -> None:
        return

    def has_image(self, _socket: str, _image: str) -> bool:
        return True


class FileKubelet:
    """Runs the pods whose manifests are there; time passes when it is waited for."""

    endpoint = ""

    def __init__(self, machine: NodeMachine) -> None:
        self.machine = machine
        self.now_s = 0.0

    @property
    def clock(self) -> Clock:
        return Clock(self.monotonic_s, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def monotonic_s(self) -> float:
        return self.now_s

    def read(self, path: str) -> bytes | None:
        return self.machine.read(path)

    def _running(self) -> list[str]:
        return [component for component in ORDER if self.read(manifest_path(component)) is not None]

    def containers(self) -> Sequence[ObservedContainer]:
        return [
            ObservedContainer(id=f"{name}-1", name=name, pod=f"{name}-{NODE}", is_running=True, is_static=True)
            for name in self._running()
        ]

    def ready_pods(self) -> Sequence[str]:
        return [f"kube-system/{component}-{NODE}" for component in self._running()]

    def is_listening(self, _host: str, _port: int) -> bool:
        return "kube-apiserver" in self._running()

    def ask_api_server(self, _server: str, _path: str) -> Answer:
        return Answer(200 if "etcd" in self._running() else 500)

    def get(self, _url: str) -> Answer:
        return Answer(200)

    def etcd_probe(self, *, without: str = "") -> Probe:
        return lambda: None

    def member_probe(self, _peer_url: str) -> Probe:
        return lambda: None

    def etcd_cluster_version(self) -> str:
        return "3.6.0"

    # The container runtime.

    def pull(self, action: PullImage) -> None:
        raise AssertionError(action)

    def remove_sandboxes(self, keeps: tuple[str, ...]) -> None:
        raise AssertionError(keeps)

    def stop_containers(self, _name: str) -> None:
        return

    def stop_pods(self, namespace: str, _selector: Mapping[str, str], _grace_s: int) -> Sequence[str]:
        raise AssertionError(namespace)


class FreeLeases:
    """A Lease that nobody else wants."""

    def acquire(self, _action: AcquireLease) -> Outcomes:
        return {LEASE_TOKEN: "1"}

    def release(self, _action: ReleaseLease) -> None:
        return


@contextmanager
def _wired(_plan: Plan, machine: NodeMachine, *_others: object) -> Iterator[Wiring]:
    kubelet: Any = FileKubelet(machine)
    interpreters = interpreters_over(files=machine, leases=FreeLeases(), waiter=ProbingWaiter(kubelet, kubelet.clock))
    RuntimeInterpreter(kubelet, machine, kubelet.clock).add_to(interpreters)
    cluster = NodeCluster(machine, ADMIN_CONF, "")  # which nobody asks
    yield Wiring(interpreters, Observers(files=machine), cluster, kubelet, NodeLeases(cluster.connect_shared, print))
