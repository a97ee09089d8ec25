"""Tokens and leases with a real API server, our ends and the stock ones mixed."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from tests.support.tunnel.control_plane import ControlPlane, control_plane
from tests.support.tunnel.programs import Program, Programs, programs
from tools.harness.certificates import Certificates

pytestmark = pytest.mark.real

AUDIENCE = "system:konnectivity-server"
PAIRS = [("ours", "stock"), ("stock", "ours"), ("ours", "ours")]


@pytest.fixture(scope="module")
def plane(
    binaries: Binaries, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    with control_plane(binaries, certificates, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture
def started(binaries: Binaries, certificates: Certificates, tmp_path: Path) -> Iterator[Programs]:
    with programs(binaries, certificates, tmp_path) as all_:
        yield all_


def token_server(started: Programs, whose: str, front: str, plane: ControlPlane) -> Program:
    return started.server(
        whose, "grpc", front, needs_certificate=False,
        extra=("--agent-namespace=kube-system", "--agent-service-account=konnectivity-agent",
               f"--authentication-audience={AUDIENCE}", f"--kubeconfig={plane.kubeconfig}"),
    )  # fmt: skip


@pytest.mark.parametrize(("server_is", "agent_is"), PAIRS)
def test_agent_is_known_by_its_token(
    started: Programs, plane: ControlPlane, front: str, tmp_path: Path, server_is: str, agent_is: str
) -> None:
    server = token_server(started, server_is, front, plane)
    token = tmp_path / "token"
    token.write_text(plane.token("kube-system", "konnectivity-agent", AUDIENCE))
    agent = started.agent(agent_is, server, shows_certificate=False, extra=(f"--service-account-token-path={token}",))
    agent.wait_for("/readyz")
    server.wait_for("/readyz")


@pytest.mark.parametrize(
    ("namespace", "account", "audience"),
    [
        ("default", "konnectivity-agent", AUDIENCE),
        ("kube-system", "other", AUDIENCE),
        ("kube-system", "konnectivity-agent", "https://test"),
    ],
    ids=["namespace", "account", "audience"],
)
@pytest.mark.parametrize("agent_is", ["stock", "ours"])
def test_token_of_somebody_else_is_refused(
    started: Programs, plane: ControlPlane, front: str, tmp_path: Path, agent_is: str,
    namespace: str, account: str, audience: str,
) -> None:  # fmt: skip
    server = token_server(started, "ours", front, plane)
    token = tmp_path / "token"
    token.write_text(plane.token(namespace, account, audience))
    agent = started.agent(agent_is, server, shows_certificate=False, extra=(f"--service-account-token-path={token}",))
    server.wait_for("/metrics", 'agent_denials_total{reason="token"}')
    assert agent.page("/readyz")[0] == 503
    assert server.page("/readyz")[0] == 500


@pytest.mark.parametrize(("server_is", "agent_is"), PAIRS)
def test_servers_are_counted_by_their_leases(
    started: Programs, plane: ControlPlane, front: str, server_is: str, agent_is: str
) -> None:
    names = [f"{server_is}-{agent_is}-{number}" for number in range(2)]
    leases = ("--enable-lease-controller=true", f"--kubeconfig={plane.kubeconfig}", "--lease-label=k8s-app=x,n=1")
    servers = [
        started.server(server_is, "grpc", f"{front}{number}", extra=(*leases, f"--server-id={name}"))
        for number, name in enumerate(names)
    ]
    _until(lambda: set(plane.leases()) >= {f"konnectivity-proxy-server-{name}" for name in names})
    agent = started.agent(
        agent_is, servers[0],
        extra=("--count-server-leases=true", f"--kubeconfig={plane.kubeconfig}", "--lease-label=k8s-app=x,n=1"),
    )  # fmt: skip
    agent.wait_for("/metrics", "konnectivity_network_proxy_agent_known_server_count 2\n", timeout_s=30)
    for server in servers:
        server.terminate()
        server.process.wait(20)
    _until(lambda: not plane.leases())


@pytest.mark.parametrize("agent_is", ["stock", "ours"])
def test_every_worker_has_a_lease_and_agents_count_them(
    started: Programs, plane: ControlPlane, front: str, agent_is: str
) -> None:
    label = f"--lease-label=k8s-app=workers-of-{agent_is}"
    leases = ("--enable-lease-controller=true", f"--kubeconfig={plane.kubeconfig}", label)
    server = started.server("ours", "grpc", front, extra=(*leases, f"--server-id=w-{agent_is}", "--workers=2"))
    names = {f"konnectivity-proxy-server-w-{agent_is}-{number}" for number in range(2)}
    _until(lambda: set(plane.leases()) >= names)
    agent = started.agent(
        agent_is, server, extra=("--count-server-leases=true", f"--kubeconfig={plane.kubeconfig}", label)
    )
    agent.wait_for("/metrics", "konnectivity_network_proxy_agent_known_server_count 2\n", timeout_s=30)
    agent.wait_for("/metrics", "konnectivity_network_proxy_agent_open_server_connections 2\n", timeout_s=30)
    server.terminate()
    server.process.wait(20)
    _until(lambda: not set(plane.leases()) & names)


def _until(is_true: object) -> None:
    until = time.monotonic() + 30
    assert callable(is_true)
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.1)
