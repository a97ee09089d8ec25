"""Our tunnel beside the stock one, alternating in one run: throughput, latency, connects, handshakes, memory, a
stalled reader; and one worker beside four (`scaling`), each held to a tenth of a core.

    python -m benchmarks.tunnel.run [--rounds 5] [--only echo,stall] [--pairs ours,compiled,stock] [--workers 1,2]

Clients use an HTTP-CONNECT front end on a unix socket; server and agent speak TLS on loopback. The ratios are what
counts: all pairs share the machine and its noise.
"""

import argparse
import contextlib
import json
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import machine
from benchmarks.tunnel import load
from benchmarks.tunnel.pairs import Pair, running_pair
from benchmarks.tunnel.report import Found, write_report
from benchmarks.tunnel.scaling import scaling, scaling_report
from garboard.host import Machine
from garboard.lab.binaries import Binaries
from tools.harness.certificates import Certificates, make_certificates

MB = 1_000_000
BULK_BYTES = 400 * MB
ECHO_S = 3.0
NEIGHBOURS = 100
CONNECTS = 3000
HANDSHAKES = 500
PAIRS = ("ours", "stock", "ours-stock", "stock-ours")


def bulk(pair: Pair, ports: load.Ports) -> Found:
    found: Found = {}
    for streams in (1, 32):
        for name, move, port in (("down", load.download, ports.source), ("up", load.upload, ports.sink)):
            used = pair.cpu_s()
            found[f"bulk {name}, {streams} streams, MB/s"] = move(pair.front, port, streams, BULK_BYTES) / MB
            found[f"bulk {name}, {streams} streams, CPU s/GB"] = (pair.cpu_s() - used) / BULK_BYTES * 1e9
    return found


def echo(pair: Pair, ports: load.Ports) -> Found:
    found: Found = {}
    for count in (1, 64):
        used = pair.cpu_s()
        seen = load.echo(pair.front, ports.echo, count, ECHO_S)
        found[f"echo, {count} connections, CPU us"] = (pair.cpu_s() - used) / (seen.per_second * ECHO_S) * 1e6
        found[f"echo, {count} connections, p50 us"] = seen.p50_us
        found[f"echo, {count} connections, p99 us"] = seen.p99_us
        found[f"echo, {count} connections, per s"] = seen.per_second
    return found


def connects(pair: Pair, ports: load.Ports) -> Found:
    used = pair.cpu_s()
    per_second = load.connects_per_second(pair.front, ports.echo, 16, CONNECTS)
    return {"connects per s": per_second, "connects, CPU us": (pair.cpu_s() - used) / CONNECTS * 1e6}


def handshakes(pair: Pair, _ports: load.Ports) -> Found:
    used = pair.cpu_s()
    per_second = load.handshakes_per_second(pair.agent_port, pair.keys, 4, HANDSHAKES)
    return {"handshakes per s": per_second, "handshakes, CPU us": (pair.cpu_s() - used) / HANDSHAKES * 1e6}


def memory(pair: Pair, ports: load.Ports) -> Found:
    """On processes of its own: what an empty pair takes, and what every idle connection adds."""
    time.sleep(1)
    empty = pair.resident_bytes()
    found = {"memory, empty, MB": empty / MB}
    with contextlib.ExitStack() as stack:
        held = 0
        for count in (1000, 10_000):
            stack.enter_context(load.connections(pair.front, ports.echo, count - held))
            held = count
            time.sleep(1)
            found[f"memory, {count} idle, KB each"] = (pair.resident_bytes() - empty) / count / 1000
            found[f"memory, {count} idle, MB in all"] = pair.resident_bytes() / MB
    return found


def stall(pair: Pair, ports: load.Ports) -> Found:
    """A hundred quiet neighbours, before and while one client reads nothing of an endless source."""
    with load.connections(pair.front, ports.echo, NEIGHBOURS) as neighbours:
        before = load.echo_on(neighbours, 4.0, pause_s=0.2)
        pair.reset_peak()
        stalled = load.connect(pair.front, ports.source)
        stalled.send(b"g")
        try:
            time.sleep(0.2)
            with_stall = load.echo_on(neighbours, 6.0, pause_s=0.2)
        except (ConnectionError, OSError):
            with_stall = load.Latency(float("inf"), float("inf"), 0.0, NEIGHBOURS)
        finally:
            stalled.close()
    return {
        "stall, neighbours' p99 before, us": before.p99_us,
        "stall, neighbours' p99 during, us": with_stall.p99_us,
        "stall, times worse": with_stall.p99_us / before.p99_us,
        "stall, neighbours without an answer": with_stall.errors,
        "stall, most memory during, MB": pair.peak_bytes() / MB,
    }


