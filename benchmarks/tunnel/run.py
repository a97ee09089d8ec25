"""Our tunnel beside the stock one, in turns in one run: throughput, latency, connects, memory, a stalled reader.

    python -m benchmarks.tunnel.run [--rounds 5] [--only echo,stall] [--pairs ours,stock]

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

from benchmarks.measure import machine
from benchmarks.tunnel import load
from benchmarks.tunnel.pairs import Pair, running_pair
from benchmarks.tunnel.report import Found, write_report
from garboard.host import Machine
from garboard.lab.binaries import Binaries
from tests.rpc.certificates import make_certificates

MB = 1_000_000
BULK_BYTES = 400 * MB
ECHO_S = 3.0
NEIGHBOURS = 100
CONNECTS = 3000
PAIRS = ("ours", "stock", "ours-stock", "stock-ours")


class Ports:
    """Of the processes behind the tunnel."""

    def __init__(self, echo: int, source: int, sink: int) -> None:
        self.echo, self.source, self.sink = echo, source, sink


def bulk(pair: Pair, ports: Ports) -> Found:
    found: Found = {}
    for streams in (1, 32):
        for name, move, port in (("down", load.download, ports.source), ("up", load.upload, ports.sink)):
            used = pair.cpu_s()
            found[f"bulk {name}, {streams} streams, MB/s"] = move(pair.front, port, streams, BULK_BYTES) / MB
            found[f"bulk {name}, {streams} streams, CPU s/GB"] = (pair.cpu_s() - used) / BULK_BYTES * 1e9
    return found


def echo(pair: Pair, ports: Ports) -> Found:
    found: Found = {}
    for count in (1, 64):
        used = pair.cpu_s()
        seen = load.echo(pair.front, ports.echo, count, ECHO_S)
        found[f"echo, {count} connections, CPU us"] = (pair.cpu_s() - used) / (seen.per_second * ECHO_S) * 1e6
        found[f"echo, {count} connections, p50 us"] = seen.p50_us
        found[f"echo, {count} connections, p99 us"] = seen.p99_us
        found[f"echo, {count} connections, per s"] = seen.per_second
    return found


def connects(pair: Pair, ports: Ports) -> Found:
    used = pair.cpu_s()
    per_second = load.connects_per_second(pair.front, ports.echo, 16, CONNECTS)
    return {"connects per s": per_second, "connects, CPU us": (pair.cpu_s() - used) / CONNECTS * 1e6}


def memory(pair: Pair, ports: Ports) -> Found:
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


def stall(pair: Pair, ports: Ports) -> Found:
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


MEASURES: dict[str, Callable[[Pair, Ports], Found]] = {
    "bulk": bulk, "echo": echo, "connects": connects, "stall": stall, "memory": memory,
}  # fmt: skip
FRESH = ("memory", "stall")  # these leave traces in their processes, or are disturbed by those of others
OF_OURS_AND_STOCK = ("echo", "connects", "memory", "stall")


@contextlib.contextmanager
def backends() -> Iterator[Ports]:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.tunnel.backends"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Ports(*map(int, process.stdout.readline().split()))
    finally:
        process.kill()
        process.wait()


def run(rounds: int, names: list[str], pair_names: list[str]) -> dict[str, Found]:
    """Medians by pair and measure."""
    samples: dict[str, list[Found]] = {pair: [] for pair in pair_names}
    with tempfile.TemporaryDirectory() as folder_name, backends() as ports:
        folder = Path(folder_name)
        keys = make_certificates(folder)
        binaries = Binaries(Machine(), report=print)
        for number in range(rounds):
            for name in names:
                for pair_name in pair_names:
                    if name in OF_OURS_AND_STOCK and "-" in pair_name and name != "stall":
                        continue
                    if name == "memory" and number >= 3:
                        continue  # it hardly varies
                    with running_pair(pair_name, binaries, keys, folder) as pair:
                        samples[pair_name].append(MEASURES[name](pair, ports))
                        print(".", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    return {pair: _medians(found) for pair, found in samples.items()}


def _medians(samples: list[Found]) -> Found:
    names = dict.fromkeys(name for sample in samples for name in sample)
    return {name: statistics.median(each[name] for each in samples if name in each) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--pairs", default=",".join(PAIRS))
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    socket.setdefaulttimeout(load.TIMEOUT_S)
    found = run(options.rounds, options.only.split(","), options.pairs.split(","))
    build = Path("build/benchmarks")
    build.mkdir(parents=True, exist_ok=True)
    (build / "tunnel.json").write_text(json.dumps(found, indent=2) + "\n")
    text = write_report(found, f"{machine()}; median of {options.rounds} rounds")
    (build / "tunnel.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
