"""Our metrics beside the stock programs': names, types, labels and buckets of all they have, and of a live scrape."""

import asyncio
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.run import serve
from tests.support.tunnel.clients import Refused, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.ends import agent_options, fetch, server_options, until
from tests.support.tunnel.leases import LeasesInMemory, lease
from tests.support.tunnel.programs import Programs, programs
from tools.harness.certificates import Certificates
from tools.harness.oracles import stock_metrics
from tools.harness.ports import free_ports

pytestmark = pytest.mark.real

PREFIX = "konnectivity_network_proxy_"
Shape = tuple[str, frozenset[str], tuple[str, ...]]


def shapes_of(page: str) -> dict[str, Shape]:
    """Name: type, labels and buckets, of what has numbers on a page of metrics."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    found: dict[str, Shape] = {}
    for name, kind in kinds.items():
        rows = re.findall(rf"^{name}(?:_bucket)?(?:\{{(.*)\}})? \S+$", page, re.MULTILINE)
        if rows:
            pairs = [dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', row)) for row in rows]
            bounds = tuple(dict.fromkeys(each["le"] for each in pairs if "le" in each))
            found[name] = (kind, frozenset(key for each in pairs for key in each) - {"le"}, bounds)
    return {name: shape for name, shape in found.items() if name.startswith(PREFIX)}


@pytest.fixture
def started(binaries: Binaries, certificates: Certificates, tmp_path: Path) -> Iterator[Programs]:
    with programs(binaries, certificates, tmp_path) as all_:
        yield all_


def live_pages(started: Programs, server_is: str, agent_is: str, mode: str, front: str) -> tuple[str, str]:
    """What both ends show after a good connection, a refused one and a lost agent."""
    server = started.server(server_is, mode, front)
    agent = started.agent(agent_is, server)
    agent.wait_for("/readyz")
    server.wait_for("/readyz")

    async def scenario() -> None:
        async with echo_server() as address, asyncio.timeout(60):
            tunnel = await open_tunnel(mode, front, address)
            await echo_checked(tunnel, 200_000)
            with pytest.raises(Refused):
                await open_tunnel(mode, front, f"127.0.0.1:{free_ports(1)[0]}")
            await tunnel.close()

    asyncio.run(scenario())
    # The client has gone before the ends have agreed on that.
    server.wait_for("/metrics", "CLOSE_RSP")
    agent.wait_for("/metrics", "CLOSE_RSP")
    page = agent.page("/metrics")[1]
    agent.kill()
    server.wait_for("/metrics", f"{PREFIX}server_stream_errors_total{{")
    return server.page("/metrics")[1], page


@pytest.mark.parametrize("mode", ["grpc", "http-connect"])
def test_what_a_live_stock_end_shows_is_shown_by_ours(started: Programs, tmp_path: Path, mode: str) -> None:
    stock = live_pages(started, "stock", "stock", mode, str(tmp_path / "stock.sock"))
    ours = live_pages(started, "ours", "ours", mode, str(tmp_path / "ours.sock"))
    for theirs, shown in zip(map(shapes_of, stock), map(shapes_of, ours), strict=True):
        assert len(theirs) >= 6
        assert {name: shown.get(name) for name in theirs} == theirs
    for their_page, our_page in zip(stock, ours, strict=True):
        assert segments_of(their_page) <= segments_of(our_page)


def segments_of(page: str) -> set[tuple[str, str]]:
    """Direction and type of the packets that were counted."""
    return set(re.findall(r'stream_packets_total\{packet_type="(\w+)",segment="(\w+)"\}', page)) | {
        (kind, segment)
        for segment, kind in re.findall(r'stream_packets_total\{segment="(\w+)",packet_type="(\w+)"\}', page)
    }


def stock_shapes() -> dict[str, Shape]:
    """Every metric that the stock programs can show."""
    told = subprocess.run([stock_metrics().built()], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = (line.split(" ") for line in told)
    return {
        name: (kind, frozenset(labels.split(",")) - {""}, (*buckets.split(","), "+Inf") if buckets else ())
        for name, kind, labels, buckets in rows
    }


def test_every_metric_of_the_stock_programs_is_there_with_its_labels_and_buckets(
    certificates: Certificates, front: str
) -> None:
    async def scenario() -> dict[str, Shape]:
        store = LeasesInMemory(lease("dead", 1.0))
        side = replace(server_options(certificates, front, "grpc"), lease_store=store)
        async with serve(side) as server, echo_server() as address:
            node = replace(agent_options(certificates, server.agent_port), lease_store=store)
            async with run_agent(node) as agent:
                await until(lambda: server.proxy.streams and agent.pool.streams)
                tunnel = await open_tunnel("grpc", front, address)
                await echo_checked(tunnel, 1000)
                with pytest.raises(Refused):
                    await open_tunnel("grpc", front, f"127.0.0.1:{free_ports(1)[0]}")
                [link] = server.agents.links
                link.abort("cut by the test")
                await until(lambda: agent.counts.errors.counter.as_json())
                await until(lambda: server.proxy.errors.counter.as_json())
                await tunnel.close()
                pages = [(await fetch(port, "/metrics"))[1] for port in (server.health_port, agent.health_port)]
                return {**shapes_of(pages[0]), **shapes_of(pages[1])}

    stock, ours = stock_shapes(), asyncio.run(scenario())
    assert len(stock) == 27
    assert {name: ours.get(name) for name in stock} == stock
