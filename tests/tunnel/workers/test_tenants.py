"""The file of tenants of a server with workers: one supervisor reads it, and every worker serves it."""

import asyncio
import contextlib
import gc
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.server.tenants import Tenant
from garboard.tunnel.workers.supervisor import WorkerSupervisor
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.support.tunnel.ends import agent_options, fetch, until
from tests.support.tunnel.server.changing_tenants import Changing
from tests.support.tunnel.server.tenant_setup import TenantSetup, agents, joined
from tests.support.tunnel.workers import LoopWorkers, supervised
from tools.harness.certificates import Certificates


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


@contextlib.asynccontextmanager
async def served(setup: TenantSetup, changing: Changing) -> AsyncIterator[tuple[WorkerSupervisor, LoopWorkers]]:
    async with supervised(replace(changing.options(setup), workers=2)) as pair:
        yield pair


def agent_of(name: str, keys: Certificates, port: int) -> AgentOptions:
    return replace(agent_options(keys, port, agent_id=f"agent-of-{name}"), tls_server_name=f"{name}.test")


async def exchange(front: str, address: str) -> None:
    for seed in range(6):  # so many that both workers take some
        tunnel = await HttpTunnel.open(front, address)
        await echo_checked(tunnel, 1000, seed)
        await tunnel.close()


def names(workers: LoopWorkers) -> list[list[str]]:
    return [[each.tenant.name for each in server.clusters] for server in workers.servers]


def test_tenants_come_and_go_in_every_worker(setup: TenantSetup, changing: Changing) -> None:
    async def scenario() -> None:
        a, b = changing.entry("a", setup.a), changing.entry("b", setup.b)
        changing.say(a)
        async with served(setup, changing) as (supervisor, workers), echo_server() as address:
            port = supervisor.agent_port
            async with agents(agent_of("a", setup.a, port), agent_of("b", setup.b, port)):
                await until(lambda: all(joined(each) == [["agent-of-a"]] for each in workers.servers))
                held = await HttpTunnel.open(setup.front("a"), address)
                changing.say(a, b)
                await supervisor.refresh_tenants()
                assert names(workers) == [["a", "b"]] * 2
                both = [["agent-of-a"], ["agent-of-b"]]
                await until(lambda: all(joined(each) == both for each in workers.servers))
                await exchange(setup.front("b"), address)
                text = (await fetch(supervisor.health_port, "/metrics"))[1]
                assert 'ready_backends{tenant="b",proxy_strategy="default"} 1\n' in text
                changing.say(a)
                await supervisor.refresh_tenants()
                assert names(workers) == [["a"]] * 2
                assert not Path(setup.front("b")).exists()
                await echo_checked(held, 50_000)  # it was open all the time
                await held.close()
                await exchange(setup.front("a"), address)

    asyncio.run(scenario())


def test_file_is_served_in_whatever_encoding_it_is(setup: TenantSetup, changing: Changing) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", setup.a))
        async with served(setup, changing) as (supervisor, workers):
            changing.say(changing.entry("a", setup.a), changing.entry("\u00e4", setup.b, serverNames=["b.test"]))
            path = changing.file.path
            path.write_bytes(path.read_text().encode("utf-16"))
            await supervisor.refresh_tenants()
            assert names(workers) == [["a", "\u00e4"]] * 2

    asyncio.run(scenario())


def test_tenant_that_is_changed_keeps_its_socket(setup: TenantSetup, changing: Changing) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", setup.a))
        async with (
            served(setup, changing) as (supervisor, workers),
            echo_server() as address,
            agents(agent_of("a", setup.a, supervisor.agent_port)),
        ):
            await until(lambda: all(joined(each) == [["agent-of-a"]] for each in workers.servers))
            inode = Path(setup.front("a")).stat().st_ino
            changing.say(changing.entry("a", setup.a, allowedDestinations=[address]))
            await supervisor.refresh_tenants()
            assert [str(each.proxy.allowed) for each in workers.servers] == [address] * 2
            await until(lambda: all(joined(each) == [["agent-of-a"]] for each in workers.servers))
            await exchange(setup.front("a"), address)
            assert Path(setup.front("a")).stat().st_ino == inode

    asyncio.run(scenario())


def is_replaced(supervisor: WorkerSupervisor, times: int) -> bool:
    return supervisor.restarts == times and len(supervisor.running) == 2


