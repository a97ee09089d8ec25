"""The file of tenants is read again when it changes: who is new comes in, who changed is replaced, the others stay."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.documents import write_json
from garboard.host import Machine
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.report import status_text
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.server.status import server_document
from garboard.tunnel.server.tenants_file import TenantsFile
from tests.rpc.certificates import Certificates
from tests.tunnel.clients import HttpTunnel, echo_checked, echo_server, open_tunnel
from tests.tunnel.ends import until
from tests.tunnel.server.worlds import World, agents, is_let_in, joined, shake_hands


class Changing:
    """A file of tenants that the test rewrites."""

    def __init__(self, folder: Path) -> None:
        self.file = TenantsFile(folder / "tenants.yaml", Machine().read_file)
        self._folder = folder
        self._version = 0

    def entry(self, name: str, keys: Certificates, **changes: object) -> dict[str, object]:
        return {
            "name": name, "serverNames": [f"{name}.test"], "certificate": str(keys.server), "key": str(keys.server_key),
            "agentCA": str(keys.ca), "front": {"udsName": str(self._folder / f"{name}.sock"), "mode": "http-connect"},
            **changes,
        }  # fmt: skip

    def say(self, *entries: dict[str, object]) -> None:
        document = {"apiVersion": "tunnel.garboard.dev/v1alpha1", "kind": "TunnelTenants", "tenants": list(entries)}
        self.write(write_json(document))  # type: ignore[arg-type]

    def write(self, text: str) -> None:
        """As a tool does: a new file takes the place of the old one."""
        self._version += 1
        fresh = self.file.path.with_suffix(f".{self._version}")
        fresh.write_text(text)
        fresh.replace(self.file.path)

    @contextlib.asynccontextmanager
    async def served(self, world: World) -> AsyncIterator[ProxyServer]:
        options = replace(world.options(), tenants=self.file.load(), tenants_file=self.file)
        async with serve(options) as server:
            yield server


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


def names(server: ProxyServer) -> list[str]:
    return [each.tenant.name for each in server.clusters]


def test_tenant_that_is_added_comes_in_and_the_other_notices_nothing(world: World, changing: Changing) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", world.a))
        async with changing.served(world) as server, echo_server() as address:
            of_a = world.agent(server, "a.test", world.a, world.a)
            async with agents(of_a):
                await until(lambda: joined(server) == [["agent-of-a.test"]])
                held = await HttpTunnel.open(world.front("a"), address)
                _, said = await asyncio.to_thread(shake_hands, server.agent_port, world.b, ("b.test",))
                assert not is_let_in(said)
                changing.say(changing.entry("a", world.a), changing.entry("b", world.b))
                await server.refresh_tenants()
                assert names(server) == ["a", "b"]
                async with agents(world.agent(server, "b.test", world.b, world.b)):
                    await until(lambda: joined(server) == [["agent-of-a.test"], ["agent-of-b.test"]])
                    tunnel = await open_tunnel("http-connect", world.front("b"), address)
                    await echo_checked(tunnel, 50_000)
                    await tunnel.close()
                await echo_checked(held, 50_000)  # it was open all the time
                await held.close()

    asyncio.run(scenario())


def test_tenant_that_is_removed_is_cut_off_and_the_other_notices_nothing(world: World, changing: Changing) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", world.a), changing.entry("b", world.b))
        async with changing.served(world) as server, echo_server() as address:
            of_a, of_b = (
                world.agent(server, f"{name}.test", keys, keys) for name, keys in (("a", world.a), ("b", world.b))
            )
            async with agents(of_a), run_agent(of_b) as agent:
                await until(lambda: joined(server) == [["agent-of-a.test"], ["agent-of-b.test"]])
                kept = await HttpTunnel.open(world.front("a"), address)
                cut = await HttpTunnel.open(world.front("b"), address)
                changing.say(changing.entry("a", world.a))
                await server.refresh_tenants()
                assert await cut.read() == b""
                await until(lambda: agent.counts.connection_failures.of("to_server").value >= 2)
                assert not agent.pool.streams
                assert joined(server) == [["agent-of-a.test"]]
                assert not Path(world.front("b")).exists()
                await echo_checked(kept, 50_000)
                await kept.close()
                await cut.close()

    asyncio.run(scenario())


def test_tenant_that_is_changed_is_replaced_on_its_socket_and_its_agents_come_back(
    world: World, changing: Changing
) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", world.a), changing.entry("b", world.b))
        async with changing.served(world) as server, echo_server() as address:
            other = server.clusters[1]
            async with agents(world.agent(server, "a.test", world.a, world.a)):
                await until(lambda: joined(server) == [["agent-of-a.test"], []])
                changing.say(changing.entry("a", world.a, allowedDestinations=[address]), changing.entry("b", world.b))
                await server.refresh_tenants()
                assert str(server.clusters[0].tenant.allowed) == address
                assert server.clusters[1] is other
                await until(lambda: joined(server) == [["agent-of-a.test"], []])
                tunnel = await HttpTunnel.open(world.front("a"), address)
                await echo_checked(tunnel, 50_000)
                await tunnel.close()

    asyncio.run(scenario())


def test_authority_of_a_tenant_can_be_exchanged_and_the_old_one_is_out(world: World, changing: Changing) -> None:
    """A and B change places: whoever was let in under a name is refused under it now."""

    async def scenario() -> None:
        changing.say(changing.entry("a", world.a), changing.entry("b", world.b))
        async with changing.served(world) as server:
            changing.say(
                changing.entry("a", world.a, agentCA=str(world.b.ca)),
                changing.entry("b", world.b, agentCA=str(world.a.ca)),
            )
            await server.refresh_tenants()
            for keys in (world.a, world.b):
                for name in ("a.test", "b.test"):
                    _, said = await asyncio.to_thread(shake_hands, server.agent_port, keys, (name,))
                    assert is_let_in(said) == ((keys, name) in ((world.a, "b.test"), (world.b, "a.test")))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("tenants: [", "tenants.yaml"),
        ("{}", "Object missing required field"),
        ("same authority", "trust the same authority"),
        ("no certificate", "is missing"),
        ("no socket", "cannot listen"),
    ],
)
def test_bad_file_keeps_the_old_one_and_is_told(
    world: World, changing: Changing, bad: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        a = changing.entry("a", world.a)
        changing.say(a)
        async with changing.served(world) as server, echo_server() as address:
            before = server.clusters
            if bad == "same authority":
                copy = world.folder / "copy.crt"
                copy.write_bytes(world.a.ca.read_bytes())
                changing.say(a, changing.entry("b", world.b, agentCA=str(copy)))
            elif bad == "no certificate":
                changing.say(a, changing.entry("b", world.b, certificate="/nowhere.crt"))
            elif bad == "no socket":
                nowhere = changing.entry("b", world.b, front={"udsName": "/nowhere/b.sock"})
                changing.say(changing.entry("a", world.a, allowedDestinations=["10.0.0.1:1"]), nowhere)
            else:
                changing.write(bad)
            for _ in range(3):
                await server.refresh_tenants()
            assert server.clusters == before
            status = status_text(server_document("s1", server._clusters))
            assert f"{changing.file.path} is not in use as it is now: " in status
            assert reason in status
            async with agents(world.agent(server, "a.test", world.a, world.a)):
                await until(lambda: joined(server) == [["agent-of-a.test"]])
                tunnel = await HttpTunnel.open(world.front("a"), address)
                await echo_checked(tunnel, 1000)
                await tunnel.close()
            changing.say(a)
            await server.refresh_tenants()
            assert server.clusters == before
            assert "is not in use" not in status_text(server_document("s1", server._clusters))

    asyncio.run(scenario())
    [told] = [each.getMessage() for each in caplog.records if each.getMessage().startswith("tenants.not-reloaded")]
    assert reason in told


def test_file_that_names_what_is_not_there_yet_is_tried_again(world: World, changing: Changing, tmp_path: Path) -> None:
    async def scenario() -> None:
        late = tmp_path / "late.crt"
        changing.say(changing.entry("a", world.a))
        async with changing.served(world) as server:
            changing.say(changing.entry("a", world.a), changing.entry("b", world.b, certificate=str(late)))
            await server.refresh_tenants()
            assert names(server) == ["a"]
            late.write_bytes(world.b.server.read_bytes())
            await server.refresh_tenants()
            assert names(server) == ["a", "b"]

    asyncio.run(scenario())
