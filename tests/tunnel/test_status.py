"""`tunnel status` and `tunnel trace`: what both ends tell of themselves on their admin ports."""

import asyncio
import json
import socket
from dataclasses import replace
from typing import Any

import pytest

from garboard.cli.main import run
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.destinations import AllowList, NodeTarget
from garboard.tunnel.report import status_text, trace_text
from garboard.tunnel.server.run import serve
from tests.support.tunnel.clients import echo_server
from tests.support.tunnel.ends import agent_options, fetch, server_options, until
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports


async def ask(port: int, path: str) -> Any:
    status, text = await fetch(port, path)
    assert status == 200, text
    return json.loads(text)


def verdicts(document: Any) -> list[tuple[str, bool]]:
    return [(each["hop"], each["verdict"] == "ok") for each in document["hops"]]


def test_both_ends_tell_what_they_have(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with echo_server() as address:
            [local] = free_ports(1)
            options = replace(server_options(certificates, front, "grpc"), allowed=AllowList.parse([address]))
            wanted = (NodeTarget.parse(f"{local}:{address}"), NodeTarget.parse(f"{local + 1}:10.9.9.9:1"))
            async with serve(options) as server:
                named = replace(
                    agent_options(certificates, server.agent_port), targets=wanted, bind_address="127.0.0.1",
                    agent_identifiers="host=n1&default-route=true",
                )  # fmt: skip
                async with run_agent(named) as agent:
                    await until(lambda: server.proxy.streams and agent.pool.streams)
                    await until(lambda: not agent.ports.failures().get(wanted[0]))
                    told = await ask(server.admin_port, "/status")
                    [tenant] = told["tenants"]
                    [seen] = tenant["agents"]
                    assert (seen["id"], seen["refusedTargets"]) == ("a1", ["10.9.9.9:1"])
                    assert seen["identifiers"] == {"hosts": ["n1"], "isDefaultRoute": True}
                    assert tenant["allowedDestinations"] == address
                    text = status_text(told)
                    assert "a1" in text
                    assert "refused: 10.9.9.9:1" in text
                    told = await ask(agent.admin_port, "/status")
                    assert [each["id"] for each in told["servers"]] == ["s1"]
                    assert "not an allowed destination" in status_text(told)

    asyncio.run(scenario())


def test_way_to_the_nodes_is_traced_hop_by_hop(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with echo_server() as address, serve(server_options(certificates, front, "grpc")) as server:
            told = await ask(server.admin_port, f"/trace?to={address}")
            assert verdicts(told) == [("agent", False)]
            async with run_agent(agent_options(certificates, server.agent_port)):
                await until(lambda: server.proxy.streams)
                told = await ask(server.admin_port, f"/trace?to={address}&agent=a1")
                assert verdicts(told) == [("agent", True), ("link", True), ("dial", True)]
                assert told["isOpen"]
                assert all(each["ms"] > 0 for each in told["hops"][1:])
                assert f"the way to {address} is open" in trace_text(told)
                with socket.socket() as closed:
                    closed.bind(("127.0.0.1", 0))
                    told = await ask(server.admin_port, f"/trace?to=127.0.0.1:{closed.getsockname()[1]}")
                assert not told["isOpen"]
                assert "connection refused" in told["hops"][-1]["verdict"]
                told = await ask(server.admin_port, f"/trace?to={address}&agent=nobody")
                assert told["hops"][0]["verdict"] == "it is not connected"
                assert (await fetch(server.admin_port, "/trace"))[0] == 400
                assert (await fetch(server.admin_port, "/trace?to=x:1&tenant=nobody"))[0] == 400
                await until(lambda: not server.proxy.frontends and server.proxy.open_connections == 0)

    asyncio.run(scenario())


def test_way_from_a_node_is_traced_hop_by_hop(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with echo_server() as address:
            [local] = free_ports(1)
            options = replace(server_options(certificates, front, "grpc"), allowed=AllowList.parse([address]))
            async with serve(options) as server:
                target = NodeTarget.parse(f"{local}:{address}")
                wanted = replace(
                    agent_options(certificates, server.agent_port), targets=(target,), bind_address="127.0.0.1"
                )
                async with run_agent(wanted) as agent:
                    await until(lambda: agent.pool.streams and not agent.ports.failures())
                    told = await ask(agent.admin_port, f"/trace?to={address}")
                    assert verdicts(told) == [("target", True), ("server", True), ("dial", True)]
                    told = await ask(agent.admin_port, "/trace?to=10.9.9.9:22")
                    assert verdicts(told) == [("target", False), ("server", True), ("dial", False)]
                    assert "denied" in told["hops"][-1]["verdict"]
                    assert (await fetch(agent.admin_port, "/trace?to=nonsense"))[0] == 400

    asyncio.run(scenario())


@pytest.mark.parametrize("command", [["status"], ["trace", "--to", "a:1"]])
def test_nobody_at_the_admin_port_is_told_in_words(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    [port] = free_ports(1)
    assert run(["tunnel", *command, "--admin", f"127.0.0.1:{port}"]) == 5
    assert "no tunnel server or agent answers" in capsys.readouterr().err
