"""One soak: start everything, let it run while some of it is killed, and see what is left."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from tools.harness.certificates import Certificates, make_certificates
from tools.harness.ports import free_ports
from tools.harness.processes import children_of, cpu_s, descriptors_of, end_with_children, resident_bytes
from tools.harness.soak.agents import AgentsPlan
from tools.harness.soak.clients import LAST_WORDS_S, ClientsPlan
from tools.harness.soak.findings import Absences, ClientCounts, ServerUse, SoakResult

GARBOARD: Final = str(Path(sys.executable).parent / "garboard")
METRICS: Final = "konnectivity_network_proxy_server_"
# These are of connections only: with no client left, each must be 0.
OF_CONNECTIONS: Final = ("established_connections", "pending_backend_dials", "http_connections", "queued_bytes")
START_S: Final = 60.0
SETTLE_S: Final = 90.0
GIVE_BACK_S: Final = 12.0  # the server returns free memory every ten seconds

Report = Callable[[str], None]


class SoakFailed(Exception):
    """The soak could not be carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPlan:
    """How large, how long, and how cruel."""

    seed: int
    minutes: float = 20.0
    agents: int = 1000
    agent_processes: int = 10
    connections: int = 10_000
    client_processes: int = 2
    workers: int = 1
    kill_every_s: float = 20.0
    lost_every_s: float = 20.0  # in each process of agents
    stay_s: float = 60.0
    pause_s: float = 10.0
    idle_s: float = 10.0

    @property
    def seconds(self) -> float:
        return self.minutes * 60


