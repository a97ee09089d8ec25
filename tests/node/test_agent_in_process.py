"""The agent of discovery: a real one in this process, with a real server beside it and an API server behind that."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from garboard.errors import ClusterUnreachable
from garboard.host import HostFolder
from garboard.host.node_machine import NodeMachine
from garboard.model.tunnel import JoinTunnel
from garboard.node.agent_in_process import agent_in_process, agent_options, api_server_names
from garboard.node.join import NodeConnector
from garboard.pki.files import write_files
from garboard.pki.kubeconfig import Kubeconfig
from garboard.pki.tunnel_credentials import read_agent_credentials
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.deploy.certificates import plan_certificates, tunnel_certificates
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.tls import KeyPair
from tests.support.kube.api_server import FakeApi
from tests.support.pki.fixtures import KEYS

LOCAL = "127.0.0.1"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tunnel")
    files = plan_certificates(tunnel_certificates([LOCAL], [""]), HostFolder(str(folder)), KEYS, datetime.now(UTC))
    write_files(HostFolder(str(folder)), files)
    return folder


@contextmanager
def server(pki: Path, socket: Path, *allowed: str) -> Iterator[ProxyServer]:
    """Serve agents in a thread of its own."""
    options = ServerOptions(
        server_id="s1", uds_name=str(socket), server_port=0,
        cluster_keys=KeyPair(pki / "server.crt", pki / "server.key", pki / "ca.crt"), agent_bind_address=LOCAL,
        agent_port=0, health_bind_address=LOCAL, health_port=0, admin_port=0, allowed=AllowList.parse(allowed),
    )  # fmt: skip
    ready: Future[ProxyServer] = Future()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def run() -> None:
        async with serve(options) as running:
            ready.set_result(running)
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        yield ready.result(10)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def options_of(pki: Path, port: int, destination: str) -> AgentOptions:
    tunnel = JoinTunnel(server=f"{LOCAL}:{port}", credentials_dir=str(pki), api_server=destination)
    return agent_options(tunnel, read_agent_credentials(HostFolder(str(pki)), "node-2", datetime.now(UTC)), "node-2")


def test_discovery_reaches_the_api_server_through_the_tunnel_by_its_own_name(
    pki: Path, tmp_path: Path, api: FakeApi, kubeconfig: Kubeconfig
) -> None:
    destination = f"{LOCAL}:{api.port}"
    path = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    api.objects[path] = {"metadata": {"name": "cluster-info"}}
    with (
        server(pki, tmp_path / "s", destination) as running,
        agent_in_process(options_of(pki, running.agent_port, destination), timeout_s=20) as entrance,
    ):
        assert entrance[0] == LOCAL
        connector = NodeConnector(NodeMachine(None), print, entrance)
        # Nobody listens there: the name is for the certificate alone.
        elsewhere = replace(kubeconfig, server="https://localhost:1").to_bytes()
        found = connector.as_user(elsewhere, "a test").find("ConfigMap", "kube-public", "cluster-info")
        assert found == api.objects[path]
        with pytest.raises(ClusterUnreachable, match="certificate"):
            connector.verified("https://api.example.com:6443", kubeconfig.ca).find("ConfigMap", "a", "b")
        assert IPv4Address(LOCAL) in api_server_names(entrance).ips


def test_destination_that_the_server_does_not_allow_is_named(pki: Path, tmp_path: Path) -> None:
    with (
        server(pki, tmp_path / "s", "192.0.2.1:6443") as running,
        pytest.raises(ClusterUnreachable) as caught,
        agent_in_process(options_of(pki, running.agent_port, "127.0.0.1:6443"), timeout_s=0.5),
    ):
        pass
    assert caught.value.error_class == "tunnel-closed"
    assert "127.0.0.1:6443: not an allowed destination of s1" in caught.value.message
    assert "--allowed-destination=127.0.0.1:6443" in (caught.value.hint or "")


def test_server_that_nobody_can_reach_is_named(pki: Path) -> None:
    with pytest.raises(ClusterUnreachable) as caught, agent_in_process(
        options_of(pki, 1, "127.0.0.1:6443"), timeout_s=0.3
    ):  # fmt: skip
        pass
    assert "the tunnel at 127.0.0.1:1 does not lead to the API server 127.0.0.1:6443" in caught.value.message
    assert "refused" in caught.value.message.lower()


def test_credentials_of_another_authority_are_told(pki: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    folder = HostFolder(str(other))
    write_files(folder, plan_certificates(tunnel_certificates([LOCAL], [""]), folder, KEYS, datetime.now(UTC)))
    with (
        server(pki, tmp_path / "s", "127.0.0.1:6443") as running,
        pytest.raises(ClusterUnreachable) as caught,
        agent_in_process(options_of(other, running.agent_port, "127.0.0.1:6443"), timeout_s=0.5),
    ):
        pass
    assert "certificate" in caught.value.message


def test_agent_that_ends_early_leaves_no_thread(pki: Path) -> None:
    before = threading.active_count()
    options = replace(options_of(pki, 1, "127.0.0.1:6443"), ca_cert=pki / "gone.crt")
    with pytest.raises(Exception, match=r"gone\.crt"), agent_in_process(options, timeout_s=5):
        pass
    assert threading.active_count() == before
