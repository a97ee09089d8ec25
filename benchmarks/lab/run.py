"""Time labs from the command to Ready: bare nodes, a cluster of one node, three control planes and a worker.

    make benchmark-lab

Each shape is made cold (programs there, images not yet) and warm, several times; every run is kept with the load that
others put on the machine, and the table shows the quickest and the median. Writes build/benchmarks/lab.json and lab.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import machine, median
from garboard.cli.lab.wiring import labs

GARBOARD = Path(sys.executable).parent / "garboard"
RESULTS = Path("build/benchmarks")
ONE = ["--control-planes", "1", "--workers", "0"]
SHAPES = {
    "1 bare node": ["--by", "none", *ONE],
    "4 bare nodes": ["--by", "none"],
    "1 node": ONE,
    "3 control planes, 1 worker": [],
}
OURS = ("preflight", "programs and images", "supervisor", "nodes")
WAITING = "wait until ready"
# Seconds from the command to Ready, limits that the project has set itself; the last is for each node.
GOALS_S = {"1 node": 12.0, "3 control planes, 1 worker": 60.0}
OURS_PER_NODE_GOAL_S = 1.0


@dataclass(frozen=True, slots=True)
class LabRun:
    """One lab from the command to Ready and down again."""

    total_s: float
    ours_s: float
    kubeadm_s: float
    waiting_s: float
    down_s: float
    cpu_s: float
    memory_mib: float
    nodes: int
    load: float


def run_once(shape: list[str], home: Path | None = None) -> LabRun:
    """Make a lab, measure it and remove it."""
    environment = {**os.environ, **({"GARBOARD_LAB_HOME": str(home)} if home else {})}

    def garboard(*arguments: str) -> Any:
        ended = subprocess.run([GARBOARD, "lab", *arguments], env=environment, stdout=subprocess.PIPE, check=True)
        return json.loads(ended.stdout) if "json" in arguments else None

    load = os.getloadavg()[0]
    began = time.monotonic()
    record = garboard("up", "--name", "benchmark", "-o", "json", *shape)
    total = time.monotonic() - began
    cpu = labs(home=home).groups("benchmark").cpu_seconds() or 0.0
    (lab,) = [each for each in garboard("list", "-o", "json") if each["name"] == "benchmark"]
    began = time.monotonic()
    garboard("down", "--name", "benchmark")
    down = time.monotonic() - began
    timings = record["timings"]
    ours, waiting = sum(timings[name] for name in OURS), timings.get(WAITING, 0.0)
    kubeadm = timings["total"] - ours - waiting if WAITING in timings else 0.0
    # What is left of the wall time is the start of our own program.
    ours += total - timings["total"]
    return LabRun(total, ours, kubeadm, waiting, down, cpu, lab["memoryBytes"] / 2**20, lab["nodes"], load)


def run_cold(shape: list[str]) -> LabRun:
    """The first lab of a machine on which the programs have been made but no image yet."""
    with tempfile.TemporaryDirectory(prefix="benchmark-lab-", dir="/var/lib") as home:
        return run_once(shape, Path(home))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="warm runs of each shape")
    parser.add_argument("--shape", choices=list(SHAPES), action="append", help="only this shape")
    options = parser.parse_args()
    shapes = options.shape or list(SHAPES)
    subprocess.run([GARBOARD, "lab", "binaries", "get"], stdout=subprocess.DEVNULL, check=True)
    run_once(SHAPES["1 bare node"])  # the images of the ordinary home
    cold = {name: run_cold(SHAPES[name]) for name in shapes}
    warm = {name: [run_once(SHAPES[name]) for _ in range(options.runs)] for name in shapes}
    report(cold, warm)


def report(cold: dict[str, LabRun], warm: dict[str, list[LabRun]]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "cold": {name: asdict(run) for name, run in cold.items()},
        "warm": {name: [asdict(run) for run in runs] for name, runs in warm.items()},
    }
    (RESULTS / "lab.json").write_text(json.dumps(results, indent=2) + "\n")
    text = table(results["machine"], str(results["date"]), cold, warm)
    (RESULTS / "lab.md").write_text(text)
    print(text)


def table(where: object, date: str, cold: dict[str, LabRun], warm: dict[str, list[LabRun]]) -> str:
    lines = [
        f"{where}; {date}. Warm: quickest run (median), with the load average before the quickest.",
        "",
        "| lab | cold | warm | our part | kubeadm | until Ready | processor time | down | memory | load | goal |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, runs in warm.items():
        best = min(runs, key=lambda run: run.total_s)
        cells = [
            name,
            f"{cold[name].total_s:.1f} s",
            f"{best.total_s:.1f} s ({median([run.total_s for run in runs]):.1f} s)",
            f"{best.ours_s:.2f} s",
            f"{best.kubeadm_s:.1f} s",
            f"{best.waiting_s:.1f} s",
            f"{best.cpu_s:.1f} s",
            f"{best.down_s:.1f} s",
            f"{median([run.memory_mib for run in runs]):.0f} MiB",
            f"{best.load:.1f}",
            verdict(name, best),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verdict(name: str, run: LabRun) -> str:
    """Hold the quickest run against the goals."""
    each = run.ours_s / run.nodes
    said = [f"our part {each:.2f} s a node of {OURS_PER_NODE_GOAL_S:.0f} s"]
    if name in GOALS_S:
        said.append(f"{run.total_s:.1f} s of {GOALS_S[name]:.0f} s")
    met = each <= OURS_PER_NODE_GOAL_S and run.total_s <= GOALS_S.get(name, run.total_s)
    return f"{'met' if met else 'missed'}: {', '.join(said)}"


if __name__ == "__main__":
    main()
