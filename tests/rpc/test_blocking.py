import errno
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from garboard.rpc import (
    BlockingClient,
    PeerUnreachable,
    RpcFailed,
    StatusCode,
    TcpTarget,
    UnixTarget,
    client_tls,
    parse_unix_target,
)
from garboard.rpc.endpoint import ServerEndpoint
from garboard.rpc.targets import server_tls
from tests.support.rpc.echo_service import ECHO, FAIL, PARTS, SLOW, grpcio_server
from tools.harness.certificates import Certificates


def test_unary_call_over_a_unix_socket(socket_path: str) -> None:
    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        assert client.unary(ECHO, b"hi") == b"echo:hi"
        assert client.unary(ECHO, b"again") == b"echo:again"


def test_large_request_and_answer_pass(socket_path: str) -> None:
    request = bytes(3_000_000)
    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        assert client.unary(ECHO, request) == b"echo:" + request


def test_failure_carries_the_servers_words(socket_path: str) -> None:
    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        with pytest.raises(RpcFailed) as caught:
            client.unary(FAIL, b"")
        assert (caught.value.code, caught.value.status.message) == (StatusCode.FAILED_PRECONDITION, "not now: é %")
        with pytest.raises(RpcFailed) as caught:
            client.unary("/Test/Unknown", b"")
        assert caught.value.code is StatusCode.UNIMPLEMENTED
        assert client.unary(ECHO, b"still here") == b"echo:still here"


def test_streamed_answer_comes_message_by_message(socket_path: str) -> None:
    """More than any window holds, so that what is taken is credited again."""
    found: list[bytes] = []
    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        client.server_stream(PARTS, b"500 32768 ok", found.append)
        assert [(each[0], len(each)) for each in found] == [(number % 256, 32768) for number in range(500)]
        assert client.unary(ECHO, b"next") == b"echo:next"


@pytest.mark.parametrize(
    ("then", "code"), [("fail", StatusCode.ABORTED), ("hang", StatusCode.DEADLINE_EXCEEDED)], ids=["fails", "hangs"]
)
def test_stream_that_does_not_end_well_is_a_failure(socket_path: str, then: str, code: StatusCode) -> None:
    found: list[bytes] = []
    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        with pytest.raises(RpcFailed) as caught:
            client.server_stream(PARTS, f"3 10 {then}".encode(), found.append, idle_s=0.3)
        assert (caught.value.code, len(found)) == (code, 3)
        assert client.unary(ECHO, b"next") == b"echo:next"


