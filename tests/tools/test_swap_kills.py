"""The scene that kills swaps in the lab, over a node in memory; and which points have their day."""

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

import pytest

from tools.harness.killing import KillPoint, chosen_points
from tools.harness.lab import LabUnderTest
from tools.harness.snapshots import ClusterSnapshots
from tools.harness.swap_kills import SwapScene, swap_scene
from tools.harness.swapping import COMPONENTS

STEPS = 14  # a number of them


def ended(status: int, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, text, "why")


@dataclass
class MemorySwapping:
    """A node that does what it is told; with a fault, one thing goes wrong."""

    fault: str = ""
    pods: dict[str, str] = field(default_factory=lambda: dict.fromkeys(COMPONENTS, "old"))
    files: str = "old"
    _planned: str = ""

    def swap(self, note: str, *, killed_at: KillPoint | None = None) -> subprocess.CompletedProcess[str]:
        self._planned = note
        if killed_at is not None and self.fault != "not killed":
            return ended(137)
        self._become(note)
        return ended(0)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        if words[0] == "status":
            closed = {"command": "undo", "steps": 99}
            return ended(0, json.dumps({"runs": [{"command": "swap", "steps": STEPS}, closed]}))
        if words == ("resume",):
            self._become(self._planned)
        if self.fault == "files":
            self.files = "other"
        return ended(self.fault == "status")

    def _become(self, note: str) -> None:
        self.pods = dict.fromkeys(COMPONENTS, note)
        if self.fault == "mixed":
            self.pods["etcd"] = "old"
        self.files = note

    def notes(self) -> dict[str, str]:
        return dict(self.pods)

    def manifests(self) -> str:
        return self.files

    def is_ready(self) -> bool:
        return self.fault != "unready"


def scene(fault: str = "") -> SwapScene:
    swapping: Any = MemorySwapping(fault)
    return SwapScene(swapping)


def test_every_step_of_a_swap_has_two_points() -> None:
    found = scene()
    phases = found.steps()
    assert len(phases) == STEPS
    assert found.points(phases)[:3] == [KillPoint("begin", 0), KillPoint("end", 0), KillPoint("begin", 1)]
    assert len(found.points(phases)) == 2 * STEPS


def test_node_that_is_old_or_new_and_well_has_no_problems() -> None:
    found = scene()
    point = KillPoint("begin", 3)
    for outcome in (found.after_undo(point, "p"), found.after_resume(point, "p"), found.after_undo(point, "p")):
        assert outcome.problems == []
        assert (outcome.scenario, outcome.point) == ("swap of static pods in the lab", "3 begun")


@pytest.mark.parametrize(
    ("fault", "then", "problem"),
    [
        ("mixed", "resume", "the pods are"),
        ("unready", "resume", "is not ready"),
        ("unready", "undo", "is not ready"),
        ("files", "undo", "the manifests were old and are other"),
        ("status", "undo", "undo ended with"),
        ("status", "resume", "resume ended with"),
        ("not killed", "resume", "it was not killed"),
    ],
)
def test_what_is_wrong_is_told(fault: str, then: str, problem: str) -> None:
    found = scene(fault)
    outcome = (found.after_undo if then == "undo" else found.after_resume)(KillPoint("end", 1), "p")
    assert any(problem in line for line in outcome.problems), outcome


def test_all_points_have_their_day() -> None:
    points = scene().points(["p"] * STEPS)
    days = [chosen_points(points, 4, day=day) for day in range(1000, 1004)]
    assert {len(each) for each in days} == {7}
    assert {point for each in days for point in each} == set(points)
    assert chosen_points(points, 1) == points
    assert chosen_points(points, 4, first=1, day=3)[0] == points[1]


@pytest.mark.parametrize("fresh", [False, True])
def test_cluster_is_made_anew_if_it_is_to_be_fresh(fresh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[bool] = []

    def up(snapshots: ClusterSnapshots, _lab: LabUnderTest, *_arguments: str) -> bool:
        wanted.append(snapshots.fresh_since is not None)
        raise TimeoutError

    monkeypatch.setattr(ClusterSnapshots, "up", up)
    monkeypatch.setattr(LabUnderTest, "lab", lambda *_words, **_settings: None)
    with pytest.raises(TimeoutError), swap_scene("swap", fresh=fresh):
        pass
    assert wanted == [fresh]
