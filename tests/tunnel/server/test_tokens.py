"""Agents that show tokens: what is asked, what the answer means, and who gets in."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garboard.errors import ClusterUnreachable
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.dialer.dialer import Dialer
from garboard.tunnel.server.agent_stream import AgentStream
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.server.tokens import (
    AT_ONCE,
    MAX_WAITING_PER_ADDRESS,
    REFUSALS_PER_ADDRESS,
    AgentRefused,
    RateLimit,
    TokenAuthenticator,
    TokenReview,
    TokenRules,
    bearer_token,
    check_review,
)
from garboard.tunnel.tls import KeyPair
from garboard.tunnel.wire.packets import DialRequest
from tests.support.tunnel.clients import echo_checked, echo_server, open_tunnel
from tests.support.tunnel.ends import agent_options, fetch, server_options, until
from tools.harness.certificates import Certificates

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


def test_rate_limit_lets_a_burst_go_and_then_spreads() -> None:
    now = 100.0
    limit = RateLimit(10, 3, clock=lambda: now)
    assert [round(limit.reserve(), 6) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]
    now = 110.0
    assert [round(limit.reserve(), 6) for _ in range(4)] == [0, 0, 0, 0.1]


class Reviewer:
    """Knows one good token."""

    def __init__(self, good: str = "good") -> None:
        self.good = good
        self.asked: list[tuple[str, str]] = []
        self.most_at_once = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._at_once = 0
        self._lock = threading.Lock()

    def review(self, token: str, audience: str) -> TokenReview:
        with self._lock:
            self.asked.append((token, audience))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self.may_answer.wait(10)
        with self._lock:
            self._at_once -= 1
        if token == "unreachable":
            raise ClusterUnreachable("the API server refused the connection")
        return GOOD if token == self.good else TokenReview(error="invalid bearer token")


def test_reviews_are_bounded() -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        reviewer.may_answer.clear()
        authenticator = TokenAuthenticator(RULES, reviewer, RateLimit(0, 0))
        checks = [asyncio.create_task(authenticator.check(shown("good"), "10.0.0.1")) for _ in range(3 * AT_ONCE)]
        await asyncio.sleep(0.1)
        reviewer.may_answer.set()
        await asyncio.gather(*checks)
        assert reviewer.most_at_once <= AT_ONCE
        assert len(reviewer.asked) == 3 * AT_ONCE

    asyncio.run(scenario())


def shown(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def test_refused_token_is_not_reviewed_again_for_a_while() -> None:
    now = [100.0]

    async def scenario() -> None:
        reviewer = Reviewer()
        authenticator = TokenAuthenticator(RULES, reviewer, RateLimit(0, 0), clock=lambda: now[0])
        for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
            with pytest.raises(AgentRefused, match="invalid bearer token"):
                await authenticator.check(shown("bad"), address)
        assert len(reviewer.asked) == 1
        assert await authenticator.check(shown("good"), "10.0.0.1") == RULES.username
        now[0] += 11  # it may have become good
        reviewer.good = "bad"
        assert await authenticator.check(shown("bad"), "10.0.0.1") == RULES.username

    asyncio.run(scenario())


def test_token_that_could_not_be_reviewed_is_tried_again_at_once() -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        authenticator = TokenAuthenticator(RULES, reviewer, RateLimit(0, 0))
        for _ in range(2):
            with pytest.raises(AgentRefused, match="could not be reviewed"):
                await authenticator.check(shown("unreachable"), "10.0.0.1")
        assert len(reviewer.asked) == 2

    asyncio.run(scenario())


def test_address_whose_tokens_are_refused_uses_up_its_budget_and_no_other() -> None:
    now = [100.0]

    async def scenario() -> None:
        reviewer = Reviewer()
        authenticator = TokenAuthenticator(RULES, reviewer, RateLimit(0, 0), clock=lambda: now[0])
        for number in range(3 * REFUSALS_PER_ADDRESS):
            with pytest.raises(AgentRefused):
                await authenticator.check(shown(f"garbage-{number}"), "10.0.0.1")
        assert len(reviewer.asked) == REFUSALS_PER_ADDRESS
        assert await authenticator.check(shown("good"), "10.0.0.2") == RULES.username
        with pytest.raises(AgentRefused, match="of its address"):
            await authenticator.check(shown("good"), "10.0.0.1")
        now[0] += 2.5
        assert await authenticator.check(shown("good"), "10.0.0.1") == RULES.username

    asyncio.run(scenario())


def test_garbage_of_one_address_does_not_fill_the_queue() -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        reviewer.may_answer.clear()
        authenticator = TokenAuthenticator(RULES, reviewer, RateLimit(0, 0))
        garbage = [
            asyncio.create_task(authenticator.check(shown(f"garbage-{number}"), "10.0.0.1")) for number in range(1500)
        ]
        await until(lambda: sum(each.done() for each in garbage) == 1500 - MAX_WAITING_PER_ADDRESS)
        waiting = asyncio.create_task(authenticator.check(shown("good"), "10.0.0.2"))
        await asyncio.sleep(0)
        assert not waiting.done()  # it has a place
        reviewer.may_answer.set()
        assert await waiting == RULES.username
        await asyncio.wait(garbage)
        assert all(isinstance(each.exception(), AgentRefused) for each in garbage)
        assert not authenticator._waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("content", ["good\nsecond\n", "", "\n", "go\x00od", "gööd"])
def test_file_that_holds_no_single_token_is_refused_in_words_until_it_does(
    certificates: Certificates, front: str, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        held = [content]
        async with token_server(certificates, front, Reviewer()) as server:
            options = replace(
                agent_options(certificates, server.agent_port), agent_cert=None, agent_key=None,
                read_token=lambda: held[0],
            )  # fmt: skip
            async with run_agent(options):
                await until(lambda: sum("and not one token" in line for line in caplog.messages) >= 2)
                held[0] = "good\n"
                await until(lambda: server.proxy.streams)

    asyncio.run(scenario())
    assert not any("second" in line for line in caplog.messages)


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


def test_agent_with_a_good_token_serves_and_is_told_by_its_account(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The lines about connections of nodes begin with the same fields."""

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
            [stream] = server.proxy.streams.values()
            assert isinstance(stream, AgentStream)
            assert isinstance(stream.dialer, Dialer)
            stream.dialer.peer_sent(DialRequest("tcp", "10.0.0.1:1", 1))  # which it may not

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    told = [line for line in caplog.messages if line.startswith(("agent.connected ", "reverse.connection "))]
    assert len(told) == 2
    assert all(f" agent=a1 identity={RULES.username} from=127.0.0.1:" in line for line in told)


@pytest.mark.parametrize("token", ["bad", "unreachable"])
def test_agent_without_a_good_token_never_gets_in(
    certificates: Certificates, front: str, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        reviewer = Reviewer()
        async with token_server(certificates, front, reviewer) as server, token_agent(certificates, server, token):
            await until(lambda: server.clusters[0].denials.of("token").value >= 2)
            assert reviewer.asked
            assert not server.proxy.streams
            _, page = await fetch(server.health_port, "/metrics")
            assert 'agent_denials_total{reason="token"}' in page

    asyncio.run(scenario())
    assert f"Bearer {token}" not in caplog.text


def test_certificate_and_token_rules_exclude_each_other(certificates: Certificates, front: str) -> None:
    options = replace(server_options(certificates, front, "grpc"), token_rules=RULES)
    with pytest.raises(Exception, match="exclude each other"):
        options.check()