def test_what_the_taker_raises_ends_the_stream_and_is_its_own(socket_path: str) -> None:
    def full(_message: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        with pytest.raises(OSError, match="No space left"):
            client.server_stream(PARTS, b"3 10 ok", full)
        assert client.unary(ECHO, b"next") == b"echo:next"


def test_slow_server_meets_the_deadline(socket_path: str) -> None:
    with grpcio_server(f"unix:{socket_path}"), BlockingClient(UnixTarget(socket_path)) as client:
        with pytest.raises(RpcFailed) as caught:
            client.unary(SLOW, b"", timeout_s=0.3)
        assert caught.value.code is StatusCode.DEADLINE_EXCEEDED
        assert client.unary(ECHO, b"next") == b"echo:next"


def test_server_that_came_back_is_found_again(socket_path: str) -> None:
    client = BlockingClient(UnixTarget(socket_path))
    for _ in range(2):
        with grpcio_server(f"unix:{socket_path}"):
            assert client.unary(ECHO, b"x") == b"echo:x"
    client.close()


def test_tls_with_client_certificate(certificates: Certificates) -> None:
    credentials = grpc.ssl_server_credentials(
        [(certificates.server_key.read_bytes(), certificates.server.read_bytes())],
        certificates.ca.read_bytes(),
        require_client_auth=True,
    )
    context = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
    with (
        grpcio_server("127.0.0.1:0", credentials) as port,
        BlockingClient(TcpTarget("127.0.0.1", port, context)) as client,
    ):
        assert client.unary(ECHO, b"x" * 100_000) == b"echo:" + b"x" * 100_000
        assert client.unary(ECHO, b"again") == b"echo:again"


@contextmanager
def listener(path: str, answer: bytes = b"") -> Iterator[None]:
    """A socket that accepts, says `answer` and hangs up; with an empty answer it says nothing and holds the line."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            if answer:
                connection.recv(1000)
                connection.sendall(answer)
                connection.close()
            held.append(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)
        for connection in held:
            connection.close()


def test_missing_socket_is_named(socket_path: str) -> None:
    with pytest.raises(PeerUnreachable, match="does not exist") as caught:
        BlockingClient(UnixTarget(socket_path)).unary(ECHO, b"")
    assert caught.value.error_class == "socket-missing"
    assert caught.value.exit_code == 5
    assert caught.value.hint


def test_socket_without_a_listener_is_named(socket_path: str) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(socket_path)
    with pytest.raises(PeerUnreachable) as caught:
        BlockingClient(UnixTarget(socket_path)).unary(ECHO, b"")
    assert caught.value.error_class == "refused"


def test_silent_peer_meets_the_deadline(socket_path: str) -> None:
    with listener(socket_path), pytest.raises(RpcFailed) as caught:
        BlockingClient(UnixTarget(socket_path)).unary(ECHO, b"", timeout_s=0.2)
    assert caught.value.code is StatusCode.DEADLINE_EXCEEDED


def test_peer_that_speaks_http1_is_named(socket_path: str) -> None:
    with listener(socket_path, b"HTTP/1.1 400 Bad Request\r\n\r\n"), pytest.raises(RpcFailed, match="HTTP/1"):
        BlockingClient(UnixTarget(socket_path)).unary(ECHO, b"", timeout_s=5)


def test_peer_that_hangs_up_is_named(socket_path: str) -> None:
    greeting = ServerEndpoint().data_to_send()
    with listener(socket_path, greeting), pytest.raises(PeerUnreachable) as caught:
        BlockingClient(UnixTarget(socket_path)).unary(ECHO, b"", timeout_s=5)
    assert caught.value.error_class == "connection-lost"


def test_refused_port_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(PeerUnreachable) as caught:
            BlockingClient(TcpTarget("127.0.0.1", port)).unary(ECHO, b"")
    assert caught.value.error_class == "refused"


@pytest.mark.parametrize(
    ("alpn", "trusted", "error_class"),
    [(["h2"], False, "untrusted"), (["http/1.1"], True, "not-http2")],
    ids=["unknown authority", "no h2"],
)
def test_tls_refusals_are_named(certificates: Certificates, alpn: list[str], trusted: bool, error_class: str) -> None:
    served = server_tls(certificates.server, certificates.server_key)
    served.set_alpn_protocols(alpn)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    served.wrap_socket(connection, server_side=True).recv(1)
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        target = TcpTarget("127.0.0.1", server.getsockname()[1], client_tls(certificates.ca if trusted else None))
        with pytest.raises(PeerUnreachable) as caught:
            BlockingClient(target).unary(ECHO, b"", timeout_s=5)
        thread.join(5)
    assert caught.value.error_class == error_class


@pytest.mark.parametrize(
    ("reason", "error_class"),
    [("TLSV13_ALERT_CERTIFICATE_REQUIRED", "tls-failed"), ("PROTOCOL_IS_SHUTDOWN", "connection-lost")],
    ids=["it refuses us", "it died"],
)
def test_tls_peer_that_dies_is_not_said_to_have_refused_us(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, reason: str, error_class: str
) -> None:
    def receive(_socket: ssl.SSLSocket, _count: int) -> bytes:
        error = ssl.SSLError(1, f"[SSL] {reason}")
        error.reason = reason
        raise error

    served = server_tls(certificates.server, certificates.server_key)
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            connection, _ = server.accept()
            with served.wrap_socket(connection, server_side=True):
                is_over.wait(10)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        monkeypatch.setattr(ssl.SSLSocket, "recv", receive)
        target = TcpTarget("127.0.0.1", server.getsockname()[1], client_tls(certificates.ca))
        with pytest.raises(PeerUnreachable) as caught:
            BlockingClient(target).unary(ECHO, b"", timeout_s=5)
        is_over.set()
        thread.join(5)
    assert caught.value.error_class == error_class


@pytest.mark.parametrize("text", ["unix:///run/x.sock", "unix:/run/x.sock", "/run/x.sock"])
def test_socket_address_is_read_in_every_form(text: str) -> None:
    assert parse_unix_target(text) == UnixTarget(str(Path("/run/x.sock")))
