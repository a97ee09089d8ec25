"""Time the replacement of static pods beside renaming new manifests over the old ones, alternating, on a node of three.

    make benchmark-static-pods

A time is that from the start until every replaced component runs in a new container and this node's API server is
ready; the settling time that a swap waits for besides is in a column of its own. Needs root. Writes
build/benchmarks/static-pods.json and static-pods.md.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import machine as measured_on
from benchmarks.measure import median
from tools.harness.lab import LabUnderTest
from tools.harness.node_program import garboard_for_nodes
from tools.harness.snapshots import cluster_snapshots
from tools.harness.swapping import COMPONENTS, Swapping

RESULTS = Path("build/benchmarks")
SCHEDULER, ALL = "kube-scheduler", "all four"
SETS = {SCHEDULER: (SCHEDULER,), ALL: COMPONENTS}
SWAP, RENAME = "swap", "rename"
# Seconds until all is well again, limits that the project has set itself.
GOALS_S = {SCHEDULER: 4.0, ALL: 12.0}
_REST_S = 20.0  # a component that was just started still works through what it missed
_GIVE_UP_S = 300.0


@dataclass(frozen=True, slots=True)
class Timed:
    """One replacement; `total_s` is when the command that made it had ended."""

    way: str
    what: str
    ready_s: float
    total_s: float
    load: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="rounds of each way, alternating")
    asked = parser.parse_args()
    lab = LabUnderTest(f"benchmark-{os.getpid()}")
    rows: list[Timed] = []
    try:
        cluster_snapshots(fresh=False).up(lab)
        with garboard_for_nodes() as garboard:
            node = Swapping(lab, garboard, "cp2")
            for number in range(asked.runs):
                for what in SETS:
                    for way in (SWAP, RENAME):
                        rows.append(replaced(node, way, what, f"{way}{number}"))
                        print(f"{way} {what}: {rows[-1].ready_s:.1f} s", flush=True)
                        time.sleep(_REST_S)
    finally:
        lab.lab("down", check=False)
    write(rows)


def replaced(node: Swapping, way: str, what: str, note: str) -> Timed:
    """Replace the pods in one of the ways, and watch from outside until all is well."""
    components, load = SETS[what], os.getloadavg()[0]
    former = node.containers()
    ended: list[float] = []
    began = time.monotonic()

    def change() -> None:
        done = node.swap(note, components) if way == SWAP else node.rename(note, components)
        assert done.returncode == 0, done.stderr
        ended.append(time.monotonic() - began)

    thread = threading.Thread(target=change)
    thread.start()
    ready_s = watch(began, lambda: _is_replaced(node, former, components))
    thread.join()
    return Timed(way, what, ready_s, ended[0], load)


def watch(began: float, is_well: Callable[[], bool]) -> float:
    while not is_well():
        assert time.monotonic() - began < _GIVE_UP_S, "the pods were not replaced"
        time.sleep(0.1)
    return time.monotonic() - began


def _is_replaced(node: Swapping, former: dict[str, str], components: tuple[str, ...]) -> bool:
    found = node.containers()
    return all(found.get(name, former[name]) != former[name] for name in components) and node.is_ready()


def write(rows: list[Timed]) -> None:
    lines = [
        "| | swap: ready, quickest and median | with settling | renamed: ready, quickest and median | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for what in SETS:
        swap, rename = ([row for row in rows if (row.way, row.what) == (way, what)] for way in (SWAP, RENAME))
        ours, theirs = (median([row.ready_s for row in each]) for each in (swap, rename))
        lines.append(
            f"| {what} (goal {GOALS_S[what]:.0f} s) | {min(row.ready_s for row in swap):.1f} s, {ours:.1f} s "
            f"| {median([row.total_s for row in swap]):.1f} s "
            f"| {min(row.ready_s for row in rename):.1f} s, {theirs:.1f} s | {ours / theirs:.2f} |"
        )
    table = "\n".join(lines) + "\n"
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {
        "measuredAt": datetime.now(UTC).isoformat(),
        "machine": measured_on(),
        "runs": [asdict(row) for row in rows],
    }
    (RESULTS / "static-pods.json").write_text(json.dumps(record, indent=2) + "\n")
    (RESULTS / "static-pods.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
