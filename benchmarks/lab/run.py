"""Time labs from the command to Ready: bare nodes, a cluster of one node, three control planes and a worker.

    make benchmark-lab

Each shape is made cold (programs there, images not yet) and warm, several times, and clusters also from a snapshot that
was taken right after one was made; every run is kept with the load that others put on the machine, and the table shows
the quickest and the median. Writes build/benchmarks/lab.json and lab.md.
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
from garboard.lab.cgroups import LabGroups

GARBOARD = Path(sys.executable).parent / "garboard"
RESULTS = Path("build/benchmarks")
ONE = ["--control-planes", "1", "--workers", "0"]
SHAPES = {
    "1 bare node": ["--by", "none", *ONE],
    "4 bare nodes": ["--by", "none"],
    "1 node": ONE,
    "3 control planes, 1 worker": [],
}
# Rows of labs from snapshots, by the shape that is kept.
SNAPSHOTS = {f"{name}, from a snapshot": name for name in ("1 node", "3 control planes, 1 worker")}
KEPT_AS = "benchmark"
OURS = ("preflight", "programs and images", "supervisor", "files and supervisor", "nodes")
WAITING = "wait until ready"
# Seconds from the command to Ready, limits that the project has set itself; the last is for each node.
GOALS_S = {
    "1 node": 12.0,
    "3 control planes, 1 worker": 60.0,
    "1 node, from a snapshot": 8.0,
    "3 control planes, 1 worker, from a snapshot": 15.0,
}
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
    cpu = cpu_seconds(labs(home=home).groups("benchmark"))
    (lab,) = [each for each in garboard("list", "-o", "json") if each["name"] == "benchmark"]
    began = time.monotonic()
    garboard("down", "--name", "benchmark")
    down = time.monotonic() - began
    timings = record["timings"]
    ours, waiting = sum(timings.get(name, 0.0) for name in OURS), timings.get(WAITING, 0.0)
    kubeadm = max(timings["total"] - ours - waiting, 0.0) if WAITING in timings and "--snapshot" not in shape else 0.0
    # What is left of the wall time is the start of our own program.
    ours += total - timings["total"]
    return LabRun(total, ours, kubeadm, waiting, down, cpu, lab["memoryBytes"] / 2**20, lab["nodes"], load)


def cpu_seconds(groups: LabGroups) -> float:
    """Return the processor time that the processes of a lab have used; 0 where the kernel does not count it."""
    for hierarchy in groups.hierarchies:
        group = groups.group(hierarchy)
        if (group / "cpuacct.usage").exists():
            return int((group / "cpuacct.usage").read_text()) / 1e9
        if hierarchy.is_v2 and "usage_usec" in (text := (group / "cpu.stat").read_text()):
            return int(text.split()[1]) / 1e6
    return 0.0


def run_cold(shape: list[str]) -> LabRun:
    """The first lab of a machine on which the programs have been made but no image yet."""
    with tempfile.TemporaryDirectory(prefix="benchmark-lab-", dir="/var/lib") as home:
        return run_once(shape, Path(home))


def run_from_snapshot(shape: list[str], runs: int) -> list[LabRun]:
    """Keep a lab right after it was made, and start it again several times."""
    lab: list[str | Path] = [GARBOARD, "lab"]
    subprocess.run([*lab, "up", "benchmark", *shape], stdout=subprocess.DEVNULL, check=True)
    try:
        subprocess.run([*lab, "snapshot", "benchmark", "--as", KEPT_AS], check=True)
    finally:
        subprocess.run([*lab, "down", "--name", "benchmark"], check=True)
    try:
        return [run_once(["--snapshot", KEPT_AS]) for _ in range(runs)]
    finally:
        subprocess.run([*lab, "snapshot", "--remove", KEPT_AS], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="warm runs of each shape")
    parser.add_argument("--shape", choices=[*SHAPES, *SNAPSHOTS], action="append", help="only this shape")
    options = parser.parse_args()
    shapes = [name for name in SHAPES if name in (options.shape or SHAPES)]
    kept = {name: SHAPES[shape] for name, shape in SNAPSHOTS.items() if name in (options.shape or SNAPSHOTS)}
    subprocess.run([GARBOARD, "lab", "binaries", "get"], stdout=subprocess.DEVNULL, check=True)
    run_once(SHAPES["1 bare node"])  # the images of the ordinary home
    cold = {name: run_cold(SHAPES[name]) for name in shapes}
    warm = {name: [run_once(SHAPES[name]) for _ in range(options.runs)] for name in shapes}
    warm |= {name: run_from_snapshot(shape, options.runs) for name, shape in kept.items()}
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
            f"{cold[name].total_s:.1f} s" if name in cold else "",
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
    goals = {"": (run.total_s, GOALS_S[name])} if name in GOALS_S else {}
    if name not in SNAPSHOTS:  # there, our part is all of it
        goals["our part a node "] = (run.ours_s / run.nodes, OURS_PER_NODE_GOAL_S)
    is_met = all(taken <= goal for taken, goal in goals.values())
    said = (f"{what}{taken:.2f} s of {goal:.0f} s" for what, (taken, goal) in goals.items())
    return f"{'met' if is_met else 'missed'}: {', '.join(said)}"


if __name__ == "__main__":
    main()
