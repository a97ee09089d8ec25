"""The way from an agent to its servers through a proxy, as the environment of the stock agent names it."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest

from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.run import serve
from tests.support.net.proxy_server import ProxyServer, serving_proxy
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.support.tunnel.ends import agent_options, server_options, until
from tools.harness.certificates import Certificates

HOST = "tunnel.example"  # the proxy alone knows where that is


def environment(proxy: ProxyServer, scheme: str = "http", **more: str) -> dict[str, str]:
    user = f"{proxy.user}@" if proxy.user else ""
    return {"HTTPS_PROXY": f"{scheme}://{user}127.0.0.1:{proxy.port}", **more}


@pytest.mark.parametrize("user", ["", "me:secret"], ids=["anyone", "by password"])
@pytest.mark.parametrize(
    ("scheme", "accept", "asked"),
    [
        ("http", ProxyServer.accept_connect, f"CONNECT {HOST}:8091 HTTP/1.1"),
        ("socks5", ProxyServer.accept_socks, f"{HOST}:8091"),
    ],
    ids=["connect", "socks"],
)
def test_agent_reaches_its_server_through_a_proxy(
    certificates: Certificates, front: str, scheme: str, accept: Callable[[ProxyServer, socket.socket], bool],
    asked: str, user: str,
) -> None:  # fmt: skip
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server, echo_server() as address:
            proxy = ProxyServer(server.agent_port, user)
            with serving_proxy(proxy, lambda client: accept(proxy, client)):
                options = replace(
                    agent_options(certificates, 8091), proxy_server_host=HOST, tls_server_name="localhost",
                    environment=environment(proxy, scheme),
                )  # fmt: skip
                async with run_agent(options):
                    await until(lambda: server.proxy.streams)
                    assert proxy.asked == [asked]
                    tunnel = await HttpTunnel.open(front, address)
                    await echo_checked(tunnel, 500_000)
                    await tunnel.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "exempt", [{"NO_PROXY": "example.com,.example"}, {"no_proxy": "*"}, {}], ids=["a domain", "all", "loopback"]
)
def test_server_that_is_exempt_is_reached_directly(
    certificates: Certificates, front: str, exempt: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HOST if exempt else "127.0.0.1"
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda name, *more, **others: real("127.0.0.1" if name == HOST else name, *more, **others),
    )

    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            proxy = ProxyServer(server.agent_port)
            with serving_proxy(proxy, proxy.accept_connect):
                options = replace(
                    agent_options(certificates, server.agent_port), proxy_server_host=host,
                    tls_server_name="localhost", environment=environment(proxy, **exempt),
                )  # fmt: skip
                async with run_agent(options):
                    await until(lambda: server.proxy.streams)
                assert proxy.asked == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("scheme", "words"),
    [("http", "407 Proxy Authentication Required"), ("https", "speaks TLS, which is not supported")],
)
def test_proxy_that_cannot_be_used_is_named_without_its_secrets(
    certificates: Certificates, front: str, scheme: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            proxy = ProxyServer(server.agent_port, "me:right")
            with serving_proxy(proxy, proxy.accept_connect):
                wrong = environment(ProxyServer(0, "me:wrong", port=proxy.port), scheme)
                options = replace(
                    agent_options(certificates, 8091), proxy_server_host=HOST, tls_server_name="localhost",
                    environment=wrong,
                )  # fmt: skip
                async with run_agent(options):
                    await until(lambda: any(words in line for line in caplog.messages))

    asyncio.run(scenario())
    assert "wrong" not in caplog.text
