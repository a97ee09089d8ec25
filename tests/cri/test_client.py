import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from garboard.cri import CgroupDriver, CriClient, RegistryAuth, RuntimeCallFailed, RuntimeUnavailable
from garboard.errors import InvalidValue


class Runtime(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """A runtime that answers every method with the bytes, or fails with the code, it was given."""

    def __init__(self, **answers: bytes | grpc.StatusCode) -> None:
        self._answers = answers

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        answer = self._answers.get(details.method.rsplit("/", 1)[-1])
        if answer is None:
            return None

        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            if isinstance(answer, bytes):
                return answer
            context.abort(answer, "the runtime's words")
            return b""

        return grpc.unary_unary_rpc_method_handler(handle)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "cri.sock")


def serve(path: str, runtime: Runtime) -> grpc.Server:
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((runtime,))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    return server


def test_missing_socket_is_a_machine_not_ready(path: str) -> None:
    with pytest.raises(RuntimeUnavailable) as caught:
        CriClient(path).version()
    assert caught.value.exit_code == 4
    assert caught.value.error_class == "socket-missing"
    assert path in caught.value.message


def test_socket_without_a_runtime_is_told_apart(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(path)
    with pytest.raises(RuntimeUnavailable) as caught:
        CriClient(f"unix://{path}").version()
    assert caught.value.error_class == "refused"


def test_address_that_is_no_socket_is_refused() -> None:
    with pytest.raises(InvalidValue):
        CriClient("tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("answer", "driver"),
    [
        pytest.param(b"\x0a\x00", CgroupDriver.SYSTEMD, id="systemd, which is 0 and so not on the wire"),
        pytest.param(b"\x0a\x02\x08\x01", CgroupDriver.CGROUPFS, id="cgroupfs"),
        pytest.param(b"\x0a\x02\x08\x09", None, id="a driver of the future"),
        pytest.param(b"", None, id="nothing about Linux"),
        pytest.param(grpc.StatusCode.UNIMPLEMENTED, None, id="too old"),
    ],
)
def test_cgroup_driver_is_read(path: str, answer: bytes | grpc.StatusCode, driver: CgroupDriver | None) -> None:
    server = serve(path, Runtime(RuntimeConfig=answer))
    with CriClient(path) as client:
        assert client.cgroup_driver() is driver
    server.stop(0).wait()


def test_absent_things_are_none_and_other_failures_are_errors(path: str) -> None:
    server = serve(path, Runtime(ContainerStatus=grpc.StatusCode.NOT_FOUND, ListImages=grpc.StatusCode.INTERNAL))
    with CriClient(path) as client:
        assert client.container_status("x") is None
        with pytest.raises(RuntimeCallFailed, match=r"ListImages.*INTERNAL.*the runtime's words"):
            client.list_images()
        with pytest.raises(RuntimeCallFailed) as caught:
            client.version()
        assert "CRI plugin" in (caught.value.hint or "")
    server.stop(0).wait()


def test_garbage_from_the_runtime_is_an_error_in_words(path: str) -> None:
    server = serve(path, Runtime(Version=b"\xff\xff"))
    with CriClient(path) as client, pytest.raises(RuntimeCallFailed, match="Version"):
        client.version()
    server.stop(0).wait()


def test_secrets_of_a_registry_are_not_shown() -> None:
    assert "hunter2" not in repr(RegistryAuth(username="u", password="hunter2", identity_token="hunter2"))