def test_worker_that_is_replaced_while_tenants_change_has_the_new_ones(setup: TenantSetup, changing: Changing) -> None:
    async def scenario() -> None:
        a, b = changing.entry("a", setup.a), changing.entry("b", setup.b)
        changing.say(a)
        async with served(setup, changing) as (supervisor, workers), echo_server() as address:
            async with agents(agent_of("b", setup.b, supervisor.agent_port)):
                for number, entries in enumerate(([a, b], [b], [b, a], [b])):
                    changing.say(*entries)
                    workers.by_number[number % 2].kill()
                    await supervisor.refresh_tenants()
                    await until(partial(is_replaced, supervisor, number + 1))
                    assert names(workers) == [[str(each["name"]) for each in entries]] * 2
                    assert supervisor.problem == ""
                await until(lambda: all(joined(each) == [["agent-of-b"]] for each in workers.servers))
                await exchange(setup.front("b"), address)
            assert not Path(setup.front("a")).exists()

    asyncio.run(scenario())


def test_tenants_that_come_and_go_leave_no_descriptors(setup: TenantSetup, changing: Changing) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def scenario() -> None:
        a, b = changing.entry("a", setup.a), changing.entry("b", setup.b)
        changing.say(a)
        async with served(setup, changing) as (supervisor, workers):
            gc.collect()  # what other tests have left must not go while this one counts
            before = descriptors()
            for _ in range(5):
                changing.say(a, b)
                await supervisor.refresh_tenants()
                assert descriptors() > before
                changing.say(a)
                await supervisor.refresh_tenants()
            workers.by_number[0].kill()
            await until(lambda: supervisor.restarts == 1 and len(supervisor.running) == 2)
            await until(lambda: descriptors() <= before)

    asyncio.run(scenario())


@pytest.mark.parametrize("bad", ["tenants: [", "same authority", "no certificate", "no socket"])
def test_bad_file_keeps_the_old_one_in_every_worker(setup: TenantSetup, changing: Changing, bad: str) -> None:
    async def scenario() -> None:
        a = changing.entry("a", setup.a)
        changing.say(a)
        async with served(setup, changing) as (supervisor, workers):
            before = [server.clusters for server in workers.servers]
            changes: dict[str, dict[str, object]] = {
                "same authority": {"agentCA": str(setup.folder / "copy.crt")},
                "no certificate": {"certificate": "/nowhere.crt"},
                "no socket": {"front": {"udsName": "/nowhere/b.sock"}},
            }
            (setup.folder / "copy.crt").write_bytes(setup.a.ca.read_bytes())
            if bad in changes:
                changing.say(a, changing.entry("b", setup.b, **changes[bad]))
            else:
                changing.write(bad)
            await supervisor.refresh_tenants()
            assert [server.clusters for server in workers.servers] == before
            file = json.loads((await fetch(supervisor.admin_port, "/status"))[1])["tenantsFile"]
            assert (file["path"], bool(file["problem"])) == (str(changing.file.path), True)
            changing.say(a, changing.entry("b", setup.b))
            await supervisor.refresh_tenants()
            assert names(workers) == [["a", "b"]] * 2
            assert supervisor.problem == ""

    asyncio.run(scenario())


def test_worker_that_cannot_take_tenants_over_is_told_of_and_tried_again(
    setup: TenantSetup, changing: Changing, tmp_path: Path
) -> None:
    """What the supervisor could read, a worker could not: the certificate changed in between."""

    async def scenario() -> None:
        late = tmp_path / "late.crt"
        late.write_bytes(setup.b.server.read_bytes())
        changing.say(changing.entry("a", setup.a))
        async with served(setup, changing) as (supervisor, workers):
            check = supervisor._check_keys

            def check_and_change(tenants: tuple[Tenant, ...]) -> None:
                check(tenants)
                late.unlink()

            supervisor._check_keys = check_and_change  # type: ignore[method-assign]
            changing.say(changing.entry("a", setup.a), changing.entry("b", setup.b, certificate=str(late)))
            await supervisor.refresh_tenants()
            assert names(workers) == [["a"]] * 2
            assert "late.crt is missing" in supervisor.problem
            supervisor._check_keys = check  # type: ignore[method-assign]
            late.write_bytes(setup.b.server.read_bytes())
            await supervisor.refresh_tenants()
            assert names(workers) == [["a", "b"]] * 2
            assert supervisor.problem == ""

    asyncio.run(scenario())
