"""A server and an agent as processes, ours or the stock ones, with mutual TLS between them on loopback."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from garboard.lab.binaries import Binaries
from tests.ports import free_ports
from tests.rpc.certificates import Certificates

OURS = [str(Path(sys.executable).parent / "garboard"), "tunnel"]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two running processes and the front end's socket."""

    name: str
    front: str
    processes: tuple["subprocess.Popen[bytes]", ...]

    def cpu_s(self) -> float:
        """What both have used so far."""
        return sum(_cpu_s(process.pid) for process in self.processes)

    def resident_bytes(self) -> int:
        return sum(_resident(process.pid) for process in self.processes)

    def peak_bytes(self) -> int:
        return sum(_status(process.pid, "VmHWM") for process in self.processes)

    def reset_peak(self) -> None:
        for process in self.processes:
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")


@contextlib.contextmanager
def running_pair(name: str, binaries: Binaries, keys: Certificates, folder: Path) -> Iterator[Pair]:
    """`name` tells whose server and agent: `ours`, `stock`, `ours-stock` or `stock-ours`."""
    whose_server, _, whose_agent = name.partition("-")
    front = str(folder / f"{name}-{time.monotonic_ns()}.sock")
    agent_port, *rest = free_ports(5)
    server = [
        *_program(whose_server, "server", binaries), "--mode=http-connect", f"--uds-name={front}", "--server-port=0",
        f"--agent-port={agent_port}", "--agent-bind-address=127.0.0.1", f"--health-port={rest[0]}",
        "--health-bind-address=127.0.0.1", f"--admin-port={rest[1]}", f"--cluster-cert={keys.server}",
        f"--cluster-key={keys.server_key}", f"--cluster-ca-cert={keys.ca}", "-v=0",
    ]  # fmt: skip
    agent = [
        *_program(whose_agent or whose_server, "agent", binaries), "--proxy-server-host=127.0.0.1",
        f"--proxy-server-port={agent_port}", f"--ca-cert={keys.ca}", f"--agent-cert={keys.client}",
        f"--agent-key={keys.client_key}", "--health-server-host=127.0.0.1", f"--health-server-port={rest[2]}",
        f"--admin-server-port={rest[3]}", "--sync-interval=200ms", "-v=0",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_started(command, folder / f"{name}.log")) for command in (server, agent)]
        _wait(f"http://127.0.0.1:{rest[0]}/readyz", processes)
        yield Pair(name, front, tuple(processes))


def _program(whose: str, end: str, binaries: Binaries) -> list[str]:
    return [*OURS, end] if whose == "ours" else [str(binaries.locate(f"konnectivity-{end}"))]


@contextlib.contextmanager
def _started(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(url: str, processes: list["subprocess.Popen[bytes]"]) -> None:
    until = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as answer:
            if answer.status == 200:
                return
        if time.monotonic() > until or any(process.poll() is not None for process in processes):
            raise SystemExit(f"{url} did not get ready")
        time.sleep(0.05)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _resident(pid: int) -> int:
    return _status(pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
