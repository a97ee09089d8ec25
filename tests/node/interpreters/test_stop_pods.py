"""Pods restarted by their labels: in memory, and in a real containerd."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from garboard.cri import ContainerState, CriClient
from garboard.engine import Plan, Step, StepContext, StopPods, plan_as_json, plan_as_text
from garboard.host.node_machine import NodeMachine
from garboard.node.interpreters.runtime import NodeRuntime, RuntimeInterpreter
from garboard.node.node_view import LiveNodeView
from garboard.phases.gates.evidence import of_component
from tests.support.cri.containerd import Registry, Runtime, build_program, containerd
from tests.support.cri.upstream import UpstreamClient, descriptors
from tests.support.engine.actions import MemoryFiles
from tests.support.node.edges import EveryEdge

PROXY = StopPods(namespace="kube-system", selector=(("k8s-app", "kube-proxy"),), grace_s=5)
HOST_NAMESPACES = {"network": 2, "pid": 1, "ipc": 0}


class OnePod(EveryEdge):
    def stop_pods(self, namespace: str, selector: Mapping[str, str], grace_s: int) -> list[str]:
        return (
            ["kube-system/kube-proxy-x"] if (namespace, selector) == ("kube-system", {"k8s-app": "kube-proxy"}) else []
        )


def test_pods_that_are_not_there_are_told() -> None:
    told: list[str] = []
    run = StepContext({}, told.append, lambda _facts: None)
    interpreter = RuntimeInterpreter(OnePod(), MemoryFiles())
    interpreter.stop_pods(PROXY, run)
    assert told == []
    interpreter.stop_pods(StopPods(namespace="default", selector=PROXY.selector), run)
    assert told == ["no such pod runs on this node"]


def test_plan_names_the_pods_by_their_labels() -> None:
    plan = Plan((Step(PROXY, "", "proxy"),))
    assert plan_as_text(plan).startswith("[proxy] restart the pods k8s-app=kube-proxy of kube-system on this node\n")
    shown = plan_as_json(plan)
    assert isinstance(shown, dict)
    assert shown["steps"][0]["action"]["selector"] == {"k8s-app": "kube-proxy"}  # type: ignore[index,call-overload]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder = tmp_path_factory.mktemp("stop")
    with ExitStack() as stack:
        host = stack.enter_context(Registry(build_program(folder)).serve())
        yield stack.enter_context(containerd(folder, f"{host}/pause:1"))


class Pods:
    """Starts pods as the kubelet does."""

    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self._runtime = runtime
        self._folder = folder
        self._upstream = UpstreamClient(runtime.socket, descriptors(folder))
        with CriClient(runtime.socket) as client:
            client.pull_image(runtime.image)

    def start(self, pod: str, namespace: str, app: str = "", *, container: str = "", source: str = "api") -> str:
        """Start a pod with one container, and return the id of that."""
        of_pod = {"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": namespace}
        config = {
            "metadata": {"name": pod, "uid": pod, "namespace": namespace},
            "labels": {**of_pod, "k8s-app": app},
            "annotations": {"kubernetes.io/config.source": source},
            "log_directory": str(self._folder),
            "linux": {"security_context": {"namespace_options": HOST_NAMESPACES}},
        }
        sandbox = self._upstream.call("RunPodSandbox", config=config).pod_sandbox_id
        spec = {
            "metadata": {"name": container or pod},
            "image": {"image": self._runtime.image},
            "labels": {"io.kubernetes.container.name": container or pod, **of_pod},
            "linux": {"security_context": {"namespace_options": HOST_NAMESPACES}},
        }
        made = self._upstream.call("CreateContainer", pod_sandbox_id=sandbox, config=spec, sandbox_config=config)
        self._upstream.call("StartContainer", container_id=made.container_id)
        return str(made.container_id)


@pytest.fixture
def pods(runtime: Runtime, tmp_path: Path) -> Pods:
    return Pods(runtime, tmp_path)


def running(runtime: Runtime) -> set[str]:
    with CriClient(runtime.socket) as client:
        return {each.id for each in client.list_containers(state=ContainerState.RUNNING)}


@pytest.mark.real
def test_containers_of_the_chosen_pods_end_and_all_others_run_on(runtime: Runtime, pods: Pods) -> None:
    chosen = {pods.start("proxy-1", "kube-system", "kube-proxy"), pods.start("proxy-2", "kube-system", "kube-proxy")}
    others = {pods.start("dns", "kube-system", "kube-dns"), pods.start("proxy-3", "default", "kube-proxy")}
    names = NodeRuntime(runtime.socket, print).stop_pods("kube-system", {"k8s-app": "kube-proxy"}, 5)
    assert sorted(names) == ["kube-system/proxy-1", "kube-system/proxy-2"]
    assert running(runtime) & (chosen | others) == others
    assert NodeRuntime(runtime.socket, print).stop_pods("kube-system", {"k8s-app": "absent"}, 5) == []


@pytest.mark.real
def test_only_static_pods_count_as_the_control_plane(runtime: Runtime, pods: Pods) -> None:
    """A backup of etcd may have a container of the same name, in the same namespace."""
    own = pods.start("etcd-cp1", "kube-system", container="etcd", source="file")
    others = {
        pods.start("etcd-backup", "kube-system", container="etcd"),
        pods.start("etcd-cp2", "default", container="etcd"),
    }
    view = LiveNodeView(NodeMachine(None), EveryEdge(), runtime.socket, "")
    assert [each.id for each in of_component("etcd", view.containers())] == [own]
    NodeRuntime(runtime.socket, print).stop_containers("etcd")
    assert running(runtime) & {own, *others} == others
