"""Many clusters behind one port: what the file may say, and that nobody of one gets into another."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.errors import BadDocument, NotReady
from garboard.rpc import PeerUnreachable, TcpTarget
from garboard.rpc.aio import AioClient, AioClientCall
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.destinations import AllowList, Destination, NodeTarget
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.server.tenants import FrontendConfig, Mode, Tenant
from garboard.tunnel.server.tenants_file import read_tenants
from garboard.tunnel.server.tokens import TokenReview, TokenRules
from garboard.tunnel.tls import KeyPair, client_context
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import offer
from garboard.tunnel.wire.packets import decode_packet, encode_packet
from tests.support.tunnel.clients import Refused, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.ends import fetch, until
from tests.support.tunnel.server.tenant_setup import TenantSetup, agents, handshake, is_let_in, joined
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

FILE = """
apiVersion: tunnel.garboard.dev/v1alpha1
kind: TunnelTenants
tenants:
- name: a
  serverNames: [a.example.com, A2.example.com.]
  certificate: /pki/a.crt
  key: /pki/a.key
  agentCA: /pki/a-agents.crt
  allowedDestinations: ["10.0.0.1:6443", "api.a.internal:6443"]
  front: {udsName: /run/a.sock}
- name: b
  serverNames: [b.example.com]
  certificate: /pki/b.crt
  key: /pki/b.key
  tokens:
    agentNamespace: kube-system
    agentServiceAccount: konnectivity-agent
    authenticationAudience: system:konnectivity-server
    kubeconfig: /etc/b.conf
  front: {udsName: /run/b.sock, mode: http-connect}
"""


def test_tenants_are_read() -> None:
    a, b = read_tenants(FILE.encode(), "tenants.yaml")
    assert a.server_names == {"a.example.com", "a2.example.com"}
    assert a.keys == KeyPair(Path("/pki/a.crt"), Path("/pki/a.key"), Path("/pki/a-agents.crt"))
    assert str(a.allowed) == "10.0.0.1:6443,api.a.internal:6443"
    assert b.allowed.is_empty
    assert b.token_rules == TokenRules("kube-system", "konnectivity-agent", "system:konnectivity-server")
    assert b.frontend == FrontendConfig(mode=Mode.HTTP_CONNECT, uds_name="/run/b.sock")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("b.example.com", "A.example.com.", "two tenants have the server name 'a.example.com'"),
        ("name: b", "name: a", "two tenants have the name 'a'"),
        ("/run/b.sock", "/run/a.sock", "two tenants have the front-end socket"),
        ("  agentCA: /pki/a-agents.crt\n", "", "tenant 'a' needs agentCA or tokens"),
        ("agentNamespace: kube-system", "agentNamespace: ''", "a token needs a namespace"),
        ("serverNames: [b.example.com]", "serverNames: []", "tenant 'b' needs serverNames"),
        ("certificate: /pki/a.crt", "certificat: /pki/a.crt", "certificat"),
        ("kind: TunnelTenants", "kind: Tenants", "expected apiVersion"),
        ("10.0.0.1:6443", "10.0.0.1", "has no port"),
        ("mode: http-connect", "mode: socks", "socks"),
        (FILE, "tenants", "Expected `object`"),
        (FILE, "", "Expected `object`"),
    ],
)
def test_file_that_could_mix_tenants_up_is_refused(before: str, after: str, reason: str) -> None:
    with pytest.raises(BadDocument, match=re.escape("t.yaml")) as refused:
        read_tenants(FILE.replace(before, after).encode(), "t.yaml")
    assert reason in refused.value.message


def test_tenants_with_the_same_token_rules_are_refused() -> None:
    tokens = FILE[FILE.index("  tokens:") : FILE.index("  front: {udsName: /run/b")]
    with pytest.raises(BadDocument, match="two tenants have the tokens"):
        read_tenants(FILE.replace("  agentCA: /pki/a-agents.crt\n", tokens).encode(), "t.yaml")


def test_each_tenant_has_its_own_agents_front_end_and_metrics(setup: TenantSetup) -> None:
    async def scenario() -> None:
        async with (
            serve(setup.options()) as server,
            agents(setup.agent(server, "a.test", setup.a, setup.a), setup.agent(server, "b.test", setup.b, setup.b)),
            echo_server() as address,
        ):
            await until(lambda: joined(server) == [["agent-of-a.test"], ["agent-of-b.test"]])
            for name in ("a", "b"):
                tunnel = await open_tunnel("grpc", setup.front(name), address)
                await echo_checked(tunnel, 100_000)
                await tunnel.close()
            _, page = await fetch(server.health_port, "/metrics")
            for name in ("a", "b"):
                row = f'stream_packets_total{{tenant="{name}",segment="to_agent",packet_type="DIAL_REQ"}} 1'
                assert row in page
            assert page.count("# TYPE konnectivity_network_proxy_server_stream_packets_total") == 1

    asyncio.run(scenario())


def test_front_end_of_a_tenant_never_uses_the_agent_of_another(setup: TenantSetup) -> None:
    async def scenario() -> None:
        claims = "host=b.internal&ipv4=127.0.0.1&default-route=true"
        async with serve(setup.options()) as server, echo_server() as address:
            greedy = replace(setup.agent(server, "a.test", setup.a, setup.a), agent_identifiers=claims, agent_id="b")
            async with agents(greedy):
                await until(lambda: joined(server) == [["b"], []])
                with pytest.raises(Refused, match="No agent available"):
                    await open_tunnel("grpc", setup.front("b"), address)

    asyncio.run(scenario())


async def refused(server: ProxyServer, options: AgentOptions) -> None:
    """The agent tries again and again, and never gets in anywhere."""
    async with run_agent(options) as agent:
        failures = agent.counts.connection_failures.of("to_server")
        await until(lambda: failures.value >= 3)
        assert not agent.pool.streams
    assert joined(server) == [[], []]


def test_certificate_of_a_is_refused_by_b(setup: TenantSetup) -> None:
    async def scenario() -> None:
        async with serve(setup.options()) as server:
            await refused(server, setup.agent(server, "b.test", setup.a, setup.b))

    asyncio.run(scenario())


def test_agent_without_a_certificate_is_refused(setup: TenantSetup) -> None:
    async def scenario() -> None:
        async with serve(setup.options()) as server:
            agent = replace(setup.agent(server, "a.test", setup.a, setup.a), agent_cert=None, agent_key=None)
            await refused(server, agent)

    asyncio.run(scenario())


class Reviewer:
    """The API server of one tenant, which knows one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def review(self, token: str, audience: str) -> TokenReview:
        if token != self._token:
            return TokenReview(error="invalid bearer token")
        username = "system:serviceaccount:kube-system:agent"
        return TokenReview(is_authenticated=True, username=username, audiences=(audience,))