class ServerProcesses:
    """The server, and the workers that it starts."""

    def __init__(self, process: "subprocess.Popen[bytes]", health_port: int) -> None:
        self._process = process
        self._health_port = health_port
        self._used: dict[int, float] = {}
        self.cpu_s = 0.0

    @property
    def workers(self) -> list[int]:
        return children_of(self._process.pid)

    def look(self) -> ServerUse:
        """What its processes hold now; what they have used since the last look is added to `cpu_s`."""
        if self._process.poll() is not None:
            raise SoakFailed(f"the server ended with status {self._process.returncode}; its log says why")
        pids = [self._process.pid, *self.workers]
        used = {pid: cpu_s(pid) for pid in pids}
        self.cpu_s += sum(max(now - self._used.get(pid, 0.0), 0.0) for pid, now in used.items())
        self._used = used
        return ServerUse(sum(map(descriptors_of, pids)), sum(map(resident_bytes, pids)), len(pids))

    def is_up(self) -> bool:
        with contextlib.suppress(OSError):
            self._page("/healthz")
            return True
        return False

    def of_connections(self) -> dict[str, float]:
        """The metrics that count connections, each summed over its labels."""
        found: Counter[str] = Counter()
        for line in self._page("/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            short = name.partition("{")[0].removeprefix(METRICS)
            if short in OF_CONNECTIONS:
                found[short] += float(value)  # type: ignore[assignment]
        return dict(found)

    def _page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._health_port}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
            return text


class AgentProcess:
    """One process of agents, and what it tells of them."""

    def __init__(self, plan: AgentsPlan, absences: Absences, kills: Counter[str], log: Path) -> None:
        self._plan = plan
        self._absences = absences
        self._kills = kills
        self._log = log
        self._start()

    def kill_and_restart(self) -> None:
        at = time.monotonic()
        self.stop()
        for number in self._numbers:
            self._absences.left(number, at)
        self._start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()  # what it told before its end counts before its end

    @property
    def _numbers(self) -> range:
        return range(self._plan.first, self._plan.first + self._plan.count)

    def _start(self) -> None:
        command = [sys.executable, "-m", "tools.harness.soak.agents", self._plan.as_argument()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            sign, number, at = line.split()
            if sign == "+":
                self._absences.came(int(number), float(at))
            else:
                self._absences.left(int(number), float(at))
            self._kills["agents"] += sign == "x"


class Soak:
    """Everything that a soak started; `close` ends it, by the ids of its own processes."""

    def __init__(self, plan: SoakPlan, folder: Path, report: Report) -> None:
        self._plan = plan
        self._folder = folder
        self._report = report
        self._random = random.Random(plan.seed)
        self._kills: Counter[str] = Counter({"processes of agents": 0, "agents": 0})
        self._absences = Absences()
        self._stack = contextlib.ExitStack()
        self._agents: list[AgentProcess] = []
        self._front = str(folder / "front.sock")
        keys = make_certificates(folder)
        port, health, admin, self._endpoint_port = free_ports(4)
        self.server = ServerProcesses(self._start_server(keys, port, health, admin), health)
        _wait("the server is not up", self.server.is_up, START_S)
        self._empty = self.server.look()
        self._start_endpoints()
        self._start_agents(keys, port)

    def run(self) -> SoakResult:
        plan = self._plan
        _wait("not all agents are connected", lambda: not self._absences.count, START_S + plan.agents * 0.2)
        self._report(f"{plan.agents} agents are connected")
        idle_cpu = self._share_of_core(lambda: time.sleep(plan.idle_s))
        before = self.server.look()
        self._most_bytes = before.resident_bytes
        counts = ClientCounts()
        busy_cpu = self._share_of_core(lambda: self._under_load(counts))
        self._report("the clients have gone")
        after = self._settle(before, lambda: not self._absences.count)
        left = self.server.of_connections()
        for process in self._agents:
            process.stop()
        empty = self._settle(self._empty, lambda: True)
        return SoakResult(
            seed=plan.seed, minutes=plan.minutes, agents=plan.agents, agent_processes=plan.agent_processes,
            workers=plan.workers, clients=counts, absences=self._absences, kills=dict(self._kills),
            empty=(self._empty, empty), with_agents=(before, after), most_bytes=self._most_bytes,
            idle_cpu=idle_cpu, busy_cpu=busy_cpu, left=left, load=f"{os.getloadavg()[2]:.1f}",
        )  # fmt: skip

    def close(self) -> None:
        for process in self._agents:
            process.stop()
        self._stack.close()

    def _share_of_core(self, work: Callable[[], None]) -> float:
        self.server.look()
        used, began = self.server.cpu_s, time.monotonic()
        work()
        self.server.look()
        return (self.server.cpu_s - used) / (time.monotonic() - began)

    def _under_load(self, counts: ClientCounts) -> None:
        """Run the clients to their end, and kill something now and then."""
        clients = [self._start_clients(number) for number in range(self._plan.client_processes)]
        outputs = [_OutputReader(each) for each in clients]
        over_at = time.monotonic() + self._plan.seconds
        kill_at = time.monotonic() + self._next_kill_s()
        given_up_at = over_at + LAST_WORDS_S + START_S
        while any(each.poll() is None for each in clients):
            time.sleep(0.5)
            now = time.monotonic()
            self._most_bytes = max(self._most_bytes, self.server.look().resident_bytes)
            if now > given_up_at:
                raise SoakFailed("the clients did not end in time")
            if kill_at < now < over_at:
                self._kill_something()
                kill_at = time.monotonic() + self._next_kill_s()
        for each in outputs:
            counts.add(ClientCounts.from_json(each.text()))

    def _next_kill_s(self) -> float:
        return self._random.uniform(0.5, 1.5) * self._plan.kill_every_s

    def _kill_something(self) -> None:
        workers = self.server.workers if self._plan.workers > 1 else []
        if workers and self._random.random() < 1 / 3:
            pid = self._random.choice(workers)
            os.kill(pid, signal.SIGKILL)
            self._kills["workers"] += 1
            self._report(f"killed worker {pid}")
        else:
            number = self._random.randrange(len(self._agents))
            self._agents[number].kill_and_restart()
            self._kills["processes of agents"] += 1
            self._report(f"killed process {number} of agents")

    def _settle(self, before: ServerUse, is_complete: Callable[[], bool]) -> ServerUse:
        """What the server holds once it had the time to notice who has gone, and to give back the rest."""

        def is_settled() -> bool:
            with contextlib.suppress(OSError):
                has_none = not any(self.server.of_connections().values())
                return has_none and is_complete() and self.server.look().descriptors <= before.descriptors
            return False

        until = time.monotonic() + SETTLE_S
        while not is_settled() and time.monotonic() < until:
            time.sleep(0.5)
        time.sleep(GIVE_BACK_S)
        return self.server.look()

    def _start_server(self, keys: Certificates, port: int, health: int, admin: int) -> "subprocess.Popen[bytes]":
        workers = (f"--workers={self._plan.workers}",) if self._plan.workers > 1 else ()
        command = [
            GARBOARD, "tunnel", "server", "--mode=http-connect", f"--uds-name={self._front}", "--server-port=0",
            f"--agent-port={port}", "--agent-bind-address=127.0.0.1", f"--health-port={health}",
            "--health-bind-address=127.0.0.1", f"--admin-port={admin}", f"--cluster-cert={keys.server}",
            f"--cluster-key={keys.server_key}", f"--cluster-ca-cert={keys.ca}", "--proxy-strategies=destHost", "-v=0",
            *workers,
        ]  # fmt: skip
        with (self._folder / "server.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(end_with_children, process)
        return process

    def _start_endpoints(self) -> None:
        command = [sys.executable, "-m", "tools.harness.soak.endpoints", str(self._plan.agents)]
        process = self._program([*command, str(self._endpoint_port)], "endpoints")
        assert process.stdout is not None
        if process.stdout.readline().strip() != "listening":
            raise SoakFailed("the endpoints do not listen; endpoints.log says why")

    def _start_agents(self, keys: Certificates, port: int) -> None:
        plan = self._plan
        for number in range(plan.agents):
            self._absences.left(number, time.monotonic())
        bounds = [plan.agents * each // plan.agent_processes for each in range(plan.agent_processes + 1)]
        for first, end in pairwise(bounds):
            agents = AgentsPlan.of(range(first, end), port, keys, self._random.randrange(1 << 32), plan.lost_every_s)
            self._agents.append(AgentProcess(agents, self._absences, self._kills, self._folder / "agents.log"))

    def _start_clients(self, number: int) -> "subprocess.Popen[str]":
        plan = self._plan
        clients = ClientsPlan(
            front=self._front, endpoint_port=self._endpoint_port, agents=plan.agents,
            connections=plan.connections // plan.client_processes, seconds=plan.seconds, stay_s=plan.stay_s,
            pause_s=plan.pause_s, seed=self._random.randrange(1 << 32),
        )  # fmt: skip
        return self._program([sys.executable, "-m", "tools.harness.soak.clients", clients.as_argument()],
                             f"clients-{number}")  # fmt: skip

    def _program(self, command: list[str], name: str) -> "subprocess.Popen[str]":
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self._stack.callback(_end, process)
        return process


class _OutputReader:
    """What a process prints, read while it runs, so that it never waits for a reader."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._parts: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        self._thread.join()
        if self._process.returncode:
            raise SoakFailed(f"a process of clients ended with status {self._process.returncode}; its log says why")
        return "".join(self._parts)

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._parts.append(self._process.stdout.read())


@contextlib.contextmanager
def running_soak(plan: SoakPlan, folder: Path, report: Report = lambda _line: None) -> Iterator[Soak]:
    """Start a soak, and end all of its processes at the end."""
    soak = Soak(plan, folder, report)
    try:
        yield soak
    finally:
        soak.close()


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()


def _wait(problem: str, is_done: Callable[[], bool], timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() > until:
            raise SoakFailed(f"{problem} after {timeout_s:.0f} s")
        time.sleep(0.1)
