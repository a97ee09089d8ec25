"""The command lines of the stock programs, as manifests write them."""

import re
import subprocess
import sys
from ssl import TLSVersion

import click
import pytest

from garboard.cli.main import run
from garboard.cli.tunnel import agent as agent_command
from garboard.cli.tunnel import server as server_command
from garboard.lab.binaries import Binaries
from garboard.tunnel.agent.server_count import CountSource
from garboard.tunnel.server.routing import Strategy
from garboard.tunnel.server.tenants import Mode
from garboard.tunnel.server.tokens import TokenRules
from garboard.tunnel.tls import TlsPolicy
from tests.support.cli.tunnel.flags import flags_of


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


def test_tokens_leases_and_tls_are_understood() -> None:
    flags = flags_of(
        server_command.server,
        "--agent-namespace=kube-system", "--agent-service-account=konnectivity-agent", "--server-port=0",
        "--authentication-audience=system:konnectivity-server", "--kubeconfig=/etc/kubernetes/k.conf", "--uds-name=/s",
        "--kubeconfig-qps=75.5", "--kubeconfig-burst=150", "--cluster-cert=c", "--cluster-key=k",
        "--enable-lease-controller", "--lease-label=k8s-app=konnectivity-server,tier=x", "--logtostderr=false",
        "--tls-min-version=VersionTLS13", "--enable-profiling=true",
        "--cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256",
    )  # fmt: skip
    options = server_command.options_of(flags)
    options.check()
    assert options.token_rules == TokenRules("kube-system", "konnectivity-agent", "system:konnectivity-server")
    assert (options.review_qps, options.review_burst) == (75.5, 150)
    assert options.lease_store is not None
    assert options.tls == TlsPolicy(minimum=TLSVersion.TLSv1_3, ciphers=("ECDHE-RSA-AES128-GCM-SHA256",))
    counted = agent_command.options_of(
        flags_of(agent_command.agent, "--count-server-leases=true", "--server-count-source=max", "--lease-label=a=b")
    )
    assert counted.lease_store is not None
    assert counted.server_count_source is CountSource.MAX


@pytest.mark.parametrize(
    ("command", "newer"),
    [
        # Of the stock project's main branch, after v0.36.0; the gate is KEP-2025's.
        (server_command.server, ["--frontend-write-channel-size=10", "--feature-gates=NodeToMasterTraffic=true"]),
        (agent_command.agent, ["--lease-label-selector", "a in (b)", "--feature-gates", "NodeToMasterTraffic=true"]),
    ],
)
def test_flags_newer_than_the_stock_release_are_taken(command: click.Command, newer: list[str]) -> None:
    assert flags_of(command, *newer)


@pytest.mark.real
@pytest.mark.parametrize(("end", "command"), [("server", server_command.server), ("agent", agent_command.agent)])
def test_every_flag_of_the_stock_program_is_taken(binaries: Binaries, end: str, command: click.Command) -> None:
    told = subprocess.run(
        [binaries.locate(f"konnectivity-{end}"), "--help"], capture_output=True, text=True, check=False
    )
    stock = set(re.findall(r"^\s+(?:-\w, )?--([\w-]+)", told.stdout + told.stderr, re.MULTILINE)) - {"help"}
    assert len(stock) > 40
    assert stock <= {name.removeprefix("--") for param in command.params for name in param.opts}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["server", "--server-port=0"], "--server-port=0 needs --uds-name"),
        (["server", "--uds-name=/x", "--server-port=0"], "--cluster-cert and --cluster-key are needed"),
        (["server", "--agent-namespace=x"], "--authentication-audience go together"),
        (["server", "--tls-min-version=VersionSSL3"], "not a TLS version"),
        (["server", "--cipher-suites=TLS_RSA_WITH_RC4_128_SHA"], "not a secure cipher suite"),
        (["server", "--enable-lease-controller", "--lease-label=x"], "not a list of labels"),
        (["server", "--tenants=/nowhere.yaml"], "/nowhere.yaml"),
        (["agent", "--ca-cert=x", "--server-count-source=min"], "--server-count-source=min"),
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
    assert run(["tunnel", *arguments]) in (1, 2, 3, 4)
    assert words in capsys.readouterr().err


def test_memory_that_transfers_have_left_is_given_back() -> None:
    program = """
import resource
from pathlib import Path
from garboard.cli.tunnel import daemon

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

daemon._keep_large_buffers()
before = resident()
held = [(bytes(bytearray(400_000)), bytearray(10)) for _ in range(300)]
keep = held[::50]
del held
kept = resident()
daemon.give_back_free_memory()
print(kept - before > 100 << 20, resident() - before < 40 << 20)
"""
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "True True\n"


def test_limit_for_what_waits_is_told_in_mib() -> None:
    agent = agent_command.options_of(flags_of(agent_command.agent, "--ca-cert=ca.crt", "--buffer-limit=100"))
    assert agent.stall_policy.most_bytes == 100 << 20
    server = server_command.options_of(flags_of(server_command.server))
    assert server.stall_policy.most_bytes == 256 << 20


def test_running_program_gives_memory_back_again_and_again() -> None:
    program = """
import asyncio
from garboard.cli.tunnel import daemon

given_back = []
daemon.GIVE_BACK_EVERY_S = 0.01
daemon.give_back_free_memory = lambda: given_back.append(True)

async def main(signals: daemon.Signals) -> int:
    while len(given_back) < 3:
        await asyncio.sleep(0.01)
    return 7

raise SystemExit(daemon.run_daemon(main, verbosity=0))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 7