def test_token_of_a_is_refused_by_b(setup: TenantSetup) -> None:
    rules = TokenRules("kube-system", "agent", "tunnel")

    def tenant(name: str, keys: Certificates) -> Tenant:
        known = setup.tenant(name, keys, token_rules=rules, kubeconfig=Path(f"/{name}"))
        return replace(known, keys=KeyPair(keys.server, keys.server_key))

    async def scenario() -> None:
        options = replace(
            setup.options(tenant("a", setup.a), tenant("b", setup.b)),
            reviewer_for=lambda kubeconfig: Reviewer(f"token-of-{kubeconfig}"),
        )
        async with serve(options) as server:
            agent = replace(
                setup.agent(server, "b.test", setup.a, setup.b),
                agent_cert=None, agent_key=None, read_token=lambda: "token-of-/a",
            )  # fmt: skip
            await refused(server, agent)
            async with agents(replace(agent, read_token=lambda: "token-of-/b")):
                await until(lambda: joined(server) == [[], ["agent-of-b.test"]])

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_session_of_a_is_refused_by_b(setup: TenantSetup, version: ssl.TLSVersion) -> None:
    async def scenario() -> None:
        async with serve(setup.options()) as server:
            is_resumed, said = await asyncio.to_thread(
                handshake, server.agent_port, setup.a, ("a.test", "b.test"), version
            )
            assert not is_let_in(said)
            assert not is_resumed or version is ssl.TLSVersion.TLSv1_2  # which also resumes without a ticket

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("names", [("a.test", "b.test"), ("a.test", "a.test")])
def test_session_that_was_resumed_is_refused_even_where_openssl_takes_it(
    setup: TenantSetup, names: tuple[str, str], version: ssl.TLSVersion
) -> None:
    """With tickets switched on again, OpenSSL resumes under any name: what comes after the handshake must refuse."""

    async def scenario() -> None:
        async with serve(setup.options()) as server:
            listening = server._clusters.tls.context
            listening.num_tickets = 2
            listening.options &= ~ssl.OP_NO_TICKET
            is_resumed, said = await asyncio.to_thread(handshake, server.agent_port, setup.a, names, version)
            assert is_resumed
            assert not is_let_in(said)

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["a.test", "A.TEST", "b.test", "c.test", "test", "a.test.evil", "evil.a.test", None])
def test_name_that_is_asked_for_decides(setup: TenantSetup, name: str | None) -> None:
    async def scenario() -> None:
        async with serve(setup.options()) as server:
            _, said = await asyncio.to_thread(handshake, server.agent_port, setup.a, (name,))
            assert is_let_in(said) == (name in ("a.test", "A.TEST"))

    asyncio.run(scenario())


def test_tenants_that_share_an_authority_are_refused(setup: TenantSetup) -> None:
    async def scenario() -> None:
        async with serve(setup.options(setup.tenant("a", setup.a), setup.tenant("b", setup.a))):
            pass

    with pytest.raises(NotReady, match="trust the same authority"):
        asyncio.run(scenario())


