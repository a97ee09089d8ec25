"""Agents that show tokens: what is asked, what the answer means, and who gets in."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garboard.errors import ClusterUnreachable
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.server.options import KeyPair, ServerOptions
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.server.token_gate import AT_ONCE, Pace, TokenGate
from garboard.tunnel.server.tokens import AgentRefused, TokenReview, TokenRules, bearer_token, check_review
from tests.rpc.certificates import Certificates
from tests.tunnel.clients import echo_checked, echo_server, open_tunnel
from tests.tunnel.ends import agent_options, fetch, server_options, until

RULES = TokenRules("kube-system", "konnectivity-agent", "system:konnectivity-server")
GOOD = TokenReview(is_authenticated=True, username=RULES.username, audiences=(RULES.audience,))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ((), "not 0"),
        ((("authorization", "Bearer a"), ("authorization", "Bearer a")), "not 2"),
        ((("authorization", "a"),), "not `Bearer`"),
        ((("authorization", "bearer a"),), "not `Bearer`"),
        ((("authorization", "Bearer "),), "not `Bearer`"),
        ((("authorization", "Bearer a b"),), "not `Bearer`"),
        ((("authorization", b"Bearer a"),), "not `Bearer`"),
        ((("authorization", "Bearer " + "a" * 20_000),), "not `Bearer`"),
    ],
    ids=["none", "two", "no prefix", "small letter", "empty", "space", "binary", "huge"],
)
def test_call_without_one_token_is_refused(metadata: tuple[tuple[str, str | bytes], ...], reason: str) -> None:
    with pytest.raises(AgentRefused, match=reason):
        bearer_token(metadata)


def test_token_is_taken_out_of_its_header() -> None:
    assert bearer_token((("agentid", "a"), ("authorization", "Bearer ey.J_-"))) == "ey.J_-"


@pytest.mark.parametrize(
    ("review", "reason"),
    [
        (replace(GOOD, error="expired"), "expired"),
        (replace(GOOD, is_authenticated=False), "not valid"),
        (replace(GOOD, username="system:serviceaccount:default:konnectivity-agent"), "is of system:serviceaccount:def"),
        (
            replace(GOOD, username="system:serviceaccount:kube-system:other"),
            "is of system:.*:other",
        ),
        (replace(GOOD, audiences=("https://kubernetes.default.svc",)), "not made for"),
        (replace(GOOD, audiences=()), "not made for"),
        (TokenReview(), "not valid"),
    ],
    ids=["error", "not authenticated", "namespace", "account", "audience", "no audience", "empty answer"],
)
def test_token_that_is_not_the_agents_is_refused(review: TokenReview, reason: str) -> None:
    with pytest.raises(AgentRefused, match=reason):
        check_review(review, RULES)


def test_good_token_passes() -> None:
    check_review(GOOD, RULES)


def test_pace_lets_a_burst_go_and_then_spreads() -> None:
    now = 100.0
    pace = Pace(10, 3, clock=lambda: now)
    assert [round(pace.take_turn(), 6) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]
    now = 110.0
    assert [round(pace.take_turn(), 6) for _ in range(4)] == [0, 0, 0, 0.1]


class Reviewer:
    """Knows one good token."""

    def __init__(self, good: str = "good") -> None:
        self.good = good
        self.asked: list[tuple[str, str]] = []
        self.most_at_once = 0
        self.gate = threading.Event()
        self.gate.set()
        self._at_once = 0
        self._lock = threading.Lock()

    def review(self, token: str, audience: str) -> TokenReview:
        with self._lock:
            self.asked.append((token, audience))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self.gate.wait(10)
        with self._lock:
            self._at_once -= 1
        if token == "unreachable":
            raise ClusterUnreachable("the API server refused the connection")
        return GOOD if token == self.good else TokenReview(error="invalid bearer token")


def test_reviews_are_bounded() -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        reviewer.gate.clear()
        gate = TokenGate(RULES, reviewer, Pace(0, 0))
        checks = [asyncio.create_task(gate.check((("authorization", "Bearer good"),))) for _ in range(3 * AT_ONCE)]
        await asyncio.sleep(0.1)
        reviewer.gate.set()
        await asyncio.gather(*checks)
        assert reviewer.most_at_once <= AT_ONCE
        assert len(reviewer.asked) == 3 * AT_ONCE

    asyncio.run(scenario())


@contextlib.asynccontextmanager
async def token_server(certificates: Certificates, front: str, reviewer: Reviewer) -> AsyncIterator[ProxyServer]:
    options: ServerOptions = replace(
        server_options(certificates, front, "grpc"),
        cluster_keys=KeyPair(certificates.server, certificates.server_key),
        token_rules=RULES,
        reviewer_for=lambda _kubeconfig: reviewer,
    )
    async with serve(options) as server:
        yield server


@contextlib.asynccontextmanager
async def token_agent(certificates: Certificates, server: ProxyServer, token: str) -> AsyncIterator[Agent]:
    options = replace(
        agent_options(certificates, server.agent_port), agent_cert=None, agent_key=None, read_token=lambda: f"{token}\n"
    )
    async with run_agent(options) as agent:
        yield agent


def test_agent_with_a_good_token_serves(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        async with (
            token_server(certificates, front, reviewer) as server,
            token_agent(certificates, server, "good"),
            echo_server() as address,
        ):
            await until(lambda: server.proxy.streams)
            tunnel = await open_tunnel("grpc", front, address)
            await echo_checked(tunnel, 100_000)
            await tunnel.close()
            assert reviewer.asked == [("good", RULES.audience)]

    asyncio.run(scenario())


@pytest.mark.parametrize("token", ["bad", "unreachable"])
def test_agent_without_a_good_token_never_gets_in(
    certificates: Certificates, front: str, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        async with token_server(certificates, front, reviewer) as server, token_agent(certificates, server, token):
            await until(lambda: len(reviewer.asked) >= 2)
            assert not server.proxy.streams
            _, page = await fetch(server.health_port, "/metrics")
            assert 'agent_denials_total{reason="token"}' in page

    asyncio.run(scenario())
    assert f"Bearer {token}" not in caplog.text


def test_certificate_and_token_rules_exclude_each_other(certificates: Certificates, front: str) -> None:
    options = replace(server_options(certificates, front, "grpc"), token_rules=RULES)
    with pytest.raises(Exception, match="exclude each other"):
        options.check()
