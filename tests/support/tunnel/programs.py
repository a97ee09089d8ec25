"""Server and agent as processes, ours or the stock ones, on loopback."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from garboard.lab.binaries import Binaries
from tests.support.tunnel.ends import fetch
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

OURS = [sys.executable, "-m", "tests.support.tunnel.command", "tunnel"]


@dataclass
class Program:
    """A running program with its health port."""

    process: "subprocess.Popen[bytes]"
    health_port: int
    port: int = 0
    admin_port: int = 0
    log: Path = Path()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def status(self) -> Any:
        """The document of the admin port."""
        code, text = asyncio.run(fetch(self.admin_port, "/status"))
        assert code == 200, text
        return json.loads(text)

    def page(self, path: str) -> tuple[int, str]:
        return asyncio.run(fetch(self.health_port, path))

    def wait_for(self, path: str, text: str = "", timeout_s: float = 60.0) -> None:
        """Until the page answers 200, and with this text in it."""
        until = time.monotonic() + timeout_s
        while True:
            with contextlib.suppress(OSError, IndexError):
                status, body = self.page(path)
                if status == 200 and text in body:
                    return
            assert self.process.poll() is None, f"{self.process.args!r} ended with {self.process.returncode}"
            assert time.monotonic() < until, f"{path} of {self.process.args!r} is not 200"
            time.sleep(0.05)


class Programs:
    """Starts programs, and ends those that are left."""

    def __init__(self, binaries: Binaries | None, certificates: Certificates, folder: Path) -> None:
        self._binaries = binaries
        self._certificates = certificates
        self._folder = folder
        self._running: list[Program] = []
        self._logs = 0

    def server_on_tcp(self, whose: str, mode: str, front_port: int, *extra: str) -> Program:
        """With a front end for clients that show a certificate, on a port."""
        keys = self._certificates
        tls = (f"--server-cert={keys.server}", f"--server-key={keys.server_key}", f"--server-ca-cert={keys.ca}")
        return self.server(whose, mode, "", extra=(f"--server-port={front_port}", *tls, *extra))

    def server(
        self, whose: str, mode: str, front: str, *, port: int | None = None, extra: tuple[str, ...] = (),
        needs_certificate: bool = True,
    ) -> Program:  # fmt: skip
        agent_port, health, admin = free_ports(3)
        agent_port = port or agent_port
        keys = self._certificates
        return self._start(
            [*self._program(whose, "server"), f"--mode={mode}", f"--uds-name={front}", "--server-port=0",
             f"--agent-port={agent_port}", "--agent-bind-address=127.0.0.1", f"--health-port={health}",
             "--health-bind-address=127.0.0.1", f"--admin-port={admin}", f"--cluster-cert={keys.server}",
             f"--cluster-key={keys.server_key}", "--logtostderr=true",
             *([f"--cluster-ca-cert={keys.ca}"] if needs_certificate else []), *extra],
            health, agent_port, admin,
        )  # fmt: skip

    def agent(
        self, whose: str, server: Program, *, extra: tuple[str, ...] = (), shows_certificate: bool = True
    ) -> Program:
        health, admin = free_ports(2)
        keys = self._certificates
        return self._start(
            [*self._program(whose, "agent"), "--proxy-server-host=127.0.0.1", f"--proxy-server-port={server.port}",
             f"--ca-cert={keys.ca}",
             *([f"--agent-cert={keys.client}", f"--agent-key={keys.client_key}"] if shows_certificate else []),
             "--health-server-host=127.0.0.1", f"--health-server-port={health}", f"--admin-server-port={admin}",
             "--sync-interval=200ms", "--sync-interval-cap=1s", "--probe-interval=200ms", "-v=2", *extra],
            health,
        )  # fmt: skip

    def stop(self) -> None:
        for program in self._running:
            if program.process.poll() is None:
                program.kill()

    def _program(self, whose: str, end: str) -> list[str]:
        if whose == "ours":
            return [*OURS, end]
        assert self._binaries is not None
        return [str(self._binaries.locate(f"konnectivity-{end}"))]

    def _start(self, command: list[str], health_port: int, port: int = 0, admin_port: int = 0) -> Program:
        self._logs += 1
        path = self._folder / f"{self._logs}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        program = Program(process, health_port, port, admin_port, path)
        self._running.append(program)
        program.wait_for("/healthz")
        return program


@contextlib.contextmanager
def programs(binaries: Binaries | None, certificates: Certificates, folder: Path) -> Iterator[Programs]:
    started = Programs(binaries, certificates, folder)
    try:
        yield started
    finally:
        started.stop()