def test_tenants_that_come_to_share_an_authority_are_told_of(
    setup: TenantSetup, caplog: pytest.LogCaptureFixture
) -> None:
    trusted = setup.folder / "b-agents.crt"
    trusted.write_bytes(setup.b.ca.read_bytes())
    b = replace(setup.tenant("b", setup.b), keys=KeyPair(setup.b.server, setup.b.server_key, trusted))

    async def scenario() -> None:
        async with serve(setup.options(setup.tenant("a", setup.a), b)) as server:
            server.refresh_certificates()
            assert "tenants.not-apart" not in caplog.text
            trusted.write_bytes(setup.b.ca.read_bytes() + setup.a.ca.read_bytes())
            server.refresh_certificates()
            assert "tenants.not-apart" in caplog.text

    asyncio.run(scenario())


def test_headers_do_not_lead_into_another_tenant(setup: TenantSetup) -> None:
    """The name in TLS decides; `:authority` and metadata are claims."""

    async def scenario() -> None:
        async with serve(setup.options()) as server:
            tls = client_context(setup.a.ca, setup.a.client, setup.a.client_key)
            target = TcpTarget("127.0.0.1", server.agent_port, tls, "a.test")
            async with await AioClient.connect(target) as client:
                metadata = (("agentid", "x"), ("host", "b.test"), ("x-tenant", "b"), ("agentidentifiers", "host=b"))
                call = await client.call("/AgentService/Connect", metadata=metadata)
                await until(lambda: bool(call.metadata))
                assert joined(server) == [["x"], []]
            other = TcpTarget("127.0.0.1", server.agent_port, client_context(setup.b.ca, None, None), "b.test")
            with pytest.raises(PeerUnreachable):
                await AioClient.connect(other)

    asyncio.run(scenario())


def everything_an_agent_could_say(ids: range) -> list[bytes]:
    """Packets that name connections and dials of others by every number that they may have."""
    return [
        encode_packet(packet)
        for number in ids
        for packet in (
            packets.Data(number, "", b"evil"),
            packets.CloseRequest(number),
            packets.CloseResponse("evil", number),
            packets.DialResponse("", number, number),
            packets.CloseDial(number),
        )
    ]


def test_no_packet_of_a_reaches_what_belongs_to_b(setup: TenantSetup) -> None:
    """B has a connection each way; A's agent says all it can, and asks for B's destination in every spelling."""

    async def scenario() -> None:
        async with echo_server() as of_b, echo_server() as of_a:
            [local] = free_ports(1)
            a = setup.tenant("a", setup.a, allowed=AllowList.parse([of_a]))
            b = setup.tenant("b", setup.b, allowed=AllowList.parse([of_b]))
            async with serve(setup.options(a, b)) as server:
                agent_of_b = replace(
                    setup.agent(server, "b.test", setup.b, setup.b),
                    targets=(NodeTarget.parse(f"{local}:{of_b}"),), bind_address="127.0.0.1",
                )  # fmt: skip
                async with agents(agent_of_b):
                    await until(lambda: joined(server) == [[], ["agent-of-b.test"]])
                    forward = await open_tunnel("grpc", setup.front("b"), of_b)
                    reader, writer = await asyncio.open_connection("127.0.0.1", local)
                    writer.write(b"before")
                    assert await reader.readexactly(6) == b"before"

                    tls = client_context(setup.a.ca, setup.a.client, setup.a.client_key)
                    target = TcpTarget("127.0.0.1", server.agent_port, tls, "a.test")
                    async with await AioClient.connect(target) as client:
                        claims = (("agentid", "agent-of-b.test"), *offer([Destination.parse(of_b)]))
                        call = await client.call("/AgentService/Connect", metadata=claims)
                        await until(lambda: bool(call.metadata))
                        assert ("garboard-refused", of_b) in call.metadata
                        for message in everything_an_agent_could_say(range(64)):
                            await call.send(message)
                        port = of_b.rpartition(":")[2]
                        for spelling in (of_b, f"localhost:{port}", f"[::ffff:127.0.0.1]:{port}", f"127.1:{port}"):
                            await call.send(encode_packet(packets.DialRequest("tcp", spelling, 7)))
                            answers = [decode_packet(message) async for message in _until_dial_answer(call)]
                            assert isinstance(answers[-1], packets.DialResponse)
                            assert "denied" in answers[-1].error
                        await call.send(encode_packet(packets.DialRequest("tcp", of_a, 8)))
                        *_, allowed = [decode_packet(message) async for message in _until_dial_answer(call)]
                        assert isinstance(allowed, packets.DialResponse)
                        assert allowed.error == ""

                    await echo_checked(forward, 10_000)
                    await forward.close()
                    writer.write(b"after")
                    assert await reader.readexactly(5) == b"after"
                    writer.close()

    asyncio.run(scenario())


async def _until_dial_answer(call: AioClientCall) -> AsyncIterator[bytes]:
    async with asyncio.timeout(10):
        while (message := await call.receive()) is not None:
            yield message
            if isinstance(decode_packet(message), packets.DialResponse):
                return
