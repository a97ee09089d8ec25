"""A supervisor and its workers, which are tasks here instead of processes."""

import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garboard.errors import NotReady
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.tls import KeyPair
from garboard.tunnel.workers import messages
from garboard.tunnel.workers import supervisor as supervising
from garboard.tunnel.workers.messages import Hello
from garboard.tunnel.workers.run import supervise
from tests.support.tunnel.clients import HttpTunnel, Refused, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.ends import agent_options, fetch, server_options, until
from tests.support.tunnel.leases import LeasesInMemory
from tests.support.tunnel.workers import QUICK, LoopProcess, LoopWorkers, supervised
from tools.harness.certificates import Certificates


def options_for(certificates: Certificates, front: str, workers: int = 2, **changes: Any) -> ServerOptions:
    options = server_options(certificates, front, "http-connect")
    return replace(options, **{"workers": workers, "stall_policy": options.stall_policy, **changes})


def test_every_worker_is_a_server_of_its_own_to_an_agent(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        store = LeasesInMemory()
        options = options_for(certificates, front, 3, server_count=2, lease_store=store)
        async with (
            supervised(options) as (supervisor, workers),
            run_agent(agent_options(certificates, supervisor.agent_port)) as agent,
        ):
            ids = [f"s1-{number}" for number in range(3)]
            await until(lambda: sorted(agent.pool.streams) == ids)
            assert agent.pool.server_count == 6
            await until(lambda: sorted(each.holder for each in store.leases.values()) == ids)
            await until(lambda: all(each.identity.present == tuple(ids) for each in workers.servers))
        assert store.leases == {}

    asyncio.run(scenario())


def test_connections_are_carried_by_workers_that_have_agents(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with supervised(options_for(certificates, front)) as (supervisor, _), echo_server() as address:
            with pytest.raises(Refused, match="no tunnels available"):  # nobody has an agent: the client is told so
                await open_tunnel("http-connect", front, address)
            assert (await fetch(supervisor.health_port, "/readyz"))[0] == 500
            async with run_agent(agent_options(certificates, supervisor.agent_port)) as agent:
                await until(lambda: supervisor.is_ready)
                for seed in range(10):  # with one worker or with both
                    tunnel = await open_tunnel("http-connect", front, address)
                    await echo_checked(tunnel, 1000, seed)
                    await tunnel.close()
                await until(lambda: len(agent.pool.streams) == 2)
                assert (await fetch(supervisor.health_port, "/readyz")) == (200, "ok")

    asyncio.run(scenario())


def test_worker_without_agents_leaves_clients_to_the_others(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with supervised(options_for(certificates, front)) as (supervisor, workers), echo_server() as address:
            node = agent_options(certificates, supervisor.agent_port)
            # It looks for the second one after a minute.
            async with run_agent(replace(node, sync_interval_s=600.0, sync_interval_cap_s=600.0)):
                await until(lambda: supervisor.is_ready)
                has, lacks = sorted(workers.servers, key=lambda each: -len(each.proxy.streams))
                for _ in range(20):
                    tunnel = await open_tunnel("http-connect", front, address)
                    await echo_checked(tunnel, 100)
                    await tunnel.close()
                assert has.proxy.packets.of("to_agent", "DIAL_REQ").value == 20
                assert lacks.proxy.protocol.counts.dial_failures == {}

    asyncio.run(scenario())


def test_worker_that_ends_is_replaced_and_its_agents_come_back(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with (
            supervised(options_for(certificates, front)) as (supervisor, workers),
            run_agent(agent_options(certificates, supervisor.agent_port)) as agent,
            echo_server() as address,
        ):
            await until(lambda: len(agent.pool.streams) == 2)
            for _ in range(5):
                tunnel = await open_tunnel("http-connect", front, address)
                await echo_checked(tunnel, 100)
                await tunnel.close()
            before = await dials(supervisor.health_port)
            for _ in range(3):
                workers.by_number[1].kill()
                await until(lambda: len(supervisor.running) < 2)
                await until(lambda: len(supervisor.running) == 2 and len(agent.pool.streams) == 2)
            assert supervisor.restarts == 3
            assert await dials(supervisor.health_port) == before == 5
            text = (await fetch(supervisor.health_port, "/metrics"))[1]
            assert "konnectivity_network_proxy_server_worker_restarts_total 3\n" in text
            assert 'konnectivity_network_proxy_server_ready_backends{proxy_strategy="default"} 1\n' in text

    asyncio.run(scenario())


async def dials(health_port: int) -> int:
    text = (await fetch(health_port, "/metrics"))[1]
    name = 'konnectivity_network_proxy_server_stream_packets_total{segment="to_agent",packet_type="DIAL_REQ"} '
    return int(next((line.removeprefix(name) for line in text.splitlines() if line.startswith(name)), "0"))


def test_worker_that_hangs_is_replaced(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with supervised(options_for(certificates, front)) as (supervisor, workers):
            workers.by_number[0].hang()
            await until(lambda: supervisor.children[0].starts == 2 and len(supervisor.running) == 2)
            assert supervisor.children[1].starts == 1

    asyncio.run(scenario())


def test_worker_that_keeps_ending_is_replaced_ever_more_slowly(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with supervised(options_for(certificates, front)) as (supervisor, workers):
            workers.is_broken = True
            workers.by_number[0].kill()
            await until(lambda: supervisor.children[0].starts >= 6)
            assert (await fetch(supervisor.health_port, "/healthz"))[0] == 200  # the other one serves
            workers.is_broken = False
            await until(lambda: len(supervisor.running) == 2)

    asyncio.run(scenario())
    waits = [line.rpartition("=")[2] for line in caplog.messages if line.startswith("worker.ended")]
    assert waits[:5] == ["0.0", "0.0", "0.1", "0.1", "0.1"]
    assert "cannot be started: Cannot allocate memory" in caplog.text


def test_server_whose_workers_cannot_begin_does_not_begin(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        options = options_for(certificates, front)
        with pytest.raises(NotReady, match="is missing"):
            async with supervised(replace(options, cluster_keys=KeyPair(Path("/none"), Path("/none")))):
                raise AssertionError("it began")
        async with supervised(options) as (supervisor, _):
            taken = replace(options, agent_port=supervisor.agent_port, uds_name=f"{front}2")
            with pytest.raises(NotReady, match="cannot listen on port"):
                async with supervised(taken):
                    raise AssertionError("it began")

    asyncio.run(scenario())


def test_failure_of_a_worker_to_begin_is_told_as_its_own(
    certificates: Certificates, front: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        options = options_for(certificates, front)
        workers_see = replace(options, cluster_keys=KeyPair(tmp_path / "gone.crt", tmp_path / "gone.key"))
        with pytest.raises(NotReady, match=r"gone\.crt is missing"):
            async with supervise(options, LoopWorkers(workers_see), QUICK):
                raise AssertionError("it began")

    asyncio.run(scenario())


def test_worker_of_another_version_is_not_used(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "PROTOCOL", messages.PROTOCOL + 1)
    assert Hello().protocol == messages.PROTOCOL

    async def scenario() -> None:
        with pytest.raises(NotReady, match="another version"):
            async with supervised(options_for(certificates, front)):
                raise AssertionError("it began")

    asyncio.run(scenario())


def test_status_and_trace_are_those_of_all_workers(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with (
            supervised(options_for(certificates, front)) as (supervisor, _),
            run_agent(agent_options(certificates, supervisor.agent_port)) as agent,
            echo_server() as address,
        ):
            await until(lambda: len(agent.pool.streams) == 2)
            tunnels = [await HttpTunnel.open(front, address) for _ in range(4)]
            status = json.loads((await fetch(supervisor.admin_port, "/status"))[1])
            [cluster] = status["tenants"]
            assert [each["id"] for each in status["workers"]] == ["s1-0", "s1-1"]
            assert [(each["id"], each["connections"], each["streams"]) for each in cluster["agents"]] == [("a1", 4, 2)]
            assert cluster["connections"]["toNodes"] == 4
            for query, is_open in (
                (f"to={address}", True),
                (f"to={address}&agent=a1", True),
                ("to=x:1&agent=b", False),
            ):
                code, text = await fetch(supervisor.admin_port, f"/trace?{query}")
                assert (code, json.loads(text)["isOpen"]) == (200, is_open)
            assert (await fetch(supervisor.admin_port, "/trace"))[0] == 400
            for tunnel in tunnels:
                await tunnel.close()

    asyncio.run(scenario())


def test_stop_lets_what_is_open_finish_in_every_worker(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with echo_server() as address:
            options = options_for(certificates, front, graceful_shutdown_s=30.0)
            async with (
                supervised(options) as (supervisor, workers),
                run_agent(agent_options(certificates, supervisor.agent_port)) as agent,
            ):
                await until(lambda: len(agent.pool.streams) == 2)
                tunnels = [await HttpTunnel.open(front, address) for _ in range(6)]
                servers = workers.servers
                stopping = asyncio.create_task(supervisor.stop())
                await until(lambda: all(each.proxy.is_draining for each in servers))
                assert (await fetch(supervisor.health_port, "/readyz"))[1] == "the proxy server is stopping"
                with pytest.raises(ConnectionRefusedError):
                    await HttpTunnel.open(front, address)
                for tunnel in tunnels:
                    await echo_checked(tunnel, 10_000)
                    await tunnel.close()
                await asyncio.wait_for(stopping, 10)
            assert [each.cut_connections for each in supervisor.children] == [0, 0]
            assert supervisor.restarts == 0

    asyncio.run(scenario())


def test_quotas_of_the_server_are_divided_among_its_workers(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        options = options_for(certificates, front, 4)
        async with supervised(options) as (_, workers):
            for server in workers.servers:
                quota, reverse = server.proxy.protocol._quota, server.proxy.reverse.quota
                assert (quota.open_per_peer, quota.pending_per_peer, quota.open, quota.pending) == (
                    2500,
                    250,
                    10_000,
                    1000,
                )
                assert (reverse.open_per_stream, reverse.open, reverse.pending) == (500, 2500, 250)
                assert server._options.stall_policy.most_bytes == options.stall_policy.most_bytes // 4

    asyncio.run(scenario())


def test_worker_that_ends_while_others_still_begin_is_replaced(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        options = options_for(certificates, front, 2)
        workers = LoopWorkers(options)

        async def killed_at_once(number: int, control: socket.socket) -> LoopProcess:
            if number == 1 and 1 not in workers.by_number:  # it begins when the other has begun and ended
                await until(lambda: workers.by_number[0].worker._server is not None)
                await until(lambda: workers.by_number[0].server.agent_port)
                for _ in range(50):  # until the supervisor, in the same loop, has heard of it
                    await asyncio.sleep(0)
                workers.by_number[0].kill()
            return await workers(number, control)

        async with supervise(options, killed_at_once, QUICK) as supervisor:
            await until(lambda: [each.starts for each in supervisor.children] == [2, 1])
            await until(lambda: len(supervisor.running) == 2)

    asyncio.run(scenario())


def test_supervisor_without_descriptors_goes_on_with_the_workers_that_it_has(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with supervised(options_for(certificates, front)) as (supervisor, workers):

            def no_pair() -> tuple[socket.socket, socket.socket]:
                raise OSError(24, "Too many open files")

            with monkeypatch.context() as patched:
                patched.setattr(supervising, "control_pair", no_pair)
                workers.by_number[0].kill()
                await until(lambda: supervisor.children[0].starts >= 3)
                assert (await fetch(supervisor.health_port, "/healthz"))[0] == 200
            await until(lambda: len(supervisor.running) == 2)

    asyncio.run(scenario())
    assert "cannot be started: Too many open files" in caplog.text
