"""Have garboard's controller take installed clusters on, and a plain kopf loop the same ones; count what each costs.

    make benchmark-controllers [COUNT=5000]

Each has an API server and an etcd of its own, with ClusterDeployments that no controller has seen. Counted is what
the API server's audit log says of its user. Writes build/benchmarks/controllers.json and controllers.md.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import machine
from garboard.host import Machine
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.values import dataclass
from tools.harness.fleet_load import FleetServer, Requests, fleet_server, memory_mib

RESULTS: Final = Path("build/benchmarks")
GARBOARD: Final = Path(sys.executable).with_name("garboard")
WITHIN_S: Final = 1800.0
MOST_REQUESTS, MOST_MIB = 2, 300
OF_ALL = 60  # requests that are made once, however many clusters there are


@dataclass(frozen=True, slots=True)
class Contender:
    """One controller: its command, its environment, how many objects it has looked at, and the file that says so."""

    name: str
    command: tuple[str | Path, ...]
    environment: Mapping[str, str]
    looked_at: Callable[[], int]
    told_in: Path
    log: Path

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        self.told_in.unlink(missing_ok=True)
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [str(word) for word in self.command], stdout=log, stderr=log, env={**os.environ, **self.environment}
            )
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:  # kopf waits for each of its objects
                    process.kill()
                    process.wait()


def garboard(server: FleetServer, folder: Path) -> Contender:
    log = folder / "garboard.log"

    def looked_at() -> int:
        urls = re.findall(r"metrics: (\S+)", log.read_text())
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            text = direct.open(urls[-1], timeout=30).read().decode()
        except (OSError, IndexError):
            return 0
        return int(re.findall(r"^garboard_fleet_decisions_total (\d+)", text, re.MULTILINE)[-1])

    command = (
        GARBOARD, "fleet", "controller", "--kubeconfig", server.kubeconfig, "--work", folder / "work",
        "--leader-elect", "--metrics-address", "127.0.0.1:0",
    )  # fmt: skip
    return Contender("garboard", command, {}, looked_at, log, log)


def kopf(server: FleetServer, folder: Path, program: Path) -> Contender:
    resumed = folder / "resumed"

    def looked_at() -> int:
        return resumed.stat().st_size if resumed.exists() else 0

    command = (program, "run", "--standalone", "--all-namespaces", Path(__file__).with_name("kopf_loop.py"))
    environment = {"KUBECONFIG": str(server.kubeconfig), "RESUMED": str(resumed)}
    return Contender("kopf", command, environment, looked_at, resumed, folder / "kopf.log")


def wait_until_so(process: "subprocess.Popen[bytes]", contender: Contender, is_so: Callable[[], bool]) -> None:
    """Wait until something holds, and mostly leave the machine to the controller; one that ends ends the benchmark."""
    give_up_at = time.monotonic() + WITHIN_S
    while True:
        asked_at = time.monotonic()
        if is_so():
            return
        if process.poll() is not None:
            raise SystemExit(f"{contender.name} has ended:\n{contender.log.read_text()[-2000:]}")
        if asked_at > give_up_at:
            raise SystemExit(f"{contender.name}: not all clusters are taken on after {WITHIN_S:.0f} s")
        time.sleep(max(0.2, 4 * (time.monotonic() - asked_at)))


def measured(server: FleetServer, contender: Contender, count: int, quiet_s: float) -> dict[str, Any]:
    """Have a controller take everything on, then leave it alone for a while, then begin it anew."""
    began = datetime.now(UTC)
    with contender.running() as process:
        wait_until_so(process, contender, lambda: server.settled() == count)
        time.sleep(quiet_s / 6)  # what it still writes although every cluster is as it should be
        settled, first_s = server.requests(), (server.last_write_at() - began).total_seconds()
        time.sleep(quiet_s)
        quiet = server.requests().since(settled)
        memory, cpu_s = memory_mib(process.pid), _cpu_s(process.pid)
    before, began_again = server.requests(), time.monotonic()
    with contender.running() as process:
        wait_until_so(process, contender, lambda: contender.looked_at() >= count)
        again_s = time.monotonic() - began_again
        time.sleep(quiet_s / 6)
        if process.poll() is not None:
            raise SystemExit(f"{contender.name} has ended:\n{contender.log.read_text()[-2000:]}")
        again, memory_again = server.requests().since(before), memory_mib(process.pid)
    return {
        "first_s": round(first_s, 1),
        "requests_each": round((settled.total() - settled.of_leases) / count, 2),
        "writes_each": round(settled.writes / count, 2),
        "requests": _by_kind(settled),
        "quiet_writes": quiet.writes,
        "quiet_leases": quiet.of_leases,
        "cpu_s": round(cpu_s, 1),
        "memory_mib": round(max(memory, memory_again)),
        "again_s": round(again_s, 1),
        "again_writes": again.writes,
    }


def _by_kind(found: Requests) -> dict[str, int]:
    return {f"{verb} {what}": number for (verb, what), number in found.most_common(12)}


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_all(program: Path | None, count: int, quiet_s: float) -> dict[str, Any]:
    binaries = Binaries(Machine(), report=print)
    found: dict[str, Any] = {}
    for name in ("garboard", *(["kopf"] if program else [])):
        with tempfile.TemporaryDirectory(prefix="garboard-benchmark-") as text:
            folder = Path(text)
            with fleet_server(binaries, str(DEFAULT_VERSION), folder) as server:
                server.write_clusters(count)
                contender = kopf(server, folder, program) if name == "kopf" and program else garboard(server, folder)
                found[name] = measured(server, contender, count, quiet_s)
                print(json.dumps({name: found[name]}), file=sys.stderr)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "clusters": count,
        "quiet_s": quiet_s,
        "controllers": found,
    }


def table(results: dict[str, Any]) -> str:
    found = results["controllers"]
    rows = (
        ("until all are settled", "first_s", "s"),
        ("requests for each cluster", "requests_each", ""),
        ("of these, writes", "writes_each", ""),
        (f"writes in {results['quiet_s']:.0f} s afterwards, without the Lease", "quiet_writes", ""),
        ("processor time of all that", "cpu_s", "s"),
        ("begun anew: all looked at after", "again_s", "s"),
        ("writes then", "again_writes", ""),
        ("memory at most", "memory_mib", "MiB"),
    )
    lines = [
        f"{results['clusters']} installed ClusterDeployments; {results['machine']}; {results['date']}.",
        "",
        f"| what | {' | '.join(found)} |",
        f"| --- |{' ---: |' * len(found)}",
    ]
    for title, key, unit in rows:
        lines.append(f"| {title} | {' | '.join(f'{each[key]} {unit}'.strip() for each in found.values())} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="ClusterDeployments (default: 5000)")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds of the steady state (default: 60)")
    parser.add_argument("--kopf", type=Path, help="kopf's program; without it garboard is measured alone")
    options = parser.parse_args()
    results = run_all(options.kopf, options.count, options.quiet)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "controllers.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "controllers.md").write_text(table(results))
    print(table(results))
    ours = results["controllers"]["garboard"]
    most = MOST_REQUESTS + OF_ALL / results["clusters"]
    missed = [
        *(["more than 2 requests for each cluster"] if ours["requests_each"] > most else []),
        *([f"more than {MOST_MIB} MiB"] if ours["memory_mib"] > MOST_MIB else []),
        *(["it writes in the steady state"] if ours["quiet_writes"] or ours["again_writes"] else []),
    ]
    if missed:
        raise SystemExit(f"goals missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
