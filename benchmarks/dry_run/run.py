"""Run `init --dry-run` of garboard and of kubeadm, alternating, at every supported minor: is garboard as quick?

    make benchmark-dry-run

Both run on the same empty machine (a folder as the root, namespaces of its own), without preflight: needs root.
Writes build/benchmarks/dry-run.json and dry-run.md.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import machine as measured_on
from benchmarks.measure import median
from garboard.host import Machine as Host
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tools.harness.machine import Machine

RESULTS = Path("build/benchmarks")
FOLDER, CONFIG_PATH = "/dry-run", "/kubeadm.yaml"
LINE = ("init", "--dry-run", "--skip-phases", "preflight", "--config", CONFIG_PATH)
CONFIG = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: {version}\n{more}"
# kubeadm makes real keys in a dry run, garboard none: with ECDSA keys that difference is gone.
DEFAULT_KEYS = "RSA-2048 (default)"
KEYS = {DEFAULT_KEYS: "", "ECDSA-P256": "encryptionAlgorithm: ECDSA-P256\n"}


@dataclass(frozen=True, slots=True)
class Measured:
    """The medians of one tool with one configuration; processor time holds the set-up of namespaces too."""

    version: str
    keys: str
    tool: str
    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11, help="runs of each tool, alternating")
    runs = parser.parse_args().runs
    binaries = Binaries(Host(), report=print)
    rows: list[Measured] = []
    for version in map(str, SUPPORTED_VERSIONS):
        for keys, more in KEYS.items():
            config = CONFIG.format(version=version, more=more)
            rows += compare(binaries.locate("kubeadm", version), version, keys, config, runs)
    report(rows, runs)


def compare(kubeadm: Path, version: str, keys: str, config: str, runs: int) -> list[Measured]:
    with tempfile.TemporaryDirectory() as root:
        node = Machine.make(Path(root), directories=[FOLDER])
        node.put(CONFIG_PATH, config)
        tools: dict[str, Callable[[], subprocess.CompletedProcess[str]]] = {
            "garboard": lambda: node.run_garboard(*LINE),
            "kubeadm": lambda: node.run(kubeadm, *LINE, environment={"KUBEADM_INIT_DRYRUN_DIR": FOLDER}),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in tools}
        for _ in range(runs):
            for name, run in tools.items():
                times[name].append(timed(run))
    return [
        Measured(version, keys, name, median([wall for wall, _ in each]), median([cpu for _, cpu in each]))
        for name, each in times.items()
    ]


def timed(run: Callable[[], subprocess.CompletedProcess[str]]) -> tuple[float, float]:
    """Return wall and processor time; a failure ends the benchmark."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = run()
    wall_s, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"init --dry-run failed: {done.stderr}")
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(rows: list[Measured], runs: int) -> None:
    text = table(rows, runs)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "dry-run.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    (RESULTS / "dry-run.md").write_text(text)
    print(text)
    late = [row for row in rows if row.keys == DEFAULT_KEYS and ratio(row, rows) > 1]
    if late:
        raise SystemExit(f"slower than kubeadm with the default keys: {', '.join(row.version for row in late)}")


def ratio(row: Measured, rows: list[Measured]) -> float:
    """Return the wall time as a multiple of kubeadm's in the same run."""
    peer = next(each for each in rows if (each.version, each.keys, each.tool) == (row.version, row.keys, "kubeadm"))
    return row.wall_s / peer.wall_s


def table(rows: list[Measured], runs: int) -> str:
    lines = [
        f"Median of {runs} runs each, alternating; {measured_on()}; {datetime.now(UTC).date().isoformat()}.",
        "",
        "| version | keys | tool | wall time | processor time | time, kubeadm = 1 |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        times = f"{row.wall_s:.2f} s | {row.cpu_s:.2f} s | {ratio(row, rows):.2f}"
        lines.append(f"| {row.version} | {row.keys} | {row.tool} | {times} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
