"""Our server with the stock client library, and with the stock agent or ours: a counterpart of every test of the stock
suite.

The suite runs its server inside the test process, so it cannot be given ours; `test_stock_suite` gives it our agent.
"""

import asyncio
import contextlib
import hashlib
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from tests.support.tunnel.clients import silent_destination
from tests.support.tunnel.programs import Program, Programs, programs
from tools.harness.certificates import Certificates
from tools.harness.oracles import stock_client
from tools.harness.ports import free_ports

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SERVER = "konnectivity_network_proxy_server_"
LARGE = b"l" * (20 * 1024 * 1024)
COUNTERPARTS = {
    "TestBasicProxy_GRPC": "test_page_is_fetched[grpc]",
    "TestBasicProxy_HTTPCONN": "test_page_is_fetched[http-connect]",
    "TestEchoServer": "test_echo_comes_back_in_parts",
    "TestProxyHandleDialError_GRPC": "test_refused_dial_is_told[grpc]",
    "TestFailedDial_HTTPCONN": "test_refused_dial_is_told[http-connect]",
    "TestFailedDNSLookupProxy_HTTPCONN": "test_unknown_host_is_told",
    "TestProxyHandle_DoneContext_GRPC": "test_dial_that_is_over_before_it_begins_leaves_nothing",
    "TestProxyHandle_RequestDeadlineExceeded_GRPC": "test_dial_deadline_leaves_nothing",
    "TestProxyDial_RequestCancelled_GRPC": "test_dial_deadline_leaves_nothing",
    "TestProxyDial_RequestCancelled_Concurrent_GRPC": "test_fifty_dials_cancelled_at_random_leave_nothing",
    "TestProxyDial_AgentTimeout_GRPC": "test_silent_destination_is_given_up_by_the_agent",
    "TestProxyHandle_TunnelContextCancelled_GRPC": "test_cancelled_tunnel_is_closed",
    "TestProxy_LargeResponse": "test_large_answer_is_whole",
    "TestProxy_ConcurrencyGRPC": "test_many_requests_at_once_over_two_agents[grpc]",
    "TestProxy_ConcurrencyHTTP": "test_many_requests_at_once_over_two_agents[http-connect]",
    "TestConcurrentClientRequest": "test_many_requests_at_once_over_two_agents[grpc]",
    "TestAgent_MultipleConn": "test_second_stream_of_an_agent_does_not_disturb_the_first",
    "TestProxy_Agent_Disconnect_Persistent_Connection": "test_open_connection_ends_with_its_agent",
    "TestAgentRestartReconnect": "test_new_agent_takes_over",
    "TestServerRestartAgentReconnect": "test_agent_finds_a_restarted_server",
    "TestBasicHAProxyServer_GRPC": "test_agent_finds_every_server_behind_a_balancer",
    "TestProxyHandle_AfterDrain": "test_draining_agent_serves_when_it_is_the_only_one",
    "TestGRPCServerAndAgentReadiness": "test_server_and_agent_get_ready[grpc]",
    "TestHTTPConnServerAndAgentReadiness": "test_server_and_agent_get_ready[http-connect]",
    "TestAgentReadinessWithoutServer": "test_agent_without_a_server_is_not_ready",
    "TestCustomALPN": "test_more_alpn_protocols_are_taken",
}
MODES = pytest.mark.parametrize("mode", ["grpc", "http-connect"])


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = LARGE if self.path == "/large" else b"hello"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Pages(ThreadingHTTPServer):
    request_queue_size = 512  # by default a sixth client at once waits for its SYN to be sent again


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with Pages(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=_echo, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _echo(connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        while data := connection.recv(65536):
            connection.sendall(data)


@pytest.fixture(scope="module")
def client() -> Path:
    return stock_client().built()


class Stand:
    """Our server with stock agents, or with ours, asked by the stock client."""

    def __init__(self, started: Programs, client: Path, front: str, agent_is: str) -> None:
        self.started = started
        self.agent_is = agent_is
        self._client = client
        self.front = front
        self.server: Program | None = None
        self.tls: dict[str, Path] = {}

    def serve(self, mode: str = "grpc", agents: int = 1, extra: tuple[str, ...] = ()) -> list[Program]:
        self.server = self.started.server("ours", mode, self.front, extra=extra)
        made = [self.started.agent(self.agent_is, self.server) for _ in range(agents)]
        self.server.wait_for("/metrics", f'{SERVER}ready_backends{{proxy_strategy="default"}} {agents}\n')
        return made

    def ask(self, to: str, mode: str = "grpc", **options: object) -> list[str]:
        ran = subprocess.run(self._command(to, mode, options), capture_output=True, text=True, timeout=120, check=True)
        return ran.stdout.splitlines()

    def hold(self, to: str, mode: str = "grpc") -> "subprocess.Popen[str]":
        """A connection that is open until the other side ends it."""
        command = self._command(to, mode, {"do": "hold"})
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        return process

    def number(self, metric: str) -> float:
        assert self.server is not None
        found = re.search(rf"^{SERVER}{re.escape(metric)} (\S+)$", self.server.page("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0

    def assert_nothing_is_left(self) -> None:
        until = time.monotonic() + 60
        while any(self.number(name) for name in ("pending_backend_dials", "established_connections")):
            assert time.monotonic() < until, "connections are left"
            time.sleep(0.2)

    def _command(self, to: str, mode: str, options: dict[str, object]) -> list[str]:
        more = [f"-{name.replace('_', '-')}={value}" for name, value in {**self.tls, **options}.items()]
        return [str(self._client), f"-front={self.front}", f"-mode={mode}", f"-to={to}", *more]


@pytest.fixture(params=["stock", pytest.param("ours", marks=pytest.mark.verify)], ids=lambda whose: f"{whose}-agent")
def stand(
    binaries: Binaries,
    certificates: Certificates,
    tmp_path: Path,
    client: Path,
    front: str,
    request: pytest.FixtureRequest,
) -> Iterator[Stand]:
    with programs(binaries, certificates, tmp_path) as all_:
        yield Stand(all_, client, front, request.param)


@contextlib.contextmanager
def pouring(size: int) -> Iterator[str]:
    """An address that sends so many bytes to whoever has said something."""

    def pour(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(100)
            connection.sendall(bytes(size))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: pour(listener.accept()[0]), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def page(body: bytes) -> str:
    return f"200 {len(body)} {hashlib.sha256(body).hexdigest()}"


@MODES
def test_page_is_fetched(stand: Stand, pages: str, mode: str) -> None:
    stand.serve(mode)
    assert stand.ask(pages, mode) == [page(b"hello")]
    stand.assert_nothing_is_left()


@MODES
def test_large_answer_is_whole(stand: Stand, pages: str, mode: str) -> None:
    stand.serve(mode)
    assert stand.ask(pages, mode, path="/large") == [page(LARGE)]


def test_echo_comes_back_in_parts(stand: Stand, echo: str) -> None:
    stand.serve()
    assert stand.ask(echo, do="echo") == ["echoed"]


@MODES
def test_refused_dial_is_told(stand: Stand, mode: str) -> None:
    stand.serve(mode)
    error = " ".join(stand.ask(f"127.0.0.1:{free_ports(1)[0]}", mode, do="dial"))
    assert "connection refused" in error
    assert mode == "grpc" or "502 Bad Gateway" in error
    assert stand.number('dial_failure_count{reason="error_response"}') == 1
    stand.assert_nothing_is_left()


def test_unknown_host_is_told(stand: Stand) -> None:
    stand.serve("http-connect")
    error = " ".join(stand.ask(f"{'a' * 64}.invalid:80", "http-connect", do="dial"))
    assert "502 Bad Gateway" in error
    assert "no such host" in error


def test_dial_that_is_over_before_it_begins_leaves_nothing(stand: Stand, pages: str) -> None:
    stand.serve()
    assert "error" in stand.ask(pages, dial_in="-1s", do="dial")[0]
    stand.assert_nothing_is_left()


def test_dial_deadline_leaves_nothing(stand: Stand) -> None:
    stand.serve()
    with silent_destination() as address:
        [error] = stand.ask(address, dial_in="500ms", do="dial")
        assert "context deadline exceeded" in error or "timeout" in error
        stand.assert_nothing_is_left()
    assert stand.number('dial_failure_count{reason="frontend_close"}') == 1


def test_silent_destination_is_given_up_by_the_agent(stand: Stand) -> None:
    stand.serve()
    with silent_destination() as address:
        [error] = stand.ask(address, do="dial")
    assert "i/o timeout" in error
    assert stand.number('dial_failure_count{reason="error_response"}') == 1
    stand.assert_nothing_is_left()


def test_fifty_dials_cancelled_at_random_leave_nothing(stand: Stand, pages: str) -> None:
    stand.serve()
    outcomes = stand.ask(pages, dial_in="0", count=50)
    assert len(outcomes) == 50
    assert set(outcomes) - {page(b"hello")}, "none was cancelled"
    stand.assert_nothing_is_left()
    assert stand.ask(pages) == [page(b"hello")]


def test_cancelled_tunnel_is_closed(stand: Stand, echo: str) -> None:
    stand.serve()
    assert stand.ask(echo, do="hold", live_in="2s")[-1] == "closed"
    stand.assert_nothing_is_left()


@MODES
def test_many_requests_at_once_over_two_agents(stand: Stand, pages: str, mode: str) -> None:
    stand.serve(mode, agents=2)
    assert stand.ask(pages, mode, count=100) == [page(b"hello")] * 100
    stand.assert_nothing_is_left()


def test_second_stream_of_an_agent_does_not_disturb_the_first(stand: Stand, echo: str) -> None:
    stand.serve(extra=("--server-count=1",))
    assert stand.server is not None
    held = stand.hold(echo)
    stand.started.agent(stand.agent_is, stand.server, extra=("--agent-id=twin",)).wait_for("/readyz")
    stand.started.agent(stand.agent_is, stand.server, extra=("--agent-id=twin",)).wait_for("/readyz")
    assert stand.ask(echo, do="echo", count=10) == ["echoed"] * 10
    assert held.poll() is None
    held.kill()
    held.wait()
    stand.assert_nothing_is_left()


@MODES
def test_open_connection_ends_with_its_agent(stand: Stand, echo: str, mode: str) -> None:
    [agent] = stand.serve(mode)
    held = stand.hold(echo, mode)
    agent.kill()
    assert held.communicate(timeout=30)[0] == "closed\n"
    stand.assert_nothing_is_left()


@MODES
def test_new_agent_takes_over(stand: Stand, pages: str, mode: str) -> None:
    [agent] = stand.serve(mode)
    assert stand.ask(pages, mode) == [page(b"hello")]
    agent.kill()
    assert stand.server is not None
    stand.started.agent(stand.agent_is, stand.server).wait_for("/readyz")
    stand.server.wait_for("/readyz")
    assert stand.ask(pages, mode) == [page(b"hello")]


def test_agent_finds_a_restarted_server(stand: Stand, pages: str) -> None:
    stand.serve()
    assert stand.server is not None
    stand.server.kill()
    stand.server = stand.started.server("ours", "grpc", stand.front, port=stand.server.port)
    stand.server.wait_for("/readyz")
    assert stand.ask(pages) == [page(b"hello")]


def test_agent_finds_every_server_behind_a_balancer(stand: Stand, pages: str, tmp_path: Path) -> None:
    servers = [
        stand.started.server("ours", "grpc", str(tmp_path / f"{number}.sock"), extra=("--server-count=3",))
        for number in range(3)
    ]
    with balancer([server.port for server in servers]) as port:
        agent = stand.started.agent(stand.agent_is, Program(servers[0].process, 0, port))
        agent.wait_for("/metrics", "konnectivity_network_proxy_agent_open_server_connections 3\n")
        servers[0].kill()
        servers[0] = stand.started.server(
            "ours", "grpc", str(tmp_path / "new.sock"), port=servers[0].port, extra=("--server-count=3",)
        )
        for server in servers:
            server.wait_for("/readyz")
        stand.front = str(tmp_path / "new.sock")
        assert stand.ask(pages) == [page(b"hello")]


@contextlib.contextmanager
def balancer(ports: list[int]) -> Iterator[int]:
    """A port that leads to each of the others in turn."""
    turns = iter(range(1_000_000))

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection("127.0.0.1", ports[next(turns) % len(ports)])
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        writer.close()

    async def serve(ready: threading.Event, found: list[int]) -> None:
        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        found.append(server.sockets[0].getsockname()[1])
        ready.set()
        await server.serve_forever()

    ready, found = threading.Event(), list[int]()
    threading.Thread(target=lambda: asyncio.run(serve(ready, found)), daemon=True).start()
    assert ready.wait(10)
    yield found[0]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def test_draining_agent_serves_when_it_is_the_only_one(stand: Stand, pages: str) -> None:
    [agent] = stand.serve()
    agent.terminate()
    time.sleep(1)
    assert stand.ask(pages) == [page(b"hello")]


@MODES
def test_server_and_agent_get_ready(stand: Stand, mode: str) -> None:
    stand.server = stand.started.server("ours", mode, stand.front)
    assert stand.server.page("/readyz") == (500, "no connection to any proxy agent")
    agent = stand.started.agent(stand.agent_is, stand.server)
    agent.wait_for("/readyz")
    stand.server.wait_for("/readyz", "ok")
    agent.kill()
    until = time.monotonic() + 30
    while stand.server.page("/readyz")[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_agent_without_a_server_is_not_ready(stand: Stand) -> None:
    stand.server = stand.started.server("ours", "grpc", stand.front)
    agent = stand.started.agent(stand.agent_is, stand.server)
    agent.wait_for("/readyz")
    stand.server.kill()
    until = time.monotonic() + 30
    while agent.page("/readyz")[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_more_alpn_protocols_are_taken(stand: Stand, pages: str) -> None:
    stand.server = stand.started.server("ours", "grpc", stand.front)
    agent = stand.started.agent(stand.agent_is, stand.server, extra=("--alpn-proto=proxy", "--alpn-proto=other"))
    agent.wait_for("/readyz")
    stand.server.wait_for("/readyz")
    assert stand.ask(pages) == [page(b"hello")]


@pytest.fixture
def tcp_front(stand: Stand, certificates: Certificates) -> Stand:
    """The front end on a port of 127.0.0.1, for clients that show a certificate."""
    [port] = free_ports(1)
    stand.front, stand.tls = f"127.0.0.1:{port}", {"ca": certificates.ca, "cert": certificates.client,
                                                   "key": certificates.client_key}  # fmt: skip
    return stand


@pytest.mark.parametrize("stand", ["stock", "ours"], indirect=True)
@MODES
def test_stock_client_comes_in_through_tcp_with_its_certificate(
    tcp_front: Stand, pages: str, echo: str, mode: str
) -> None:
    stand, port = tcp_front, int(tcp_front.front.rpartition(":")[2])
    stand.server = stand.started.server_on_tcp("ours", mode, port)
    agent = stand.started.agent(stand.agent_is, stand.server)
    stand.server.wait_for("/readyz")
    assert stand.ask(pages, mode) == [page(b"hello")]
    assert stand.ask(pages, mode, path="/large") == [page(LARGE)]
    assert stand.ask(echo, mode, do="echo", count=50) == ["echoed"] * 50
    error = " ".join(stand.ask(f"127.0.0.1:{free_ports(1)[0]}", mode, do="dial"))
    assert "connection refused" in error
    held = stand.hold(echo, mode)
    agent.kill()
    assert held.communicate(timeout=30)[0] == "closed\n"
    stand.assert_nothing_is_left()


@MODES
def test_stock_client_without_a_certificate_does_not_come_in(tcp_front: Stand, pages: str, mode: str) -> None:
    stand, port = tcp_front, int(tcp_front.front.rpartition(":")[2])
    stand.server = stand.started.server_on_tcp("ours", mode, port)
    stand.started.agent(stand.agent_is, stand.server)
    stand.server.wait_for("/readyz")
    stand.tls = {"ca": stand.tls["ca"]}
    assert stand.ask(pages, mode, do="dial", dial_in="5s", live_in="5s")[0].startswith("error")
    assert stand.number('stream_packets_total{segment="to_agent",packet_type="DIAL_REQ"}') == 0


CONNECTED = "konnectivity_network_proxy_agent_open_server_connections 2\n"


@MODES
def test_stock_client_and_stock_agent_get_along_with_workers(stand: Stand, pages: str, echo: str, mode: str) -> None:
    [agent] = stand.serve(mode, extra=("--workers=2",))
    agent.wait_for("/metrics", CONNECTED)
    assert stand.ask(pages, mode) == [page(b"hello")]
    assert stand.ask(pages, mode, path="/large") == [page(LARGE)]
    assert stand.ask(echo, mode, do="echo", count=50) == ["echoed"] * 50
    error = " ".join(stand.ask(f"127.0.0.1:{free_ports(1)[0]}", mode, do="dial"))
    assert "connection refused" in error
    held = [stand.hold(echo, mode) for _ in range(6)]
    assert stand.number("established_connections") == 6
    agent.kill()
    assert [each.communicate(timeout=30)[0] for each in held] == ["closed\n"] * 6
    stand.assert_nothing_is_left()


@MODES
def test_stock_client_comes_in_through_tcp_to_workers(tcp_front: Stand, pages: str, echo: str, mode: str) -> None:
    stand, port = tcp_front, int(tcp_front.front.rpartition(":")[2])
    stand.server = stand.started.server_on_tcp("ours", mode, port, "--workers=2")
    stand.started.agent(stand.agent_is, stand.server).wait_for("/metrics", CONNECTED)
    assert stand.ask(pages, mode, path="/large") == [page(LARGE)]
    assert stand.ask(echo, mode, do="echo", count=50) == ["echoed"] * 50
    stand.assert_nothing_is_left()


@pytest.mark.verify
def test_stock_client_that_reads_slowly_for_a_while_gets_everything(stand: Stand) -> None:
    """For longer than it takes to give credit once: by what the server sees of it, it takes nothing for 20 seconds."""
    stand.serve("grpc")
    size = 150_000_000
    with pouring(size) as source:
        slowly = stand.ask(source, do="read", quick=20_000_000, rate=10_000, slow="20s", live_in="5m")
    assert slowly == [f"{size} bytes"]
    assert stand.number("stalled_connections_total") == 0


def test_every_test_of_the_suite_has_a_counterpart() -> None:
    assert len(COUNTERPARTS) == 26
    assert [name for name in COUNTERPARTS.values() if name.partition("[")[0] not in globals()] == []
