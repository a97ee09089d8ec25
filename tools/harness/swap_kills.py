"""Kill swaps of static pods in the lab, each at one point, and say whether the node is old or new, and well.

One cluster serves all points: the node is as healthy after a swap as before it, so nothing has to be made anew.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from tools.harness.killing import KillPoint, both_points
from tools.harness.lab import LabUnderTest
from tools.harness.lab_kills import LiveOutcome, point_name
from tools.harness.node_program import garboard_for_nodes
from tools.harness.snapshots import cluster_snapshots
from tools.harness.swapping import COMPONENTS, Swapping

NAME = "swap of static pods in the lab"
_STRIDE = 4  # a swap takes half a minute, and so does its way back: a quarter of the points each day


@dataclass
class SwapScene:
    """A control-plane node of three whose four static pods are replaced again and again."""

    swapping: Swapping
    name: str = NAME
    stride: int = _STRIDE
    _numbers: Iterator[int] = field(default_factory=count)

    def steps(self) -> list[str]:
        """Carry out one swap undisturbed, and return a phase for each of its steps."""
        note = self._note()
        done = self.swapping.swap(note)
        assert done.returncode == 0, done.stderr
        assert not self._problems(note, {}), self._problems(note, {})
        runs = json.loads(self.swapping.run("status", "--all", "-o", "json").stdout)["runs"]
        return ["static-pods"] * max(each["steps"] for each in runs if each["command"] == "swap")

    def points(self, phases: list[str]) -> list[KillPoint]:
        """Return all points: when the begin of each step is on disk, and when the step is done."""
        return both_points(range(len(phases)))

    def after_undo(self, point: KillPoint, phase: str) -> LiveOutcome:
        """Kill the swap, undo it, and say what is not as it was."""
        before, former = self.swapping.manifests(), self.swapping.notes()
        problems = self._killed(point, self._note()) + self._ended("undo")
        if self.swapping.manifests() != before:
            problems.append(f"the manifests were {before} and are {self.swapping.manifests()}")
        return LiveOutcome(self.name, point_name(point), phase, "undo", problems + self._problems("", former))

    def after_resume(self, point: KillPoint, phase: str) -> LiveOutcome:
        """Kill the swap, resume it, and say what is not new."""
        note = self._note()
        problems = self._killed(point, note) + self._ended("resume")
        return LiveOutcome(self.name, point_name(point), phase, "resume", problems + self._problems(note, {}))

    def _note(self) -> str:
        return f"n{next(self._numbers)}"

    def _killed(self, point: KillPoint, note: str) -> list[str]:
        done = self.swapping.swap(note, killed_at=point)
        return [] if done.returncode else [f"it was not killed: {done.stderr[-500:]}"]

    def _ended(self, command: str) -> list[str]:
        done = self.swapping.run(command)
        return [f"{command} ended with {done.returncode}: {done.stderr[-800:]}"] if done.returncode else []

    def _problems(self, note: str, former: dict[str, str]) -> list[str]:
        """Say which pods are not those that they should be, and whether this node's API server is not ready."""
        expected, found = former or dict.fromkeys(COMPONENTS, note), self.swapping.notes()
        mixed = [f"the pods are {found} instead of {expected}"] if found != expected else []
        return mixed + ([] if self.swapping.is_ready() else ["the API server of this node is not ready"])


@contextmanager
def swap_scene(name: str, *, fresh: bool = False) -> Iterator[SwapScene]:
    """Make a cluster of three control planes, from a snapshot unless it is to be a fresh one."""
    lab = LabUnderTest(name)
    try:
        cluster_snapshots(fresh=fresh).up(lab)
        with garboard_for_nodes() as command:
            yield SwapScene(Swapping(lab, command, "cp2"))
    finally:
        lab.lab("down", check=False)
