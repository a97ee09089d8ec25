"""What a thousand agents cost a server while nothing happens."""

import asyncio
import contextlib
import os
import resource
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from garboard.tunnel.agent.run import Agent
from garboard.tunnel.background import beside
from tests.support.tunnel.ends import agent_options, until
from tests.support.tunnel.programs import Program, programs
from tools.harness.certificates import Certificates

AGENTS = 1000
SECONDS = 35.0  # every agent asks once within that
MOST_OF_A_CORE = 0.05

pytestmark = [pytest.mark.verify, pytest.mark.alone, pytest.mark.timeout(600)]


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def processor_seconds(server: Program) -> float:
    """Of the supervisor and its workers."""
    pids = [server.process.pid, *(each["pid"] for each in server.status()["workers"])]
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def are_connected(agents: list[Agent]) -> bool:
    return all(len(each.pool.streams) == 2 for each in agents)


@contextlib.asynccontextmanager
async def a_thousand_agents(certificates: Certificates, port: int) -> AsyncIterator[list[Agent]]:
    """In this process, without their pages; twenty at a time."""
    usual = replace(agent_options(certificates, port), sync_interval_s=1.0, sync_interval_cap_s=10.0)
    agents = [Agent(replace(usual, agent_id=f"agent-{number}")) for number in range(AGENTS)]
    async with contextlib.AsyncExitStack() as stack:
        for start in range(0, AGENTS, 20):
            some = agents[start : start + 20]
            for each in some:
                await stack.enter_async_context(beside(each.pool.run(), each.pool.ask()))
            await until(partial(are_connected, some), 120)
        yield agents


@pytest.mark.usefixtures("many_descriptors")
def test_thousand_agents_cost_a_server_less_than_a_twentieth_of_a_core(
    certificates: Certificates, front: str, tmp_path: Path
) -> None:
    with programs(None, certificates, tmp_path) as started:
        server = started.server("ours", "grpc", front, extra=("--workers=2", "-v=0"))

        async def scenario() -> float:
            async with a_thousand_agents(certificates, server.port) as agents:
                await asyncio.sleep(5)
                before = await asyncio.to_thread(processor_seconds, server)
                packets = [each.counts.packets.of("from_agent", "SERVERS_REQ").value for each in agents]
                await asyncio.sleep(SECONDS)
                used = await asyncio.to_thread(processor_seconds, server) - before
                now = [each.counts.packets.of("from_agent", "SERVERS_REQ").value for each in agents]
                assert all(after > earlier for earlier, after in zip(packets, now, strict=True))
                assert are_connected(agents)
                return used / SECONDS

        share = asyncio.run(scenario())
        print(f"{AGENTS} agents at two workers: {100 * share:.1f} % of a core")
        assert share < MOST_OF_A_CORE
