"""Plan changes for a snapshot of 3 control planes and 300 workers: is it within 2 s and 200 MiB?"""

import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import Run, machine, measure, median
from garboard.change.snapshot import snapshot_text
from tools.harness.cluster_snapshots import f2

GARBOARD = Path(sys.executable).with_name("garboard")
RESULTS = Path("build/benchmarks")
WORKERS, GOAL_S, GOAL_MIB = 300, 2.0, 200.0
EDITS = {
    "a kubelet field, off the nodes": ("unseen", "KubeletConfiguration:maxPods=250"),
    "a kubelet field, every file seen": ("seen", "KubeletConfiguration:maxPods=250"),
    "the mode of kube-proxy": ("unseen", "KubeProxyConfiguration:mode=nftables"),
    "another registry": ("unseen", "imageRepository=mirror.example.com/k8s"),
}


def measure_plans(runs: int) -> list[str]:
    """Time the plans, write the results, and return which goals are missed."""
    measured: dict[str, list[Run]] = {name: [] for name in EDITS}
    with tempfile.TemporaryDirectory() as folder:
        names = tuple(f"w{number}" for number in range(1, WORKERS + 1))
        for kind in ("seen", "unseen"):
            text = snapshot_text(f2(workers=names, is_seen=kind == "seen"))
            Path(folder, kind).write_text(text)
        for _ in range(runs):
            for name, (kind, edit) in EDITS.items():
                command: list[str | Path] = [
                    GARBOARD,
                    "change",
                    "plan",
                    "--observed",
                    Path(folder, kind),
                    "--set",
                    edit,
                    "-o",
                    "json",
                ]
                measured[name].append(measure(command, output=Path("/dev/null"), accepts=(10,)))
    return report(
        {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "runs": runs,
            "wall_s": {name: round(median([run.wall_s for run in each]), 2) for name, each in measured.items()},
            "cpu_s": {name: round(median([run.cpu_s for run in each]), 2) for name, each in measured.items()},
            "peak_mib": {name: round(max(run.peak_mib for run in each)) for name, each in measured.items()},
        }
    )


def report(results: dict[str, Any]) -> list[str]:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "change.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "change.md").write_text(table(results))
    print(table(results))
    late = [name for name, wall_s in results["wall_s"].items() if wall_s > GOAL_S]
    large = [name for name, peak in results["peak_mib"].items() if peak > GOAL_MIB]
    return [f"over {GOAL_S} s: {name}" for name in late] + [f"over {GOAL_MIB} MiB: {name}" for name in large]


def table(results: dict[str, Any]) -> str:
    measured = f"median of {results['runs']} runs; {results['machine']}; {results['date']}."
    lines = [
        f"3 control planes and {WORKERS} workers; {measured}",
        "",
        "| change | wall time | processor time | peak memory |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, wall_s in results["wall_s"].items():
        lines.append(f"| {name} | {wall_s:.2f} s | {results['cpu_s'][name]:.2f} s | {results['peak_mib'][name]} MiB |")
    return "\n".join(lines) + "\n"
