"""The file of tenants is read again when it changes: who is new comes in, who changed is replaced, the others stay."""

import asyncio
from pathlib import Path

import pytest

from garboard.errors import BadDocument
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.report import status_text
from garboard.tunnel.server.run import ProxyServer
from garboard.tunnel.server.status import server_document
from garboard.tunnel.server.tenants import Mode
from garboard.tunnel.server.tenants_file import read_tenants
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.ends import until
from tests.support.tunnel.server.changing_tenants import Changing
from tests.support.tunnel.server.tenant_setup import TenantSetup, agents, handshake, is_let_in, joined


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


def names(server: ProxyServer) -> list[str]:
    return [each.tenant.name for each in server.clusters]


def test_tenant_that_is_added_comes_in_and_the_other_notices_nothing(setup: TenantSetup, changing: Changing) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", setup.a))
        async with changing.served(setup) as server, echo_server() as address:
            of_a = setup.agent(server, "a.test", setup.a, setup.a)
            async with agents(of_a):
                await until(lambda: joined(server) == [["agent-of-a.test"]])
                held = await HttpTunnel.open(setup.front("a"), address)
                _, said = await asyncio.to_thread(handshake, server.agent_port, setup.b, ("b.test",))
                assert not is_let_in(said)
                changing.say(changing.entry("a", setup.a), changing.entry("b", setup.b))
                await server.refresh_tenants()
                assert names(server) == ["a", "b"]
                async with agents(setup.agent(server, "b.test", setup.b, setup.b)):
                    await until(lambda: joined(server) == [["agent-of-a.test"], ["agent-of-b.test"]])
                    tunnel = await open_tunnel("http-connect", setup.front("b"), address)
                    await echo_checked(tunnel, 50_000)
                    await tunnel.close()
                await echo_checked(held, 50_000)  # it was open all the time
                await held.close()

    asyncio.run(scenario())


def test_tenant_that_is_removed_is_cut_off_and_the_other_notices_nothing(
    setup: TenantSetup, changing: Changing
) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", setup.a), changing.entry("b", setup.b))
        async with changing.served(setup) as server, echo_server() as address:
            of_a, of_b = (
                setup.agent(server, f"{name}.test", keys, keys) for name, keys in (("a", setup.a), ("b", setup.b))
            )
            async with agents(of_a), run_agent(of_b) as agent:
                await until(lambda: joined(server) == [["agent-of-a.test"], ["agent-of-b.test"]])
                kept = await HttpTunnel.open(setup.front("a"), address)
                cut = await HttpTunnel.open(setup.front("b"), address)
                changing.say(changing.entry("a", setup.a))
                await server.refresh_tenants()
                assert await cut.read() == b""
                await until(lambda: agent.counts.connection_failures.of("to_server").value >= 2)
                assert not agent.pool.streams
                assert joined(server) == [["agent-of-a.test"]]
                assert not Path(setup.front("b")).exists()
                await echo_checked(kept, 50_000)
                await kept.close()
                await cut.close()

    asyncio.run(scenario())


def test_tenant_that_is_changed_is_replaced_on_its_socket_and_its_agents_come_back(
    setup: TenantSetup, changing: Changing
) -> None:
    async def scenario() -> None:
        changing.say(changing.entry("a", setup.a), changing.entry("b", setup.b))
        async with changing.served(setup) as server, echo_server() as address:
            other = server.clusters[1]
            async with agents(setup.agent(server, "a.test", setup.a, setup.a)):
                await until(lambda: joined(server) == [["agent-of-a.test"], []])
                changing.say(changing.entry("a", setup.a, allowedDestinations=[address]), changing.entry("b", setup.b))
                await server.refresh_tenants()
                assert str(server.clusters[0].tenant.allowed) == address
                assert server.clusters[1] is other
                await until(lambda: joined(server) == [["agent-of-a.test"], []])
                tunnel = await HttpTunnel.open(setup.front("a"), address)
                await echo_checked(tunnel, 50_000)
                await tunnel.close()

    asyncio.run(scenario())


