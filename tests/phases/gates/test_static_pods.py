"""Gates about static pods that are replaced: each is closed by a fault that no other one sees."""

from copy import deepcopy
from dataclasses import replace

import pytest

from garboard.documents import Json
from garboard.engine import Evidence, Gate, GateFailed
from garboard.model.paths import manifest_path
from garboard.node.interpreters import ProbingWaiter
from garboard.phases.gates import (
    Answer,
    ApiServerReady,
    ComponentHealthy,
    ComponentsSettled,
    EtcdHealthy,
    EtcdSparesMember,
    ListenerClosed,
    MemberCaughtUp,
    NodeDrained,
    NodeReady,
    ObservedContainer,
    PodsEnded,
)
from garboard.phases.static_pods import ORDER
from garboard.retry import wait_until
from tests.support.phases.gates.views import MemoryNodeView
from tests.support.phases.static_pods import NODE, StaticPodNode, manifest_of

SCHEDULER = "kube-scheduler"
SETTLED = ComponentsSettled(components=(SCHEDULER,), timeout_s=60)
ENDED = PodsEnded(components=(SCHEDULER,), pods=(f"kube-system/{SCHEDULER}-{NODE}",), timeout_s=60)


@pytest.fixture
def node() -> StaticPodNode:
    found = StaticPodNode()
    found.begin("old")
    return found


def test_pods_have_ended_a_while_after_their_sandboxes(node: StaticPodNode) -> None:
    probe = ENDED.probe(node)
    assert probe() is None, "its manifest is there, so it is to run"
    node.machine.remove(manifest_path(SCHEDULER))
    assert probe() == f"kube-system/{SCHEDULER}-{NODE} still has a sandbox"
    node.sleep(1.0)
    assert probe() == "they have just ended"
    node.sleep(1.6)
    assert probe() is None


def test_container_has_to_stay_the_same_for_its_settling_time(node: StaticPodNode) -> None:
    probe = SETTLED.probe(node)
    assert "is new" in str(probe())
    node.sleep(4.9)
    pod = node.pods[SCHEDULER]
    node.pods[SCHEDULER] = replace(pod, container="another")  # it ended, and the kubelet started it again
    assert "container another is new" in str(probe())
    node.sleep(4.9)
    assert "is new" in str(probe())
    node.sleep(0.2)
    assert probe() is None


def test_container_of_the_same_name_in_another_pod_does_not_count(node: StaticPodNode) -> None:
    of_job = ObservedContainer(id="job", name=SCHEDULER, pod="a-job", namespace="kube-system", is_running=False)
    node.workloads.append(of_job)
    probe = SETTLED.probe(node)
    probe()
    node.sleep(5.1)
    assert probe() is None


LOG = "2026-11-15T12:00:00Z stderr F Error: unknown flag: --no-such-flag"


def refusing(flag: str, *, log: str = LOG, status: int = 1) -> MemoryNodeView:
    """Return a node whose scheduler has ended, and whose manifest has a flag more than usual."""
    manifest = f"spec: {{containers: [{{command: [{SCHEDULER}, {flag}]}}]}}"
    ended = ObservedContainer(
        id="c", name=SCHEDULER, pod="p", is_running=False, is_static=True, exit_code=status, log_path="/log"
    )
    return MemoryNodeView(
        files={manifest_path(SCHEDULER): manifest.encode(), "/log": f"Usage:\n{log}\n".encode()}, running=[ended]
    )


def test_nobody_waits_for_a_component_that_does_not_have_a_flag_of_its_manifest() -> None:
    with pytest.raises(
        GateFailed, match=r"^waited in vain for kube-scheduler to run .*flag --no-such-flag, and"
    ) as told:
        ProbingWaiter(refusing("--no-such-flag=1")).wait(SETTLED)
    assert any("unknown flag: --no-such-flag" in line for line in told.value.evidence.lines)
    assert not ProbingWaiter(refusing("--no-such-flag=1")).is_open(SETTLED)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(refusing("--v=2"), id="the manifest before it has been put back"),
        pytest.param(refusing("--no-such-flag=1", status=0), id="it was ended from outside"),
        pytest.param(refusing("--no-such-flag=1", log="stderr F cannot reach etcd"), id="another reason"),
        pytest.param(
            refusing("--no-such-flag=1", log="stderr F it said unknown flag: --no-such-flag"), id="a quotation"
        ),
    ],
)
def test_component_that_has_ended_for_another_reason_may_still_come(node: MemoryNodeView) -> None:
    assert SETTLED.probe(node)() == f"{SCHEDULER}: no container of it runs"


