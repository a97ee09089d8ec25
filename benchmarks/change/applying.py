"""Change a flag on three control planes by garboard, and by kubeadm's workaround, of equal clusters under load.

kubeadm changes no flag of a cluster that is up. What is left to its users is to edit the ConfigMap kubeadm-config by
hand, and to upgrade every control plane to the version that it has: `upgrade apply` on the first, `upgrade node` on the
others. All clusters are labs of one snapshot, made by kubeadm. Meanwhile clients read and write on new connections
through the endpoint, and each API server is looked at.
"""

import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.lifecycle.upgrade import watching
from benchmarks.measure import machine
from garboard.documents import marshal_yaml, read_yaml
from garboard.model import DEFAULT_VERSION
from tools.harness.api_load import ApiLoad
from tools.harness.changing import CONTROL_PLANES, Changing, SeenNodes
from tools.harness.lab import LabUnderTest, garboard
from tools.harness.node_program import garboard_for_nodes
from tools.harness.snapshots import cluster_snapshots

RESULTS = Path("build/benchmarks")
_PATCHES = "/etc/garboard-lab/patches"
_KUBEADM = ("kubeadm", "upgrade")
_FLAGS = ("--ignore-preflight-errors=all", "--patches", _PATCHES)
_TOOLS = ("garboard", "kubeadm")
_COLUMNS = (
    "change", "tool", "all control planes", "kubeadm = 1", "restarts", "files written", "renewed",
    "outage of each API server", "longest gap", "failed requests",
)  # fmt: skip
_RENEWED = (".crt", ".conf", ".pem")


@dataclass(frozen=True)
class Case:
    """A flag that is changed: the member of ClusterConfiguration, what runs it, and our share of kubeadm's time."""

    name: str
    section: str
    component: str
    goal: float


CASES = (
    Case("a flag of the scheduler", "scheduler", "kube-scheduler", 0.15),
    Case("a flag of the API server", "apiServer", "kube-apiserver", 0.4),
)
_FLAG, _VALUE = "profiling", "false"


@dataclass(frozen=True)
class Changed:
    """One change of all control planes, and what it cost."""

    case: str
    tool: str
    total_s: float
    restarts: dict[str, int]  # of containers, by component
    kubelets: int
    files: int  # that were written anew or came to be
    copies: int  # of these, copies of what was there
    renewed: int  # certificates, and kubeconfigs with one in them
    outages: dict[str, float]
    longest_gap_s: float
    requests: int
    failed: int
    load: float


def measure_changes() -> list[str]:
    """Make every change in both ways, write the results, and return which goals are missed."""
    rows: list[Changed] = []
    with garboard_for_nodes() as ours:
        for case in CASES:
            for tool, change in (("garboard", by_garboard), ("kubeadm", by_kubeadm)):
                rows.append(changed(case, tool, change, ours))
                print(rows[-1], flush=True)
    return report(rows)


def changed(case: Case, tool: str, change: Callable[[Changing, Case], None], ours: tuple[str, ...]) -> Changed:
    """Make a change in a cluster of its own."""
    lab = LabUnderTest(f"benchmark-{os.getpid()}")
    try:
        cluster_snapshots(fresh=False).up(lab)
        nodes = Changing(lab, ours)
        nodes.await_pods()
        found = {each["name"]: str(each["address"]) for each in lab.status()["nodes"]}
        before, began_load = SeenNodes.now(nodes), os.getloadavg()[0]
        addresses = {node: found[node] for node in CONTROL_PLANES}
        with watching(lab, addresses) as outages, ApiLoad(lab.files.kubeconfig) as load:
            began = time.monotonic()
            change(nodes, case)
            total_s = time.monotonic() - began
        require_changed(nodes, case)
        since = before.since()
        restarts = Counter(name for names in since.restarted.values() for name in names)
        written = [path for paths in since.changed.values() for path in paths]
        kept = [path for path in written if path.startswith("/etc/kubernetes/tmp/")]
        return Changed(
            case=case.name,
            tool=tool,
            total_s=round(total_s, 1),
            restarts=dict(sorted(restarts.items())),
            kubelets=len(since.kubelets),
            files=len(written),
            copies=len(kept),
            renewed=sum(path.endswith(_RENEWED) for path in {*written} - {*kept}),
            outages={node: round(seconds, 1) for node, seconds in outages.items()},
            longest_gap_s=round(load.longest_gap_s, 2),
            requests=len(load.asked),
            failed=len(load.failed),
            load=round(began_load, 1),
        )
    finally:
        lab.lab("down", check=False)


