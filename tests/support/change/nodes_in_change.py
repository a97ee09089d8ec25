"""A control plane in memory whose cluster is changed: its pods, its kubelet, its API server, and real journals."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import Observers, Plan, with_preconditions
from garboard.engine.pre_image import digest_of
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient
from garboard.kube.leases import LeaseFailed
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.node import ApiEndpoint
from garboard.model.paths import ADMIN_CONF, manifest_path
from garboard.node.change_apply_run import ChangedNode, carry_out_on_node, run_options
from garboard.node.interpreters.leases import LeaseInterpreter, NodeLeases
from garboard.node.interpreters.machine import MessageInterpreter, ServiceInterpreter
from garboard.node.interpreters.objects import ObjectInterpreter, delete_object, patch_object, put_object
from garboard.node.wiring import RunSettings, Wiring
from garboard.node.workflow import LocalNode
from garboard.phases.gates import Answer
from garboard.phases.upgrade.context import ThisNode
from tests.support.change.api_objects import stored_objects
from tests.support.kube.api_server import FakeApi
from tests.support.node.edges import EveryEdge
from tests.support.node.reporters import MemoryReporter
from tests.support.phases.static_pods import StaticPodNode

MAPS, NODES = "/api/v1/namespaces/kube-system/configmaps", "/api/v1/nodes"
FLAG, LIMIT = "scheduler.extraArgs[v]=9", "KubeletConfiguration:maxPods=250"


@dataclass
class ChangingNode(StaticPodNode):
    """A control plane with a kubelet, which runs with the configuration that it was started with."""

    limits: list[str] = field(default_factory=list)  # maxPods of each start of the kubelet
    is_kubelet_running: bool = True
    refuses: str = ""  # the limit with which the kubelet is not well

    def restart(self, service: str) -> None:
        assert service == "kubelet"
        self.is_kubelet_running = True
        text = (self.read(CONFIG_FILE) or b"").decode()
        self.limits.append(next((line.split()[1] for line in text.splitlines() if line.startswith("maxPods")), ""))

    start = restart

    def stop(self, service: str) -> None:
        self.is_kubelet_running = False

    def is_active(self, service: str) -> bool:
        return self.is_kubelet_running

    def get(self, url: str) -> Answer:
        if ":10248/" in url:
            return Answer(500 if self.refuses and self.limits[-1] == self.refuses else 200)
        return super().get(url)


@dataclass
class Objects:
    """The objects of the fake API server, as interpreters change them."""

    client: KubeClient

    def put(self, action: Any) -> None:
        put_object(self.client, action)

    def patch(self, action: Any) -> None:
        patch_object(self.client, action)

    def delete(self, action: Any) -> None:
        delete_object(self.client, action)

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> Any:
        return self.client.find(kind, namespace, name, api_version=api_version)


class Leases:
    """A Lease that is free, unless somebody holds it."""

    holder = ""

    def acquire(self, _action: object) -> dict[str, str]:
        if self.holder:
            raise LeaseFailed(f"it is held by {self.holder}")
        return {}

    def release(self, _action: object) -> None:
        return


@dataclass
class NodeInChange:
    """A node of a made-up cluster, its API server, and the journal of a real run."""

    snapshot: ClusterSnapshot
    name: str
    api: FakeApi
    client: KubeClient
    monkeypatch: pytest.MonkeyPatch
    node: ChangingNode = field(default_factory=ChangingNode)
    leases: Leases = field(default_factory=Leases)

    def __post_init__(self) -> None:
        found = self.snapshot.node(self.name)
        assert found is not None
        assert found.endpoint is not None
        self.node.name, self.node.address = self.name, found.endpoint.advertise_address
        files = {manifest_path(each): text for each, text in (found.manifests or {}).items()}
        files[CONFIG_FILE] = found.kubelet_config or ""
        self.node.machine.files = {path: (0o600, text.encode()) for path, text in files.items()}
        self.node.objects[f"Node/{self.name}"] = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        self.api.objects.update(stored_objects(self.snapshot))
        for each in self.snapshot.nodes:
            self.api.objects[f"{NODES}/{each.name}"] = {"metadata": {"name": each.name, "annotations": {}}}
        self.node.sleep(60)

    def wire(self) -> None:
        """Have runs go to this node and its API server."""
        node = self.node
        edges: Any = EveryEdge()
        objects: Any = Objects(self.client)

        @contextmanager
        def wired(*_given: Any) -> Iterator[Wiring]:
            interpreters = node.interpreters()
            for each in (
                ServiceInterpreter(node, node.machine),
                LeaseInterpreter(self.leases),
                MessageInterpreter(edges),
                ObjectInterpreter(objects, node.machine),
            ):
                each.add_to(interpreters)
            observers = Observers(files=node.machine, services=node, objects=objects)
            yield Wiring(interpreters, observers, edges, edges, NodeLeases(edges, print))

        self.monkeypatch.setattr("garboard.node.transaction.wired_for", wired)

    def carry_out(self, plan: Plan) -> None:
        self.wire()
        local = LocalNode(NodeMachine(None), MemoryReporter())
        this = ThisNode(self.name, "", ApiEndpoint(), {"kube-apiserver": b""})
        changed = ChangedNode(local=local, this=this, kubeconfig=ADMIN_CONF)
        files = self.node.machine
        seen = with_preconditions(plan, lambda path: "" if (data := files.read(path)) is None else digest_of(data))
        carry_out_on_node(seen, changed, RunSettings(node_name=self.name), run_options("change apply"))

    def stored(self, name: str) -> Any:
        return self.api.objects.get(f"{MAPS}/{name}", {}).get("data")

    def files(self) -> dict[str, bytes]:
        return {path: data for path, (_, data) in self.node.machine.files.items()}

    def objects(self) -> dict[str, Any]:
        """Return what the API server has, without keys that a patch has set to nothing.

        Roles are left out: the colon of their names is encoded where they are deleted, which the fake does not decode.
        """
        return {path: _without_nothing(each) for path, each in self.api.objects.items() if "garboard:" not in path}


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(each) for key, each in value.items() if each is not None}
    return value


def target_of(node: NodeInChange) -> str:
    return str(node.stored("garboard-change")["target"])
