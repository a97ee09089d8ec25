"""Time init, a control-plane join and a worker join by garboard and by kubeadm, alternating, on fresh nodes of a lab.

    make benchmark-lifecycle

A round is a new lab of three bare nodes that one of the two makes a cluster of; the rounds of both alternate, and every
time is that of the whole program inside its node, begun when what came before has come to rest. Needs root. Writes
build/benchmarks/lifecycle.json and lifecycle.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import machine as measured_on
from benchmarks.measure import median
from garboard.cli.lab.wiring import labs
from garboard.lab.bootstrap import ClusterBootstrap, new_secrets
from garboard.lab.kubeadm import DISCOVERY, init_documents, join_documents
from garboard.model import DEFAULT_VERSION
from tools.harness.node_program import garboard_for_nodes

GARBOARD = Path(sys.executable).parent / "garboard"
RESULTS = Path("build/benchmarks")
LAB = f"benchmark-{os.getpid()}"
CONFIG = "/etc/kubeadm.yaml"
INIT, CONTROL_PLANE, WORKER = "init", "control-plane join", "worker join"
# At most this many times kubeadm's time, or the benchmark fails; and what is aimed at.
LIMITS = {INIT: 1.0, CONTROL_PLANE: 1.0, WORKER: 1.2}
GOALS = {INIT: 0.8, CONTROL_PLANE: 0.65}
# Three seconds with less than this share of the processors at work, but no longer than that.
REST_S, REST_SHARE, REST_WITHIN_S = 3, 0.3, 30.0


@dataclass(frozen=True, slots=True)
class Timed:
    """One program run to its end in a node; `load` is what the machine had to do besides, as it began."""

    tool: str
    operation: str
    wall_s: float
    load: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="rounds of each tool, alternating")
    parser.add_argument("--kubernetes-version", default=str(DEFAULT_VERSION))
    asked = parser.parse_args()
    rows: list[Timed] = []
    with garboard_for_nodes() as garboard:
        for _ in range(asked.runs):
            for tool, command in (("kubeadm", ("kubeadm",)), ("garboard", garboard)):
                rows += run_round(tool, command, asked.kubernetes_version)
                print(*rows[-3:], sep="\n", file=sys.stderr)
    report(rows, asked.runs, asked.kubernetes_version)


def run_round(tool: str, command: Sequence[str], version: str) -> list[Timed]:
    """Make a cluster of two control planes and a worker with one tool."""
    shape = ("--control-planes", "2", "--workers", "1", "--kubernetes-version", version)
    subprocess.run([GARBOARD, "lab", "up", "--name", LAB, "--by", "none", *shape], check=True, capture_output=True)
    try:
        home = labs()
        record = home.records.require(LAB)
        yours, needs = home.records.read_given(home.files(LAB))
        nodes = home.bootstrap(record, needs, yours)
        secrets, lab = new_secrets(), record.lab
        first, second, worker = lab.nodes
        nodes.place(first, CONFIG, init_documents(lab, first, secrets, needs, {}).encode())
        rows = [timed(nodes, tool, INIT, 0, [*command, "init", "--config", CONFIG, "--upload-certs"])]
        for index, (node, operation) in enumerate(((second, CONTROL_PLANE), (worker, WORKER)), start=1):
            nodes.place(node, DISCOVERY, nodes._discovery().encode())  # noqa: SLF001 - as the lab itself joins
            nodes.place(node, CONFIG, join_documents(lab, node, secrets, {}).encode())
            rows.append(timed(nodes, tool, operation, index, [*command, "join", "--config", CONFIG]))
        return rows
    finally:
        subprocess.run([GARBOARD, "lab", "down", "--name", LAB], check=False, capture_output=True)


def timed(nodes: ClusterBootstrap, tool: str, operation: str, index: int, command: list[str]) -> Timed:
    entered = nodes.enter(nodes.lab.nodes[index], command)
    wait_for_rest()
    load, began = os.getloadavg()[0], time.perf_counter()
    done = subprocess.run(entered, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{operation} by {tool} failed:\n{done.stderr[-4000:]}")
    return Timed(tool, operation, round(wall_s, 3), round(load, 1))


def wait_for_rest() -> None:
    """Wait until the processors have little to do: a node that has just joined starts its pods for a while."""
    give_up_at = time.monotonic() + REST_WITHIN_S
    quiet_s = 0
    while quiet_s < REST_S and time.monotonic() < give_up_at:
        busy, all_time = processor_ticks()
        time.sleep(1)
        busy_after, all_after = processor_ticks()
        quiet_s = quiet_s + 1 if busy_after - busy < REST_SHARE * (all_after - all_time) else 0


def processor_ticks() -> tuple[int, int]:
    """Return the ticks that the processors of this machine have worked, and all of them."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def report(rows: list[Timed], runs: int, version: str) -> None:
    text = table(rows, runs, version)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "lifecycle.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    (RESULTS / "lifecycle.md").write_text(text)
    print(text)
    late = [operation for operation, limit in LIMITS.items() if ratio(rows, operation) > limit]
    if late:
        raise SystemExit(f"slower than allowed beside kubeadm: {', '.join(late)}")


def ratio(rows: list[Timed], operation: str) -> float:
    """Return garboard's median as a multiple of kubeadm's in the same run."""
    return median(times(rows, "garboard", operation)) / median(times(rows, "kubeadm", operation))


def times(rows: list[Timed], tool: str, operation: str) -> list[float]:
    return [row.wall_s for row in rows if (row.tool, row.operation) == (tool, operation)]


def table(rows: list[Timed], runs: int, version: str) -> str:
    loads = [row.load for row in rows]
    how = f"Kubernetes {version}; median (and quickest) of {runs} rounds each, alternating; {measured_on()}"
    lines = [
        f"{how}; load average {min(loads)} to {max(loads)}; {datetime.now(UTC).date().isoformat()}.",
        "",
        "| operation | garboard | kubeadm | time, kubeadm = 1 | limit | goal |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for operation, limit in LIMITS.items():
        shown = (
            f"{median(found):.1f} s ({min(found):.1f} s)"
            for found in (times(rows, tool, operation) for tool in ("garboard", "kubeadm"))
        )
        found = ratio(rows, operation)
        lines.append(f"| {operation} | {' | '.join(shown)} | {found:.2f} | {limit} | {verdict(operation, found)} |")
    return "\n".join(lines) + "\n"


def verdict(operation: str, found: float) -> str:
    goal = GOALS.get(operation)
    return "" if goal is None else f"{goal}, {'met' if found <= goal else 'missed'}"


if __name__ == "__main__":
    main()