def by_garboard(nodes: Changing, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        via = nodes.carried(Path(folder, "carrier"))
        garboard("change", "apply", "--set", f"{case.section}.extraArgs[{_FLAG}]={_VALUE}", "--yes", *via)


def by_kubeadm(nodes: Changing, case: Case) -> None:
    stored = nodes.stored("kubeadm-config")["ClusterConfiguration"]
    document = read_yaml(stored.encode(), source="kubeadm-config")
    assert isinstance(document, dict)
    section = document.setdefault(case.section, {})
    assert isinstance(section, dict)
    arguments = section.setdefault("extraArgs", [])
    assert isinstance(arguments, list)
    arguments.append({"name": _FLAG, "value": _VALUE})
    text = marshal_yaml(document, source="kubeadm-config")
    patch = json.dumps({"data": {"ClusterConfiguration": text}})
    nodes.lab.kubectl("-n", "kube-system", "patch", "cm", "kubeadm-config", "--type", "merge", "-p", patch)
    first, *others = CONTROL_PLANES
    nodes.lab.exec(first, *_KUBEADM, "apply", str(DEFAULT_VERSION), "--yes", *_FLAGS)
    for node in others:
        nodes.lab.exec(node, *_KUBEADM, "node", *_FLAGS)


def require_changed(nodes: Changing, case: Case) -> None:
    """Look for the flag in the command line that runs, on every control plane."""
    for node in CONTROL_PLANES:
        script = f"tr '\\0' '\\n' </proc/$(pidof {case.component})/cmdline"
        running = nodes.lab.exec(node, "sh", "-c", script).stdout.splitlines()
        assert f"--{_FLAG}={_VALUE}" in running, f"{node} runs {case.component} with {running}"


def report(rows: list[Changed]) -> list[str]:
    text = table(rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "change-apply.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    (RESULTS / "change-apply.md").write_text(text)
    print(text)
    return [*missed(rows)]


def ratio(rows: list[Changed], case: Case) -> float:
    ours, theirs = (next(row for row in rows if (row.case, row.tool) == (case.name, tool)) for tool in _TOOLS)
    return ours.total_s / theirs.total_s


def missed(rows: list[Changed]) -> list[str]:
    """Return the goals that were not reached: the time, and the least that has to be touched."""
    found = []
    for case in CASES:
        if ratio(rows, case) > case.goal:
            found.append(f"{case.name}: {ratio(rows, case):.3f} of kubeadm's time, not {case.goal}")
        ours = next(row for row in rows if (row.case, row.tool) == (case.name, "garboard"))
        touched = (ours.restarts, ours.kubelets, ours.files, ours.renewed, ours.failed)
        if touched != ({case.component: len(CONTROL_PLANES)}, 0, len(CONTROL_PLANES), 0, 0):
            found.append(f"{case.name}: more than the least was touched: {touched}")
    return found


def table(rows: list[Changed]) -> str:
    loads = ", ".join(str(row.load) for row in rows)
    where = f"{machine()}; Kubernetes {DEFAULT_VERSION}; {datetime.now(UTC).date().isoformat()}"
    lines = [
        f"One change each; {where}; load average before each: {loads}.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | --- | ---: | ---: |",
    ]
    shares = {case.name: ratio(rows, case) for case in CASES}
    for row in rows:
        share = shares[row.case] if row.tool == "garboard" else 1.0
        told = [f"{name} {count}" for name, count in row.restarts.items()]
        told += [f"kubelet {row.kubelets}"] if row.kubelets else []
        lost = ", ".join(f"{row.outages.get(node, 0.0):.1f}" for node in CONTROL_PLANES)
        files = f"{row.files} ({row.copies} of them copies)" if row.copies else f"{row.files}"
        lines.append(
            f"| {row.case} | {row.tool} | {row.total_s:.1f} s | {share:.3f} | {', '.join(told)} | {files} "
            f"| {row.renewed} | {lost} s | {row.longest_gap_s:.2f} s | {row.failed} of {row.requests} |"
        )
    goals = [f"{case.name} {case.goal} ({'met' if shares[case.name] <= case.goal else 'missed'})" for case in CASES]
    return "\n".join([*lines, "", f"Goals, kubeadm = 1: {', '.join(goals)}."]) + "\n"
