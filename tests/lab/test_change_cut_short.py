"""Changes of a live cluster that are killed, or that somebody else begins at the same time."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from garboard.cli.main import run
from tests.support.lab.clusters import await_nodes
from tools.harness.changing import CONTROL_PLANES, NODES, Changing, SeenNodes
from tools.harness.killing import KillPoint
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
API_SERVER, SCHEDULER = (f"/etc/kubernetes/manifests/kube-{name}.yaml" for name in ("apiserver", "scheduler"))
NOTHING: dict[str, set[str]] = {name: set() for name in NODES}
FLAG = "apiServer.extraArgs[profiling]=false"
# Points of a change that differ in what has to happen afterwards, by a word in the title of their steps.
PLACES = (
    "acquire Lease",
    "put ConfigMap kube-system/garboard-change",
    "remove /etc/kubernetes/manifests/kube-apiserver.yaml",
    "stop the container",
    "write /etc/kubernetes/manifests/kube-apiserver.yaml",
    "to run steadily",
    "put ConfigMap kube-system/kubeadm-config",
    "release Lease",
)
# A coordinator that journals into a folder of the test.
_COORDINATOR = """
import sys
from pathlib import Path
from garboard.host import runs
runs.STATE_DIR = Path(sys.argv.pop(1))
from garboard.cli.main import main
main()
"""
# Kills the coordinator, whose child the script is, once the second node is at work; there the run goes on by itself.
_KILLS = """
begun() {{ {lab} "$node" -- sh -c 'ls /var/lib/garboard/runs' | wc -l; }}
if [ "$node $1 $2" = "cp2 change node" ] && mkdir {once} 2>/dev/null; then
    former=$(begun)
    ( inside "$@" ) >/dev/null 2>&1 &
    until [ "$(begun)" -gt "$former" ]; do sleep 0.1; done
    kill -9 $PPID
    exit 0
fi
"""


@pytest.fixture(scope="module")
def nodes(ha: LabUnderTest, garboard_in_node: tuple[str, ...]) -> Changing:
    await_nodes(ha, *NODES)
    found = Changing(ha, garboard_in_node)
    found.await_pods()
    return found


@pytest.fixture(autouse=True)
def as_before(nodes: Changing) -> Iterator[None]:
    """Begin each test with nothing left half done by the one before."""
    nodes.await_pods()
    yield
    assert nodes.status()["state"] in ("none", "committed")


def test_coordinator_that_was_killed_is_resumed_and_touches_no_node_twice(
    nodes: Changing, tmp_path: Path, state_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """S18; and S17: nobody else begins anything meanwhile, and is told who is at work."""
    kills = _KILLS.format(lab=nodes.inside, once=tmp_path / "once")
    words = ["change", "apply", "--set", "scheduler.extraArgs[profiling]=false", "--yes", "--message", "cut short"]
    command = [sys.executable, "-c", _COORDINATOR, str(state_dir), *words, *nodes.carried(tmp_path / "killing", kills)]
    before = SeenNodes.now(nodes)
    killed = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert killed.returncode == -9, killed.stderr
    cp1 = SeenNodes.now(nodes, ("cp1",))

    refused = nodes.run("cp3", "apply", "--set", "scheduler.extraArgs[v]=9", "--yes")
    assert refused.returncode == 15, refused.stderr
    assert all(word in refused.stderr for word in ("revision 1 by ", ", begun 2", "cp3")), refused.stderr
    via = nodes.carried(tmp_path / "carrier")
    assert run([*words, *via]) == 15
    assert "was cut short" in capfd.readouterr().err

    assert run(["change", "resume", *via]) == 0, capfd.readouterr().err
    since = before.since()
    assert since.changed == {name: {SCHEDULER} if name in CONTROL_PLANES else set() for name in NODES}
    assert since.restarted == {name: {"kube-scheduler"} if name in CONTROL_PLANES else set() for name in NODES}
    assert cp1.since().is_nothing
    told = nodes.status()
    assert (told["revision"], told["state"], told["message"]) == (1, "committed", "cut short")
    assert [each["state"] for each in told["nodes"]] == ["done", "done", "done"]


def test_of_two_changes_at_once_one_is_done_and_the_other_leaves_nothing(
    nodes: Changing, tmp_path: Path, state_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """S17, from two control planes in the same moment."""
    before, former = SeenNodes.now(nodes), revision(nodes)
    asked = {"cp1": "6", "cp2": "7"}
    with ThreadPoolExecutor() as pool:
        begun = {
            name: pool.submit(nodes.run, name, "apply", "--set", f"scheduler.extraArgs[v]={value}", "--yes")
            for name, value in asked.items()
        }
        ended = {name: future.result() for name, future in begun.items()}
    told = "\n".join(f"{name} ended with {each.returncode}: {each.stderr}" for name, each in ended.items())
    (winner,) = (name for name, each in ended.items() if each.returncode == 12)
    (loser,) = (name for name in asked if name != winner)
    assert ended[loser].returncode in (13, 15), told  # it had begun when it saw the other's, or had not
    since = before.since()
    assert since.changed == {**NOTHING, winner: {SCHEDULER}}, told
    assert since.restarted == {**NOTHING, winner: {"kube-scheduler"}}, told
    kept = nodes.stored("kubeadm-config")["ClusterConfiguration"]
    assert f'value: "{asked[winner]}"' in kept
    assert f'value: "{asked[loser]}"' not in kept
    go_back(nodes, former, tmp_path)
    assert before.since().changed == NOTHING


@pytest.mark.sampled(len(PLACES) * 2)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("moment", ["begin", "end"])
def test_change_that_was_killed_is_undone_or_resumed(
    nodes: Changing, place: str, moment: str, tmp_path: Path, state_dir: Path
) -> None:
    shown = nodes.run("cp1", "apply", "--set", FLAG, "--dry-run").stdout
    titles = [line for line in shown.splitlines() if line.startswith("[") and "  # " in line]
    point = KillPoint(moment, next(index for index, title in enumerate(titles) if place in title))  # type: ignore[arg-type]
    before, former = SeenNodes.now(nodes), revision(nodes)
    stored, status = nodes.stored("kubeadm-config"), nodes.status()
    kill(nodes, point)
    undone = nodes.lab.exec("cp1", *nodes.garboard, "undo", check=False)
    assert undone.returncode == 0, undone.stderr
    assert before.since().changed == NOTHING
    assert (nodes.stored("kubeadm-config"), nodes.status()) == (stored, status)

    kill(nodes, point)
    resumed = nodes.run("cp1", "resume")
    assert resumed.returncode == 12, resumed.stderr
    assert before.since().changed == {**NOTHING, "cp1": {API_SERVER}}
    assert [each["state"] for each in nodes.status()["nodes"]] == ["done", "pending", "pending"]
    go_back(nodes, former, tmp_path)
    assert before.since().changed == NOTHING


def revision(nodes: Changing) -> int:
    return int(nodes.status()["revision"] or 0)


def go_back(nodes: Changing, former: int, folder: Path) -> None:
    """Go back from what others have not followed yet, from the machine of the lab."""
    assert run(["change", "rollback", str(former), "--yes", *nodes.carried(folder / "carrier")]) == 0


def kill(nodes: Changing, point: KillPoint) -> None:
    nodes.await_pods()
    killed = nodes.run("cp1", "apply", "--set", FLAG, "--yes", killed_at=point)
    assert killed.returncode not in (0, 1, 12, 13, 14, 15), killed.stderr