def test_container_that_runs_and_does_not_answer_is_not_settled(node: StaticPodNode) -> None:
    asked: list[str] = []

    class Mute(StaticPodNode):
        def get(self, url: str) -> Answer:
            asked.append(url)
            return Answer(500, "[-]leader-election failed")

    mute = Mute(machine=node.machine, pods=node.pods)
    probe = SETTLED.probe(mute)
    mute.sleep(6)
    assert probe() == f"{SCHEDULER}: http://127.0.0.1:10259/readyz answers 500: [-]leader-election failed"
    assert asked == ["http://127.0.0.1:10259/readyz"]


def test_settling_times_run_beside_each_other(node: StaticPodNode) -> None:
    gate = ComponentsSettled(components=("kube-apiserver", "etcd", SCHEDULER), timeout_s=60)
    assert gate.describe() == {"settlingSeconds": {"kube-apiserver": 10.0, "etcd": 10.0, SCHEDULER: 5.0}}
    probe = gate.probe(node)
    probe()
    node.sleep(9.8)
    assert SCHEDULER not in str(probe())
    node.sleep(0.3)
    assert probe() is None


def test_api_server_that_lives_is_settled_and_is_asked_for_its_readiness_apart(node: StaticPodNode) -> None:
    probe = ComponentsSettled(components=("kube-apiserver",), timeout_s=60).probe(node)
    ready = ApiServerReady(timeout_s=60).probe(node)
    probe()
    node.sleep(11)
    assert (probe(), ready()) == (None, None)
    node.pods["etcd"].is_running = False
    assert (probe(), ready()) == (None, "https://192.0.2.1:6443/readyz answers 500")
    node.pods["kube-apiserver"].is_running = False
    assert probe() == "kube-apiserver: no container of it runs"
    assert ready() == "https://192.0.2.1:6443/readyz: Connection refused"
    node.machine.remove(manifest_path("kube-apiserver"))
    assert ready() == "there is no /etc/kubernetes/manifests/kube-apiserver.yaml"
    assert isinstance(ApiServerReady(timeout_s=60).evidence(node), Evidence)


AWAY, BACK = "away", "back"
GATES: dict[str, dict[str, Gate]] = {
    AWAY: {
        "ListenerClosed": ListenerClosed(component="kube-apiserver", host="192.0.2.1", port=6443, timeout_s=60),
        "PodsEnded": PodsEnded(
            components=("kube-apiserver",), pods=(f"kube-system/kube-apiserver-{NODE}",), timeout_s=90
        ),
    },
    BACK: {
        "ComponentsSettled": ComponentsSettled(components=ORDER, timeout_s=60),
        "ApiServerReady": ApiServerReady(timeout_s=60),
        "MemberCaughtUp": MemberCaughtUp(peer_url="https://192.0.2.1:2380", timeout_s=60),
        "NodeReady": NodeReady(node_name=NODE, timeout_s=60),
        "EtcdHealthy": EtcdHealthy(timeout_s=60),
        "EtcdSparesMember": EtcdSparesMember(peer_url="https://192.0.2.1:2380", timeout_s=60),
        "NodeDrained": NodeDrained(node_name=NODE, timeout_s=60),
    },
}


class OpenPort(StaticPodNode):
    """Somebody else takes connections at the address of the API server."""

    def is_listening(self, host: str, port: int) -> bool:
        return True


class StuckSandbox(StaticPodNode):
    """The container runtime does not get rid of a sandbox."""

    def ready_pods(self) -> list[str]:
        return [f"kube-system/kube-apiserver-{NODE}"]


def ready_node(*, is_ready: bool = True) -> dict[str, dict[str, Json]]:
    """Return the objects that the API shows: whatever the containers do, the phase of a pod is Running."""
    said: Json = [{"type": "Ready", "status": "True" if is_ready else "False", "message": "PLEG is not healthy"}]
    node: dict[str, Json] = {"status": {"conditions": said}}
    return {f"Node/{NODE}": node, f"Pod/{SCHEDULER}-{NODE}": {"status": {"phase": "Running"}}}


