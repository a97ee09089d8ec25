"""Kill upgrades of a control plane in the lab, each at one point, and say whether the node is old or new, and well.

Every outcome has a cluster of its own, from a snapshot: no upgrade takes a cluster back to the minor of before.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from tools.harness.killing import KillPoint, both_points
from tools.harness.lab import LabUnderTest
from tools.harness.lab_kills import LiveOutcome, point_name
from tools.harness.node_program import garboard_for_nodes
from tools.harness.snapshots import ClusterSnapshots, cluster_snapshots
from tools.harness.upgrading import PATCHES, SMALL, TARGET, Upgrading

NAME = "upgrade of a control plane in the lab"
_NODE = "cp1"
_APPLY = ("upgrade", "apply", TARGET, "--yes", "--patches", PATCHES)
# An outcome takes two minutes; an odd number, so that a day has points of both moments.
_STRIDE = 15
_ETCD = "/etc/kubernetes/manifests/etcd.yaml"


@dataclass(frozen=True)
class UpgradeScene:
    """A cluster of one node that goes up a minor; `making` makes a new one each time."""

    making: Callable[[], AbstractContextManager[Upgrading]]
    name: str = NAME
    stride: int = _STRIDE

    def steps(self) -> list[str]:
        """Return the phase of every step."""
        with self.making() as node:
            shown = node.run(_NODE, *_APPLY, "--dry-run", "-o", "json").stdout
        return [step["phase"] for step in json.loads(shown)["steps"]]

    def points(self, phases: list[str]) -> list[KillPoint]:
        """Return all points: when the begin of each step is on disk, and when the step is done."""
        return both_points(range(len(phases)))

    def after_undo(self, point: KillPoint, phase: str) -> LiveOutcome:
        """Kill the upgrade, undo it, and say what is not as it was; etcd may stay new where undo says so."""
        with self.making() as node:
            before, tags, objects = node.files(_NODE), node.tags(_NODE), node.objects()
            problems = _killed(node, point)
            done = node.run(_NODE, "undo", check=False)
            problems += _ended("undo", done.returncode, done.stderr)
            stays = {_ETCD: "etcd"} if f"{_ETCD} stays" in done.stderr else {}
            problems += _unlike("file", before, node.files(_NODE), {*stays})
            problems += _unlike("image of", tags, node.tags(_NODE), {*stays.values()})
            problems += _unlike("object", objects, node.objects(), set())
            return LiveOutcome(self.name, point_name(point), phase, "undo", problems + _unwell(node))

    def after_resume(self, point: KillPoint, phase: str) -> LiveOutcome:
        """Kill the upgrade, resume it, and say what is not new."""
        with self.making() as node:
            problems = _killed(node, point)
            done = node.run(_NODE, "resume", check=False)
            problems += _ended("resume", done.returncode, done.stderr)
            found = node.tags(_NODE)
            if {tag for name, tag in found.items() if name != "etcd"} != {TARGET}:
                problems.append(f"the images are {found}")
            again = node.run(_NODE, *_APPLY, check=False)
            if "there is nothing to do" not in again.stderr:
                problems.append(f"the same command again has something to do: {again.stderr[-800:]}")
            return LiveOutcome(self.name, point_name(point), phase, "resume", problems + _unwell(node))


def _killed(node: Upgrading, point: KillPoint) -> list[str]:
    done = node.run(_NODE, *_APPLY, killed_at=point, check=False)
    return [f"it was not killed: {done.stderr[-500:]}"] if done.returncode in (0, 1) else []


def _ended(command: str, status: int, told: str) -> list[str]:
    return [f"{command} ended with {status}: {told[-800:]}"] if status else []


def _unlike(what: str, before: dict[str, str], after: dict[str, str], may_differ: set[str]) -> list[str]:
    names = sorted({*before, *after} - may_differ)
    return [
        f"{what} {name} was {before.get(name, 'absent')} and is {after.get(name, 'absent')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _unwell(node: Upgrading) -> list[str]:
    """Say what is left open, and whether the node's API server is not ready."""
    runs = json.loads(node.run(_NODE, "status", "-o", "json").stdout)["runs"]
    problems = [f"{each['run']} is open" for each in runs]
    return problems + ([] if node.is_ready(_NODE) else ["the API server of this node is not ready"])


@contextmanager
def upgrade_scene(name: str, *, fresh: bool = False) -> Iterator[UpgradeScene]:
    """Make clusters of one node from a snapshot, unless that is to be a fresh one."""
    snapshots = cluster_snapshots(fresh=fresh)
    with garboard_for_nodes() as command:
        yield UpgradeScene(partial(_single_node, name, snapshots, command))


@contextmanager
def _single_node(name: str, snapshots: ClusterSnapshots, command: tuple[str, ...]) -> Iterator[Upgrading]:
    lab = LabUnderTest(name)
    try:
        snapshots.up(lab, *SMALL)
        yield Upgrading(lab, command)
    finally:
        lab.lab("down", check=False)
