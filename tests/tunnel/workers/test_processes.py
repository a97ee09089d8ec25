"""A server with workers as processes, and what signals do to them."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.support.tunnel.programs import OURS, Program, Programs, programs
from tools.harness.certificates import Certificates

TWO = ("--workers=2", "--server-id=s1", "--graceful-shutdown-timeout=60s")
CONNECTED = "konnectivity_network_proxy_agent_open_server_connections 2\n"


@pytest.fixture
def started(certificates: Certificates, tmp_path: Path) -> Iterator[Programs]:
    with programs(None, certificates, tmp_path) as all_:
        yield all_


def workers_of(server: Program) -> list[int]:
    """The processes of the workers that run, by their number."""
    return [each["pid"] for each in server.status()["workers"] if each["state"] == "running"]


def until(is_true: Callable[[], object], timeout_s: float = 60.0) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(0.05)


def replace_worker(server: Program) -> None:
    """Kill one, and wait for another in its place."""
    victim = workers_of(server)[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in workers_of(server) and len(workers_of(server)) == 2)


def is_there(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def with_echo(scenario: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with echo_server() as address, asyncio.timeout(60):
            await scenario(address)

    asyncio.run(run())


async def held(tunnel: HttpTunnel) -> bool:
    """Whether a connection still carries bytes both ways."""
    try:
        await tunnel.write(b"still there?")
        return await tunnel.read() == b"still there?"
    except OSError:
        return False


def test_killed_worker_is_replaced_and_takes_only_its_own_connections(started: Programs, front: str) -> None:
    server = started.server("ours", "http-connect", front, extra=TWO)
    agent = started.agent("ours", server)
    agent.wait_for("/metrics", CONNECTED)
    before = descriptors(server.process.pid)

    async def scenario(address: str) -> None:
        tunnels = [await HttpTunnel.open(front, address) for _ in range(20)]
        for tunnel in tunnels:
            await echo_checked(tunnel, 100)
        status = await asyncio.to_thread(server.status)
        assert sum(each["connections"] for each in status["tenants"][0]["agents"]) == 20
        victim, other = (each["pid"] for each in status["workers"])
        os.kill(victim, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: victim not in workers_of(server) and len(workers_of(server)) == 2)
        assert other in await asyncio.to_thread(workers_of, server)
        kept = [await held(tunnel) for tunnel in tunnels]
        assert any(kept)  # which of the two has how many is the kernel's choice
        await asyncio.to_thread(agent.wait_for, "/metrics", CONNECTED)
        again = await HttpTunnel.open(front, address)
        await echo_checked(again, 100_000)
        for tunnel in (*tunnels, again):
            await tunnel.close()

    with_echo(scenario)
    for _ in range(2):
        replace_worker(server)
    assert "konnectivity_network_proxy_server_worker_restarts_total 3\n" in server.page("/metrics")[1]
    until(lambda: descriptors(server.process.pid) <= before)
    assert b"Traceback" not in server.log.read_bytes()


def test_workers_end_with_a_supervisor_that_is_killed_even_if_they_hang(started: Programs, front: str) -> None:
    server = started.server("ours", "http-connect", front, extra=TWO)
    pids = workers_of(server)
    os.kill(pids[0], signal.SIGSTOP)
    server.kill()
    until(lambda: not any(map(is_there, pids)))
    again = started.server("ours", "http-connect", front, port=server.port, extra=TWO)
    assert len(workers_of(again)) == 2


def test_clients_do_not_wait_for_a_worker_that_hangs(started: Programs, front: str) -> None:
    server = started.server("ours", "http-connect", front, extra=TWO)
    started.agent("ours", server).wait_for("/metrics", CONNECTED)
    hanging = workers_of(server)[0]
    os.kill(hanging, signal.SIGSTOP)

    async def scenario(address: str) -> None:
        for seed in range(10):
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 1000, seed)
            await tunnel.close()

    with_echo(scenario)
    assert server.page("/readyz") == (200, "ok")
    os.kill(hanging, signal.SIGCONT)
    assert hanging in workers_of(server)


def test_first_signal_waits_for_connections_and_the_second_does_not(started: Programs, front: str) -> None:
    server = started.server("ours", "http-connect", front, extra=TWO)
    started.agent("ours", server).wait_for("/metrics", CONNECTED)
    pids = workers_of(server)

    async def scenario(address: str) -> None:
        tunnel = await HttpTunnel.open(front, address)
        server.terminate()
        for pid in pids:  # as systemd does, and a terminal: all processes of the group
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        await asyncio.to_thread(until, lambda: server.page("/readyz")[1] == "the proxy server is stopping")
        await echo_checked(tunnel, 100_000)
        server.terminate()
        assert await asyncio.to_thread(server.process.wait, 20) == 1

    with_echo(scenario)
    until(lambda: not any(map(is_there, pids)))
    assert b"Traceback" not in server.log.read_bytes()


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_server_ends_well_when_its_connections_have(
    started: Programs, front: str, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GARBOARD_EVENT_LOOP", loop)
    server = started.server("ours", "http-connect", front, extra=TWO)
    started.agent("ours", server).wait_for("/metrics", CONNECTED)
    pids = workers_of(server)

    async def scenario(address: str) -> None:
        tunnel = await HttpTunnel.open(front, address)
        await echo_checked(tunnel, 100)
        server.terminate()
        await echo_checked(tunnel, 100_000)
        await tunnel.close()
        assert await asyncio.to_thread(server.process.wait, 20) == 0

    with_echo(scenario)
    assert not any(map(is_there, pids))
    log = server.log.read_text()
    assert "worker.ended" not in log
    assert "Traceback" not in log
    assert "server.stopped cut_connections=0\n" in log
    assert log.count("server.stopped cut_connections=0 worker=") == 2


def test_second_server_on_the_port_is_refused_in_words(
    started: Programs, front: str, certificates: Certificates
) -> None:
    server = started.server("ours", "http-connect", front, extra=TWO)
    for workers in (1, 2):
        status, text = run_server(certificates, f"--uds-name={front}2", f"--workers={workers}", port=server.port)
        assert status == 4
        assert f"cannot listen on port {server.port}: Address already in use" in text
        assert "Traceback" not in text
    assert len(workers_of(server)) == 2


@pytest.mark.parametrize(
    ("flag", "seat", "text"),
    [
        pytest.param("--workers=0", None, "--workers takes 1 to 64", id="none"),
        pytest.param("--workers=65", None, "--workers takes 1 to 64", id="too many"),
        pytest.param("--workers=many", None, "many", id="no number"),
        pytest.param("--workers=2", "nonsense", "is not what a supervisor gives", id="a seat of no supervisor"),
        pytest.param("--workers=2", "0:99:1", "is not what a supervisor gives", id="a seat without its socket"),
    ],
)
def test_bad_usage_is_told_in_words(
    certificates: Certificates, front: str, flag: str, seat: str | None, text: str
) -> None:
    status, said = run_server(certificates, f"--uds-name={front}", flag, seat=seat)
    assert status == 2
    assert text in said
    assert "Traceback" not in said


def test_one_worker_is_the_server_itself(started: Programs, front: str) -> None:
    server = started.server("ours", "http-connect", front, extra=("--workers=1", "--server-id=s1"))
    assert Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text() == ""
    status = server.status()
    assert (status["id"], status.get("workers")) == ("s1", None)


def run_server(certificates: Certificates, *flags: str, port: int = 0, seat: str | None = None) -> tuple[int, str]:
    """A server that does not begin: its status and what it said."""
    environment = {**os.environ, **({"GARBOARD_TUNNEL_WORKER": seat} if seat is not None else {})}
    command = [*OURS, "server", f"--agent-port={port}", "--agent-bind-address=127.0.0.1", "--server-port=0",
               f"--cluster-cert={certificates.server}", f"--cluster-key={certificates.server_key}", "--health-port=0",
               "--health-bind-address=127.0.0.1", "--admin-port=0", *flags]  # fmt: skip
    with contextlib.suppress(subprocess.TimeoutExpired):
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout + ended.stderr
    raise AssertionError("it began")