def test_authority_of_a_tenant_can_be_exchanged_and_the_old_one_is_out(setup: TenantSetup, changing: Changing) -> None:
    """A and B change places: whoever was let in under a name is refused under it now."""

    async def scenario() -> None:
        changing.say(changing.entry("a", setup.a), changing.entry("b", setup.b))
        async with changing.served(setup) as server:
            changing.say(
                changing.entry("a", setup.a, agentCA=str(setup.b.ca)),
                changing.entry("b", setup.b, agentCA=str(setup.a.ca)),
            )
            await server.refresh_tenants()
            for keys in (setup.a, setup.b):
                for name in ("a.test", "b.test"):
                    _, said = await asyncio.to_thread(handshake, server.agent_port, keys, (name,))
                    assert is_let_in(said) == ((keys, name) in ((setup.a, "b.test"), (setup.b, "a.test")))

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
    setup: TenantSetup, changing: Changing, bad: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        a = changing.entry("a", setup.a)
        changing.say(a)
        async with changing.served(setup) as server, echo_server() as address:
            before = server.clusters
            if bad == "same authority":
                copy = setup.folder / "copy.crt"
                copy.write_bytes(setup.a.ca.read_bytes())
                changing.say(a, changing.entry("b", setup.b, agentCA=str(copy)))
            elif bad == "no certificate":
                changing.say(a, changing.entry("b", setup.b, certificate="/nowhere.crt"))
            elif bad == "no socket":
                nowhere = changing.entry("b", setup.b, front={"udsName": "/nowhere/b.sock"})
                changing.say(changing.entry("a", setup.a, allowedDestinations=["10.0.0.1:1"]), nowhere)
            else:
                changing.write(bad)
            for _ in range(3):
                await server.refresh_tenants()
            assert server.clusters == before
            status = status_text(server_document("s1", server._clusters))
            assert f"{changing.file.path} is not in use as it is now: " in status
            assert reason in status
            async with agents(setup.agent(server, "a.test", setup.a, setup.a)):
                await until(lambda: joined(server) == [["agent-of-a.test"]])
                tunnel = await HttpTunnel.open(setup.front("a"), address)
                await echo_checked(tunnel, 1000)
                await tunnel.close()
            changing.say(a)
            await server.refresh_tenants()
            assert server.clusters == before
            assert "is not in use" not in status_text(server_document("s1", server._clusters))

    asyncio.run(scenario())
    [told] = [each.getMessage() for each in caplog.records if each.getMessage().startswith("tenants.not-reloaded")]
    assert reason in told


def test_file_that_names_what_is_not_there_yet_is_tried_again(
    setup: TenantSetup, changing: Changing, tmp_path: Path
) -> None:
    async def scenario() -> None:
        late = tmp_path / "late.crt"
        changing.say(changing.entry("a", setup.a))
        async with changing.served(setup) as server:
            changing.say(changing.entry("a", setup.a), changing.entry("b", setup.b, certificate=str(late)))
            await server.refresh_tenants()
            assert names(server) == ["a"]
            late.write_bytes(setup.b.server.read_bytes())
            await server.refresh_tenants()
            assert names(server) == ["a", "b"]

    asyncio.run(scenario())


def test_example_of_the_manual_is_read() -> None:
    manual = (Path(__file__).parents[3] / "docs/tunnel-tenancy.md").read_text()
    example = manual.partition("```yaml\n")[2].partition("```")[0]
    first, second = read_tenants(example.encode(), "the example")
    assert (first.name, second.name) == ("a", "b")
    assert first.keys.client_ca is not None
    assert second.token_rules is not None
    assert (first.frontend.mode, second.frontend.mode) == (Mode.GRPC, Mode.HTTP_CONNECT)


def test_file_that_cannot_be_read_leads_to_the_page_that_has_the_example() -> None:
    with pytest.raises(BadDocument) as refused:
        read_tenants(b"kind: Pod", "x")
    page = (refused.value.hint or "").split()[0]
    assert "kind: TunnelTenants" in (Path(__file__).parents[3] / page).read_text()
