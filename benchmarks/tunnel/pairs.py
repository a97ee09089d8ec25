"""A server and an agent as processes, ours or the stock ones, with mutual TLS between them on loopback."""

import contextlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from garboard.lab.binaries import Binaries
from garboard.retry import Pauses, wait_until
from tools.harness import processes
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

STREAMS = "konnectivity_network_proxy_agent_open_server_connections"
OURS = [str(Path(sys.executable).parent / "garboard"), "tunnel"]
COMPILED = Path(__file__).parents[2] / "build/compiled"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two running processes and the front end's socket."""

    name: str
    front: str
    agent_port: int
    keys: Certificates
    processes: tuple["subprocess.Popen[bytes]", ...]  # the server first

    @property
    def workers(self) -> list[int]:
        """The processes of the server that carry connections."""
        server = self.processes[0].pid
        return processes.children_of(server) or [server]

    @property
    def _pids(self) -> list[int]:
        return [pid for each in self.processes for pid in (each.pid, *processes.children_of(each.pid))]

    def cpu_s(self) -> float:
        """What both have used so far, with what the server has started."""
        return sum(map(processes.cpu_s, self._pids))

    def resident_bytes(self) -> int:
        return sum(map(processes.resident_bytes, self._pids))

    def peak_bytes(self) -> int:
        return sum(map(processes.peak_bytes, self._pids))

    def reset_peak(self) -> None:
        for pid in self._pids:
            processes.reset_peak(pid)


@contextlib.contextmanager
def running_pair(name: str, binaries: Binaries, keys: Certificates, folder: Path) -> Iterator[Pair]:
    """`name` tells whose server and agent: `ours`, `stock`, `ours-stock` or `stock-ours`; `ours:2` has two workers, and
    `compiled` is ours with its modules compiled (`make compiled`).
    """
    whose, _, workers = name.partition(":")
    whose_server, _, whose_agent = whose.partition("-")
    front = str(folder / f"{name}-{time.monotonic_ns()}.sock")
    agent_port, *rest = free_ports(5)
    server = [
        *_program(whose_server, "server", binaries), "--mode=http-connect", f"--uds-name={front}", "--server-port=0",
        f"--agent-port={agent_port}", "--agent-bind-address=127.0.0.1", f"--health-port={rest[0]}",
        "--health-bind-address=127.0.0.1", f"--admin-port={rest[1]}", f"--cluster-cert={keys.server}",
        f"--cluster-key={keys.server_key}", f"--cluster-ca-cert={keys.ca}", "-v=0",
        *([f"--workers={workers}"] if workers else []),
    ]  # fmt: skip
    agent = [
        *_program(whose_agent or whose_server, "agent", binaries), "--proxy-server-host=127.0.0.1",
        f"--proxy-server-port={agent_port}", f"--ca-cert={keys.ca}", f"--agent-cert={keys.client}",
        f"--agent-key={keys.client_key}", "--health-server-host=127.0.0.1", f"--health-server-port={rest[2]}",
        f"--admin-server-port={rest[3]}", "--sync-interval=200ms", "-v=0",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(_started(command, folder / f"{name}.log")) for command in (server, agent)]
        _wait(f"http://127.0.0.1:{rest[0]}/readyz", started)
        if workers:
            _wait(f"http://127.0.0.1:{rest[2]}/metrics", started, f"{STREAMS} {workers}\n")
        yield Pair(name, front, agent_port, keys, tuple(started))


def _program(whose: str, end: str, binaries: Binaries) -> list[str]:
    if whose == "compiled":
        return ["env", f"PYTHONPATH={COMPILED}", *OURS, end]
    return [*OURS, end] if whose == "ours" else [str(binaries.locate(f"konnectivity-{end}"))]


@contextlib.contextmanager
def _started(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield process
    finally:
        processes.end_with_children(process)


def _wait(url: str, started: list["subprocess.Popen[bytes]"], text: str = "") -> None:
    """Until the page is there, with this text in it."""

    def not_ready() -> str | None:
        for process in started:
            if process.poll() is not None:
                command = " ".join(map(str, process.args))  # type: ignore[arg-type]  # it is a list
                raise SystemExit(f"ended with status {process.returncode}: {command}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as answer:
            if answer.status == 200 and text in answer.read().decode():
                return None
        return f"{url} did not get ready"

    if problem := wait_until(not_ready, timeout_s=30, pauses=Pauses.every(0.05)):
        raise SystemExit(problem)