MEASURES: dict[str, Callable[[Pair, load.Ports], Found]] = {
    "bulk": bulk, "echo": echo, "connects": connects, "handshakes": handshakes, "stall": stall, "memory": memory,
}  # fmt: skip
FRESH = ("memory", "stall")  # these leave traces in their processes, or are disturbed by those of others
OF_OURS_AND_STOCK = ("echo", "connects", "handshakes", "memory", "stall")
SCALING = "scaling"


class Surroundings(NamedTuple):
    """Programs, certificates, a folder for sockets and logs, and what is behind the tunnel."""

    binaries: Binaries
    keys: Certificates
    folder: Path
    ports: load.Ports


@contextlib.contextmanager
def backends() -> Iterator[load.Ports]:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.tunnel.backends"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield load.Ports(*map(int, process.stdout.readline().split()))
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def surroundings() -> Iterator[Surroundings]:
    """What all pairs share."""
    with tempfile.TemporaryDirectory() as folder_name, backends() as ports:
        folder = Path(folder_name)
        yield Surroundings(Binaries(Machine(), report=print), make_certificates(folder), folder, ports)


Samples = dict[str, list[Found]]  # by pair


def run(rounds: int, names: list[str], around: Surroundings, samples: Samples) -> list[str]:
    """Measure the pairs in turns, into `samples`, and tell what failed: the other measures go on without it."""
    failures: list[str] = []
    for number in range(rounds):
        for name in names:
            for pair_name in samples:
                if name in OF_OURS_AND_STOCK and "-" in pair_name and name != "stall":
                    continue
                if name == "memory" and number >= 3:
                    continue  # it hardly varies
                try:
                    with running_pair(pair_name, around.binaries, around.keys, around.folder) as pair:
                        samples[pair_name].append(MEASURES[name](pair, around.ports))
                except OSError as error:
                    failures.append(f"round {number + 1}, {name} of {pair_name}: {error!r}")
                print(".", end="", flush=True, file=sys.stderr)
    return failures


def _medians(samples: list[Found]) -> Found:
    names = dict.fromkeys(name for sample in samples for name in sample)
    return {name: statistics.median(each[name] for each in samples if name in each) for name in names}


def main() -> int:
    options = _options()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    socket.setdefaulttimeout(load.TIMEOUT_S)
    names, failures = options.only.split(","), []
    build = Path("build/benchmarks")
    build.mkdir(parents=True, exist_ok=True)
    conditions = f"{machine()}; median of {options.rounds} rounds"
    (build / "tunnel.md").write_text("")
    with surroundings() as around:
        if measures := [name for name in names if name != SCALING]:
            samples: Samples = {pair: [] for pair in _pair_names(options)}
            try:
                failures = run(options.rounds, measures, around, samples)
            finally:  # also if it was interrupted: what has been measured is told
                found = {pair: _medians(each) for pair, each in samples.items()}
                (build / "tunnel.json").write_text(json.dumps(found, indent=2) + "\n")
                _report(build, write_report(found, conditions))
        if SCALING in names:
            by_count, how = scaling(options.rounds, options.share, *around)
            (build / "tunnel-scaling.json").write_text(json.dumps(by_count, indent=2) + "\n")
            _report(build, f"{conditions}.\n\n{scaling_report(by_count, options.share, how)}")
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _report(build: Path, text: str) -> None:
    """At once, so that a failure later takes nothing away."""
    print(file=sys.stderr)
    print(text, flush=True)
    with (build / "tunnel.md").open("a") as report:
        report.write(f"{text}\n")


def _pair_names(options: argparse.Namespace) -> list[str]:
    """The pairs, and ours with each number of workers beside the first."""
    more = [f"ours:{count}" for count in options.workers.split(",") if count != "1"]
    names = options.pairs.split(",")
    at = names.index("ours") + 1 if "ours" in names else 0
    return [*names[:at], *more, *names[at:]]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join((*MEASURES, SCALING)))
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--workers", default="1", help="1,2 measures our pair with two workers, too")
    parser.add_argument(
        "--share", type=float, default=0.1, help="of a core, for each worker that is measured by scaling"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
