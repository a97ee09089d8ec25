"""The real plan of `upgrade node` on a node in memory, of three: a gate stays closed, and all of it is taken back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import Observers, Plan, Probe, with_preconditions
from garboard.engine.pre_image import digest_of
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.model.paths import KUBELET_CONF, manifest_path
from garboard.node.interpreters.leases import LeaseInterpreter, NodeLeases
from garboard.node.interpreters.machine import MessageInterpreter, ServiceInterpreter
from garboard.node.runs import Runs
from garboard.node.transaction import RunOptions, RunPolicy, Transactions
from garboard.node.wiring import RunSettings, Wiring
from garboard.phases import plan_workflow, select
from garboard.phases.gates import Answer
from garboard.phases.static_pods import ORDER
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.tree import NODE
from garboard.pki.kubeconfig import read_kubeconfig
from tests.support.node.edges import EveryEdge
from tests.support.node.reporters import MemoryReporter
from tests.support.phases.machines import MemoryMachine
from tests.support.phases.static_pods import StaticPodNode
from tests.support.phases.upgraded_nodes import FORMER, TARGET, MemoryObjects, kubelet_conf, upgraded_node

SHARED, LOCAL = "https://lb.example:6443", "https://192.0.2.10:6443"
LAG = "it has applied 3 of 7 entries"
OPTIONS = RunOptions(command="upgrade node", policy=RunPolicy(undoes_on_failure=True), undoes_on_failure=True)
NEW = {**dict.fromkeys(ORDER, TARGET), "etcd": "3.7.0-0"}


@dataclass
class UpgradingNode(StaticPodNode):
    """A control plane with a kubelet, which uses the server that its kubeconfig had when it was started."""

    name: str = "node-1"
    address: str = "192.0.2.10"
    servers: list[str] = field(default_factory=list)  # that the kubelet has used
    is_kubelet_running: bool = True
    refuses: str = ""  # the server with which the kubelet is not well
    unready_with: str = ""  # what the manifest of the API server has when it is not ready
    lags_with: str = ""  # what the manifest of etcd has when its member lags behind

    def restart(self, service: str) -> None:
        assert service == "kubelet"
        self.is_kubelet_running = True
        self.servers.append(read_kubeconfig(self.read(KUBELET_CONF) or b"", KUBELET_CONF).server)

    start = restart

    def stop(self, service: str) -> None:
        self.is_kubelet_running = False

    def is_active(self, service: str) -> bool:
        return self.is_kubelet_running

    def get(self, url: str) -> Answer:
        if ":10248/" in url:
            return Answer(500 if self.servers[-1] == self.refuses else 200)
        return super().get(url)

    def member_probe(self, peer_url: str) -> Probe:
        assert peer_url == "https://192.0.2.10:2380"
        return lambda: LAG if self.lags_with and self.lags_with.encode() in self.pods["etcd"].manifest else None

    def ask_api_server(self, server: str, path: str) -> Answer:
        pod, with_text = self.pods.get("kube-apiserver"), self.unready_with.encode()
        self.is_unready = bool(with_text) and pod is not None and with_text in pod.manifest
        return super().ask_api_server(server, path)

    def images(self) -> dict[str, str]:
        """Return the tag of every container that runs."""
        texts = {name: pod.manifest.decode() for name, pod in self.pods.items() if pod.is_running}
        return {name: text.partition(f"/{name}:")[2].split()[0] for name, text in texts.items()}


@dataclass
class NodeUpgrade:
    """An upgrade of that node, with the journal of a real run."""

    context: UpgradeContext
    node: UpgradingNode
    reporter: MemoryReporter
    monkeypatch: pytest.MonkeyPatch

    @property
    def plan(self) -> Plan:
        files = self.node.machine
        plan = plan_workflow(select(NODE), self.context)
        return with_preconditions(plan, lambda path: "" if (data := files.read(path)) is None else digest_of(data))

    def carry_out(self) -> None:
        node = self.node
        edges: Any = EveryEdge()

        @contextmanager
        def wired(*_given: Any) -> Iterator[Wiring]:
            interpreters = node.interpreters()
            for each in (ServiceInterpreter(node, node.machine), LeaseInterpreter(Leases()), MessageInterpreter(edges)):
                each.add_to(interpreters)
            yield Wiring(
                interpreters, Observers(files=node.machine, services=node), edges, edges, NodeLeases(edges, print)
            )

        self.monkeypatch.setattr("garboard.node.transaction.wired_for", wired)
        transactions = Transactions(Runs(NodeMachine(None)), self.reporter)
        with transactions.locked("upgrade node"):
            transactions.carry_out(self.plan, RunSettings(), OPTIONS)


class Leases:
    """A Lease that is free."""

    def acquire(self, _action: object) -> dict[str, str]:
        return {}

    def release(self, _action: object) -> None:
        return


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> NodeUpgrade:
    context = upgraded_node("controlPlaneEndpoint: lb.example:6443\n", others=("node-2", "node-3"), is_first=False)
    context = replace(context, options=replace(context.options, renews_certificates=False))
    assert isinstance(context.machine, MemoryMachine)
    assert isinstance(context.objects, MemoryObjects)
    status: Json = {"nodeInfo": {"kubeletVersion": FORMER}}
    context.objects.objects["Node", "node-1"] = {"metadata": {"name": "node-1"}, "spec": {}, "status": status}
    context.machine.files[KUBELET_CONF] = kubelet_conf(SHARED)
    context.machine.services = {"kubelet"}
    node = UpgradingNode()
    node.machine.files = {path: (0o600, data) for path, data in context.machine.files.items()}
    node.servers.append(SHARED)
    node.sleep(60)
    return NodeUpgrade(context, node, MemoryReporter(), monkeypatch)


def test_node_goes_up_and_its_kubelet_uses_its_own_api_server(upgrade: NodeUpgrade) -> None:
    upgrade.carry_out()
    assert upgrade.node.images() == NEW
    assert upgrade.node.servers == [SHARED, LOCAL]
    assert upgrade.node.traps == []
    assert Runs(NodeMachine(None)).open() == ()


@dataclass(frozen=True)
class Fault:
    """What keeps a gate of the upgrade closed, by fields of the node, and what the error says then."""

    node: dict[str, str]
    gate: str
    cause: str
    servers: tuple[str, ...] = (SHARED,)  # that the kubelet has used in the end


FAULTS = {
    "member lags behind": Fault({"lags_with": NEW["etcd"]}, "etcd member https://192.0.2.10:2380 to catch up", LAG),
    "etcd ends": Fault({"breaks": f"etcd:{NEW['etcd']}"}, "to run steadily", "etcd: no container of it runs"),
    "scheduler ends": Fault({"breaks": f"kube-scheduler:{TARGET}"}, "to run steadily", "kube-scheduler: no container"),
    "API server is not ready": Fault(
        {"unready_with": f"kube-apiserver:{TARGET}"}, "to be ready", "/readyz answers 500"
    ),
    "kubelet is not well": Fault(
        {"refuses": LOCAL}, "a healthy kubelet", "/healthz answers 500", (SHARED, LOCAL, SHARED)
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_closed_gate_takes_the_whole_node_back_and_its_cause_is_named(fault: Fault, upgrade: NodeUpgrade) -> None:
    node = upgrade.node
    for name, value in fault.node.items():
        setattr(node, name, value)
    files, images = dict(node.machine.files), node.images()
    with pytest.raises(GarboardError, match=f"in vain for .*{fault.gate}") as caught:
        upgrade.carry_out()
    assert fault.cause in caught.value.message
    assert "what the run had done was undone" in str(caught.value.hint)
    assert node.machine.files == files
    assert node.images() == images
    assert tuple(node.servers) == fault.servers
    assert node.is_kubelet_running
    assert node.traps == []
    assert Runs(NodeMachine(None)).open() == ()


def test_etcd_of_the_last_control_plane_stays_new_and_all_else_goes_back(upgrade: NodeUpgrade) -> None:
    node = upgrade.node
    node.refuses, node.cluster_version = LOCAL, "3.7.0"
    files, images = dict(node.machine.files), node.images()
    with pytest.raises(GarboardError, match="in vain for a healthy kubelet"):
        upgrade.carry_out()
    assert node.images() == {**images, "etcd": NEW["etcd"]}
    etcd = manifest_path("etcd")
    assert node.machine.files == {**files, etcd: node.machine.files[etcd]}
    assert node.servers == [SHARED, LOCAL, SHARED]
    assert Runs(NodeMachine(None)).open() == ()


def test_quorum_that_needs_the_member_of_this_node_stops_it_before_anything_is_changed(upgrade: NodeUpgrade) -> None:
    node = upgrade.node
    node.spared = "https://192.0.2.12:2379: connection refused"
    files, containers = dict(node.machine.files), [pod.container for pod in node.pods.values()]
    with pytest.raises(GarboardError, match="lose its quorum without the member of this node") as caught:
        upgrade.carry_out()
    assert "https://192.0.2.12:2379" in caught.value.message
    assert node.machine.files == files
    assert [pod.container for pod in node.pods.values()] == containers, "no pod has restarted"
    assert Runs(NodeMachine(None)).open() == ()
