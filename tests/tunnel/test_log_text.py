"""Text of others in log lines, and what the lines about connections of nodes say."""

import asyncio
import logging
import re
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from garboard.rpc import TcpTarget, client_tls
from garboard.rpc.aio import AioClient
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.destinations import AllowList, NodeTarget
from garboard.tunnel.log_text import MAX_TEXT, one_word, quoted, subject_of
from garboard.tunnel.server.run import serve
from garboard.tunnel.tls import ListenerTls, TlsPolicy
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.support.tunnel.ends import agent_options, server_options, until
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

LOCAL = "127.0.0.1"
FORGED = "bye\n2026-01-01 00:00:00 I garboard.tunnel.audit reverse.connection agent=admin verdict=allowed"


def messages(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.getMessage().startswith(f"{event} ")]


@pytest.mark.parametrize("text", ["a b", "a=b", "a\nb", "a\x85b", "'a'", '"', "a\u2028b", "\x1b[2J"])
def test_name_stays_one_word(text: str) -> None:
    assert one_word(text).isprintable()
    assert len(one_word(text).split()) == 1


def test_name_that_is_too_long_is_cut_inside_of_its_quotes() -> None:
    """Quotes that stayed open would take in the fields that follow."""
    for text in ("a " * MAX_TEXT, "a" * (MAX_TEXT - 1) + " b", "'" * MAX_TEXT, "\n" * MAX_TEXT):
        word = one_word(text)
        assert word[0] == word[-1]
        assert word[0] in "'\""
        assert len(word) <= 4 * MAX_TEXT + 2
    assert one_word("a" * 1000) == "a" * MAX_TEXT


@pytest.mark.parametrize("text", ['a" b="c', "a\\", "a\nb", "a\u2028b", '\\" x', "\x1b[2J"])
def test_sentence_stays_in_its_quotes(text: str) -> None:
    assert quoted(text).isprintable()
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', quoted(text))


@pytest.mark.parametrize(
    ("certificate", "subject"),
    [
        pytest.param({"subject": ((("organizationName", "o"),), (("commonName", "n"),))}, "O=o,CN=n", id="subject"),
        pytest.param({"subject": (), "subjectAltName": (("DNS", "n"), ("DNS", "m"))}, "DNS:n", id="names only"),
        pytest.param({}, "", id="not verified"),
        pytest.param(None, "", id="none"),
    ],
)
def test_certificate_is_told_by_its_subject(certificate: Mapping[str, Any] | None, subject: str) -> None:
    assert subject_of(certificate) == subject


def test_server_name_of_a_client_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    listening = ListenerTls(lambda _name: None, TlsPolicy())
    listening._on_hello(ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="a"),
                        FORGED, listening.context)  # fmt: skip
    [line] = messages(caplog, "tls.refused")
    assert line.isprintable()


def test_last_words_of_a_peer_cannot_forge_a_line(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
            client = await AioClient.connect(TcpTarget(LOCAL, server.agent_port, tls))
            await client.call("/AgentService/Connect", metadata=(("agentid", "x"), ("agentidentifiers", "")))
            await until(lambda: server.proxy.streams)
            client.link.close(FORGED)
            await until(lambda: not server.proxy.streams)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    [line] = messages(caplog, "agent.disconnected")
    assert line.isprintable()
    assert "going away" in line


def test_connection_of_a_node_leaves_a_line_when_it_begins_and_one_when_it_ends(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They say who the agent proved to be, where it is, and whose connection it was."""

    async def scenario() -> str:
        [port] = free_ports(1)
        async with echo_server() as address:
            side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse([address]))
            async with serve(side) as server:
                targets = (NodeTarget.parse(f"{port}:{address}"),)
                node = replace(agent_options(certificates, server.agent_port), targets=targets, bind_address=LOCAL)
                async with run_agent(node) as agent:
                    await until(lambda: agent.ports.servers.backends and agent.ports._listening)
                    reader, writer = await asyncio.open_connection(LOCAL, port)
                    await echo_checked(HttpTunnel(reader, writer), 1000)
                    [begun] = messages(caplog, "reverse.dial")
                    assert not messages(caplog, "reverse.connection")
                    host, number = writer.get_extra_info("sockname")
                    writer.close()
                    await until(lambda: messages(caplog, "reverse.connection"))
                    [link] = server.agents.links
                    assert link.transport is not None
                    peer = link.transport.get_extra_info("peername")
                    same = (
                        f" id=1 agent=a1 identity='CN=client' from={LOCAL}:{peer[1]} client={host}:{number}"
                        f" target={address}"
                    )
                    assert begun == f"reverse.dial{same}"
                    return f"reverse.connection{same} verdict=allowed bytes_sent=1000 bytes_received=1000 duration_s="

    with caplog.at_level(logging.INFO):
        ended = asyncio.run(scenario())
    [line] = messages(caplog, "reverse.connection")
    assert line.startswith(ended)


def test_audit_lines_are_written_whatever_the_verbosity_and_each_on_one_line() -> None:
    program = (
        "import logging; from garboard.cli.tunnel import daemon; daemon._write_logs(0);"
        "logging.getLogger('garboard.tunnel.audit').info('reverse.connection x=%s', 'a\\nb');"
        "logging.getLogger('garboard.tunnel').info('not written')"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stderr
    assert told.endswith(" I garboard.tunnel.audit reverse.connection x=a\\nb\n")
    assert told.count("\n") == 1
