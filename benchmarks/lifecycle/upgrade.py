"""Time an upgrade by garboard and one by kubeadm, of equal clusters: three control planes and a worker, under load.

    make benchmark-upgrade

Both clusters are labs of the same snapshot, made by kubeadm at the former minor. Each tool upgrades its nodes one after
the other, as its own output says: `upgrade apply` on the first, `upgrade node` on the others. Meanwhile clients read
and write on new connections through the endpoint, and each API server is looked at. Needs root. Writes
build/benchmarks/upgrade.json and upgrade.md.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import machine as measured_on
from tools.harness.api_load import ApiLoad
from tools.harness.lab import GARBOARD, LabUnderTest
from tools.harness.node_program import garboard_for_nodes
from tools.harness.snapshots import cluster_snapshots
from tools.harness.upgrading import PATCHES, RELEASES, TARGET

RESULTS = Path("build/benchmarks")
NODES, CONTROL_PLANES = ("cp1", "cp2", "cp3", "worker1"), ("cp1", "cp2", "cp3")
GOAL = 0.15
_KUBEADM = f"/opt/kubernetes/{TARGET}/kubeadm"


# Run in a node, because the machine reaches no other than the endpoint; ends with its standard input.
_WATCH = """
import json, ssl, sys, threading, time, urllib.request
context = ssl._create_unverified_context()
lost, ended = {}, threading.Event()
def is_ready(address):
    try:
        return urllib.request.urlopen(f"https://{address}:6443/readyz", timeout=2, context=context).status == 200
    except OSError:
        return False
def watch(node, address):
    last = time.monotonic()
    while not ended.wait(0.1):
        ready, now = is_ready(address), time.monotonic()
        lost[node] = lost.get(node, 0.0) + (0.0 if ready else now - last)
        last = now
for pair in json.loads(sys.argv[1]).items():
    threading.Thread(target=watch, args=pair, daemon=True).start()
sys.stdin.read()
ended.set()
print(json.dumps(lost))
"""


@contextmanager
def watching(lab: LabUnderTest, addresses: dict[str, str]) -> Iterator[dict[str, float]]:
    """Measure for how long each API server is not ready; the seconds are there in the end."""
    seconds: dict[str, float] = {}
    inside = (
        GARBOARD,
        "lab",
        "exec",
        "--name",
        lab.name,
        "worker1",
        "--",
        str(Path(sys.executable).resolve()),
        "-c",
        _WATCH,
    )
    process = subprocess.Popen(
        [*inside, json.dumps(addresses)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield seconds
    finally:
        told, _ = process.communicate("", timeout=60)
        seconds.update(json.loads(told))


@dataclass(frozen=True)
class Timed:
    """One upgrade of a whole cluster."""

    tool: str
    seconds: dict[str, float]  # of each node
    outages: dict[str, float]
    requests: int
    failed: int
    longest_gap_s: float
    load: float

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())


def main() -> None:
    rows: list[Timed] = []
    with garboard_for_nodes() as garboard:
        ours = (*garboard, "upgrade"), ()
        theirs = (_KUBEADM, "upgrade"), ("--ignore-preflight-errors=all",)
        for tool, (command, flags) in (("garboard", ours), ("kubeadm", theirs)):
            rows.append(upgraded(tool, command, flags))
            print(rows[-1], flush=True)
    report(rows)


def upgraded(tool: str, command: Sequence[str], flags: Sequence[str]) -> Timed:
    lab = LabUnderTest(f"benchmark-{os.getpid()}")
    try:
        cluster_snapshots(fresh=False).up(lab, *RELEASES)
        found = {each["name"]: each["address"] for each in lab.status()["nodes"]}
        began_load = os.getloadavg()[0]
        seconds = dict[str, float]()
        addresses = {node: str(found[node]) for node in CONTROL_PLANES}
        with watching(lab, addresses) as outages, ApiLoad(lab.files.kubeconfig) as load:
            for node in NODES:
                words = ("apply", TARGET, "--yes") if node == NODES[0] else ("node",)
                began = time.monotonic()
                lab.exec(node, *command, *words, "--patches", PATCHES, *flags)
                seconds[node] = round(time.monotonic() - began, 2)
        lost = {node: round(each, 1) for node, each in outages.items()}
        gap = round(load.longest_gap_s, 2)
        return Timed(tool, seconds, lost, len(load.asked), len(load.failed), gap, round(began_load, 1))
    finally:
        lab.lab("down", check=False)


def report(rows: list[Timed]) -> None:
    text = table(rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = [{**asdict(row), "total_s": row.total_s} for row in rows]
    (RESULTS / "upgrade.json").write_text(json.dumps(record, indent=2) + "\n")
    (RESULTS / "upgrade.md").write_text(text)
    print(text)
    ratio = rows[0].total_s / rows[1].total_s
    if ratio > GOAL:
        raise SystemExit(f"slower than the goal: {ratio:.3f} of kubeadm's time, not {GOAL}")


def table(rows: list[Timed]) -> str:
    ratio = rows[0].total_s / rows[1].total_s
    loads = " and ".join(str(row.load) for row in rows)
    lines = [
        f"One upgrade each, {measured_on()}; load average {loads}; {datetime.now(UTC).date().isoformat()}.",
        "",
        "| | all nodes | each node | outage of each API server | longest gap | failed requests |",
        "| --- | ---: | --- | --- | ---: | ---: |",
    ]
    for row in rows:
        each = ", ".join(f"{row.seconds[node]:.1f}" for node in NODES)
        lost = ", ".join(f"{row.outages.get(node, 0.0):.1f}" for node in CONTROL_PLANES)
        lines.append(
            f"| {row.tool} | {row.total_s:.1f} s | {each} s | {lost} s | {row.longest_gap_s:.2f} s "
            f"| {row.failed} of {row.requests} |"
        )
    verdict = "met" if ratio <= GOAL else "missed"
    return "\n".join([*lines, "", f"Time, kubeadm = 1: {ratio:.3f} (goal {GOAL}, {verdict})."]) + "\n"


if __name__ == "__main__":
    main()