@pytest.mark.parametrize(
    ("stage", "faulty", "caught_by"),
    [
        pytest.param(AWAY, StaticPodNode(), "", id="no fault while away"),
        pytest.param(AWAY, OpenPort(), "ListenerClosed", id="a listener that stays"),
        pytest.param(AWAY, StuckSandbox(), "PodsEnded", id="a sandbox that stays"),
        pytest.param(BACK, StaticPodNode(objects=ready_node()), "", id="no fault"),
        pytest.param(
            BACK,
            StaticPodNode(objects=ready_node(), exits_after_s={SCHEDULER: 0.2}),
            "ComponentsSettled",
            id="a crash loop behind phase Running",
        ),
        pytest.param(
            BACK,
            StaticPodNode(objects=ready_node(), exits_after_s={SCHEDULER: 4.0}),
            "ComponentsSettled",
            id="an image that starts, answers probes and then exits",
        ),
        pytest.param(
            BACK,
            StaticPodNode(objects=ready_node(), is_unready=True),
            "ApiServerReady",
            id="/readyz failing on this node alone",
        ),
        pytest.param(
            BACK,
            StaticPodNode(objects=ready_node(), lag="it has applied 3 of 7 entries"),
            "MemberCaughtUp",
            id="a lagging member that answers",
        ),
        pytest.param(BACK, StaticPodNode(objects=ready_node(is_ready=False)), "NodeReady", id="a kubelet that is ill"),
        pytest.param(
            BACK, StaticPodNode(objects=ready_node(), etcd="b: no answer"), "EtcdHealthy", id="etcd without a majority"
        ),
        pytest.param(
            BACK,
            StaticPodNode(objects=ready_node(), spared="b: no answer"),
            "EtcdSparesMember",
            id="etcd with a majority that needs this member",
        ),
        pytest.param(
            BACK,
            StaticPodNode(objects=ready_node() | {"Pod/web": {"spec": {"nodeName": NODE}}}),
            "NodeDrained",
            id="a pod that could run elsewhere",
        ),
    ],
)
def test_each_fault_is_caught_by_exactly_one_gate(stage: str, faulty: StaticPodNode, caught_by: str) -> None:
    closed = set()
    for name, gate in GATES[stage].items():
        node = deepcopy(faulty)
        node.begin("old")
        if stage == AWAY:
            node.machine.remove(manifest_path("kube-apiserver"))
        if wait_until(gate.probe(node), timeout_s=gate.timeout_s, pauses=gate.pauses, clock=node.clock) is not None:
            closed.add(name)
    assert closed == ({caught_by} if caught_by else set())


def test_container_that_exits_later_answers_its_probe_until_then() -> None:
    """What only asks for health finds nothing: the fault of the settling time, and of no probe."""
    node = StaticPodNode(exits_after_s={SCHEDULER: 4.0})
    node.begin("old")
    healthy = ComponentHealthy(component=SCHEDULER, timeout_s=60)
    assert wait_until(healthy.probe(node), timeout_s=60, pauses=healthy.pauses, clock=node.clock) is None


def test_port_of_a_probe_may_have_a_name(node: StaticPodNode) -> None:
    text = manifest_of(SCHEDULER, "old").decode()
    named = text.replace("port: 10259", "port: probe-port").replace(
        f"    name: {SCHEDULER}\n",
        f"    name: {SCHEDULER}\n    ports:\n    - containerPort: 7\n      name: probe-port\n",
    )
    assert named.count("probe-port") == 3
    node.machine.files[manifest_path(SCHEDULER)] = (0o600, named.encode())
    node.sleep(60)
    node.get = lambda url: Answer(503 if url.startswith("http://127.0.0.1:7/") else 200)  # type: ignore[method-assign]
    assert SETTLED.probe(node)() == f"{SCHEDULER}: http://127.0.0.1:7/readyz answers 503"


def test_listener_counts_only_while_the_manifest_is_away(node: StaticPodNode) -> None:
    gate = ListenerClosed(component="kube-apiserver", host="192.0.2.1", port=6443, timeout_s=60)
    assert gate.probe(node)() is None
    node.machine.remove(manifest_path("kube-apiserver"))
    assert gate.probe(node)() == "it still takes connections"
    node.sleep(0.2)
    assert gate.probe(node)() is None
    assert gate.name == "kube-apiserver to close 192.0.2.1:6443"


def test_member_that_lags_behind_is_named() -> None:
    view = MemoryNodeView(etcd="it has applied 3 of 7 entries")
    gate = MemberCaughtUp(peer_url="https://192.0.2.1:2380", timeout_s=9)
    assert gate.probe(view)() == "it has applied 3 of 7 entries"
    view.etcd = ""
    assert gate.probe(view)() is None
    assert isinstance(gate.evidence(view), Evidence)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, None),
        ({"conditions": [{"type": "Ready", "status": "False", "message": "no CNI"}]}, "no CNI"),
        ({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}, "NodeStatusUnknown"),
        ({"conditions": [{"type": "DiskPressure", "status": "False"}]}, "it has no condition Ready"),
        ({}, "it has no condition Ready"),
    ],
)
def test_node_is_ready_when_its_kubelet_says_so(status: dict[str, object], problem: str | None) -> None:
    view = MemoryNodeView(objects={"Node/n": {"status": status}})  # type: ignore[dict-item]
    gate = NodeReady(node_name="n", timeout_s=4)
    assert gate.probe(view)() == problem
    assert gate.probe(MemoryNodeView())() == "there is no such Node"
