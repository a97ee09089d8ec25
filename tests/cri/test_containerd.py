"""The client in front of a real containerd with a real sandbox and real containers."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from garboard.cri import ContainerState, ContainerStatus, CriClient, RuntimeCallFailed, SandboxState
from tests.support.cri.containerd import Registry, Runtime, build_program, containerd
from tests.support.cri.upstream import UpstreamClient, descriptors

pytestmark = pytest.mark.real

HOST_NAMESPACES = {"network": 2, "pid": 1, "ipc": 0}  # the network of the node: no CNI is needed


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder = tmp_path_factory.mktemp("cri")
    with ExitStack() as stack:
        registry = Registry(build_program(folder))
        host = stack.enter_context(registry.serve())
        yield stack.enter_context(containerd(folder, f"{host}/pause:1"))


@pytest.fixture
def client(runtime: Runtime) -> Iterator[CriClient]:
    with CriClient(runtime.socket) as client:
        yield client


def test_version_and_status_are_told(client: CriClient) -> None:
    version = client.version()
    assert version.runtime_name == "containerd"
    assert version.runtime_api_version == "v1"
    status = client.status(verbose=True)
    ready, network = status.condition("RuntimeReady"), status.condition("NetworkReady")
    assert ready is not None
    assert ready.status
    assert network is not None
    assert "config" in status.info


def test_old_containerd_has_no_cgroup_driver_to_tell(client: CriClient) -> None:
    driver = client.cgroup_driver()
    assert (driver is None) == client.version().runtime_version.startswith("1.")


def test_image_is_pulled_and_found(client: CriClient, runtime: Runtime) -> None:
    assert client.image_status("no.such.host/image:1") is None
    pulled = client.pull_image(runtime.image)
    image = client.image_status(runtime.image)
    assert image is not None
    assert image.id == pulled
    assert runtime.image in image.repo_tags
    assert image.size > 1_000_000
    assert pulled in [each.id for each in client.list_images()]


def test_missing_image_is_an_error_that_names_it(client: CriClient, runtime: Runtime) -> None:
    absent = runtime.image.replace("pause:1", "absent:1")
    with pytest.raises(RuntimeCallFailed, match="absent:1"):
        client.pull_image(absent)


def test_sandboxes_and_containers_are_seen_stopped_and_removed(
    client: CriClient, runtime: Runtime, tmp_path: Path
) -> None:
    upstream = UpstreamClient(runtime.socket, descriptors(tmp_path))
    client.pull_image(runtime.image)
    config = {
        "metadata": {"name": "pod", "uid": "u1", "namespace": "ns", "attempt": 3},
        "labels": {"io.kubernetes.pod.name": "pod"},
        "annotations": {"note": "é"},
        "log_directory": str(tmp_path),
        "linux": {"security_context": {"namespace_options": HOST_NAMESPACES}},
    }
    sandbox_id = upstream.call("RunPodSandbox", config=config).pod_sandbox_id
    ids = {}
    for name, arguments in (("runs", []), ("fails", ["7"])):
        container = {
            "metadata": {"name": name, "attempt": 1},
            "image": {"image": runtime.image},
            "args": arguments,
            "log_path": f"{name}.log",
            "labels": {"io.kubernetes.container.name": name},
        }
        created = upstream.call("CreateContainer", pod_sandbox_id=sandbox_id, config=container, sandbox_config=config)
        ids[name] = created.container_id
        upstream.call("StartContainer", container_id=ids[name])

    [sandbox] = client.list_sandboxes(labels={"io.kubernetes.pod.name": "pod"})
    assert sandbox.id == sandbox_id
    assert sandbox.is_ready
    assert sandbox.metadata is not None
    assert (sandbox.metadata.name, sandbox.metadata.namespace, sandbox.metadata.attempt) == ("pod", "ns", 3)
    assert dict(sandbox.annotations) == {"note": "é"}
    assert 0 <= time.time_ns() - sandbox.created_at_ns < 300e9
    assert client.list_sandboxes(state=SandboxState.NOT_READY) == ()
    assert client.list_sandboxes(labels={"io.kubernetes.pod.name": "other"}) == ()

    assert {each.id for each in client.list_containers(sandbox_id=sandbox_id)} == set(ids.values())
    [running] = client.list_containers(state=ContainerState.RUNNING, labels={"io.kubernetes.container.name": "runs"})
    assert running.metadata is not None
    assert (running.metadata.name, running.metadata.attempt) == ("runs", 1)

    failed = wait_for_exit(client, ids["fails"])
    assert (failed.exit_code, failed.reason) == (7, "Error")
    # containerd notes the start after the fact: a container that ends at once may "finish" a moment before it.
    assert min(failed.finished_at_ns, failed.started_at_ns) > 0
    assert Path(failed.log_path).read_text().endswith("stdout F ending with 7\n")

    client.stop_container(ids["runs"], grace_s=10)
    stopped = wait_for_exit(client, ids["runs"])
    assert stopped.exit_code == 0
    assert client.container_status("no-such-container") is None

    client.stop_sandbox(sandbox_id)
    client.stop_sandbox(sandbox_id)
    assert [each.id for each in client.list_sandboxes(state=SandboxState.NOT_READY)] == [sandbox_id]
    client.remove_sandbox(sandbox_id)
    client.remove_sandbox(sandbox_id)
    assert client.list_sandboxes() == ()
    assert client.list_containers() == ()
    upstream.close()


def wait_for_exit(client: CriClient, container_id: str) -> ContainerStatus:
    give_up_at = time.monotonic() + 30
    while True:
        status = client.container_status(container_id)
        assert status is not None
        if status.state == ContainerState.EXITED:
            return status
        assert time.monotonic() < give_up_at, status
        time.sleep(0.1)
