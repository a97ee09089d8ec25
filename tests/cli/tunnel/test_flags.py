"""The command lines of the stock programs, as manifests write them."""

from typing import Any

import click
import pytest

from garboard.cli.main import run
from garboard.cli.tunnel import agent as agent_command
from garboard.cli.tunnel import server as server_command
from garboard.cli.tunnel.flags import KLOG, GoCommand
from garboard.errors import BadUsage
from garboard.tunnel.server.options import Mode
from garboard.tunnel.server.routing import Strategy


def flags_of(command: click.Command, *arguments: str) -> dict[str, Any]:
    """What the callback of the command would get."""
    assert isinstance(command, GoCommand)
    got: dict[str, Any] = {}
    probe = GoCommand("probe", entries=command.entries[: -len(KLOG)], callback=lambda **values: got.update(values))
    with probe.make_context("probe", list(arguments)) as context:
        probe.invoke(context)
    return got


def test_server_flags_of_a_sample_manifest_are_understood() -> None:
    flags = flags_of(
        server_command.server,
        "--logtostderr=true", "--log-file=/var/log/konnectivity-server.log", "--log_file_max_size=0",
        "--uds-name=/etc/srv/konnectivity-server.socket", "--delete-existing-uds-file", "--server-port=0",
        "--cluster-cert=c.crt", "--cluster-key=c.key", "--cluster-ca-cert=ca.crt", "--mode=http-connect",
        "--agent-port=8132", "--admin-port=8133", "--health-port=8134", "--keepalive-time=1h30m",
        "--proxy-strategies=destHost,default", "--server-count", "3", "-v=4", "--enable-profiling=false",
        "--graceful-shutdown-timeout=500ms",
    )  # fmt: skip
    options = server_command.options_of(flags)
    options.check()
    assert (options.mode, options.agent_port, options.server_count) == (Mode.HTTP_CONNECT, 8132, 3)
    assert options.proxy_strategies == (Strategy.DEST_HOST, Strategy.DEFAULT)
    assert (options.keepalive_s, options.graceful_shutdown_s) == (5400.0, 0.5)
    assert options.uds_name == "/etc/srv/konnectivity-server.socket"
    assert options.delete_existing_uds_file


def test_agent_flags_are_understood_and_defaults_are_the_stock_ones() -> None:
    flags = flags_of(agent_command.agent, "--ca-cert=ca.crt", "--sync-forever=true", "--alpn-proto=[]", "--agent-id=a")
    options = agent_command.options_of(flags)
    options.check()
    assert (options.proxy_server_host, options.proxy_server_port) == ("127.0.0.1", 8091)
    assert (options.sync_interval_s, options.sync_interval_cap_s, options.keepalive_s) == (1.0, 10.0, 3600.0)
    assert (options.health_server_port, options.admin_server_port) == (8093, 8094)
    assert options.sync_forever
    assert options.alpn_proto == ()


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (server_command.server, "--agent-namespace=kube-system"),
        (server_command.server, "--enable-lease-controller=true"),
        (server_command.server, "--tls-min-version=VersionTLS13"),
        (server_command.server, "--logtostderr=false"),
        (agent_command.agent, "--count-server-leases=true"),
        (agent_command.agent, "--server-count-source=max"),
    ],
)
def test_flag_that_cannot_be_honoured_is_refused(command: click.Command, argument: str) -> None:
    with pytest.raises(BadUsage, match="is not supported") as refused:
        flags_of(command, argument)
    assert refused.value.error_class == "unsupported-flag"


@pytest.mark.parametrize(
    "argument", ["--agent-namespace=", "--enable-lease-controller=false", "--tls-min-version=", "--cipher-suites="]
)
def test_flag_that_asks_for_nothing_is_accepted(argument: str) -> None:
    flags_of(server_command.server, argument)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["server", "--server-port=0"], "--server-port=0 needs --uds-name"),
        (["server", "--uds-name=/x", "--server-port=0"], "--cluster-cert and --cluster-key are needed"),
        (["server", "--mode=socks"], "--mode=socks is not a mode"),
        (["server", "--cluster-cert=x"], "--cluster-cert and --cluster-key go together"),
        (["server", "--keepalive-time=soon"], "--keepalive-time=soon"),
        (["server", "--proxy-strategies=best"], "proxy strategies"),
        (["agent"], "--ca-cert is needed"),
        (["agent", "--ca-cert=x", "--agent-cert=y"], "--agent-cert and --agent-key go together"),
        (["agent", "--ca-cert=x", "--sync-interval=20s"], "--sync-interval must not be above"),
        (["agent", "--ca-cert=x", "--agent-identifiers=planet=mars"], "planet"),
        (["agent", "--health-server-port=many"], "is not a number"),
        (["agent", "--sync-forever=maybe"], "is not true or false"),
        (["agent", "--no-such-flag"], "--no-such-flag"),
        (["agent", "--ca-cert=/nowhere/ca.crt"], "/nowhere/ca.crt is missing"),
    ],
)
def test_bad_command_line_is_told_in_words(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tunnel", *arguments]) in (2, 3, 4)
    assert words in capsys.readouterr().err
