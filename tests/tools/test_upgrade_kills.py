"""The scene that kills upgrades in the lab, over a node in memory: what it takes for well, and what it tells."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tools.harness.killing import KillPoint, chosen_points
from tools.harness.swapping import COMPONENTS
from tools.harness.upgrade_kills import UpgradeScene
from tools.harness.upgrading import FORMER, TARGET

STEPS = 31  # a number of them
MANIFESTS = "/etc/kubernetes/manifests"
POINT = KillPoint("begin", 3)


def ended(status: int, text: str = "", told: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, text, told)


@dataclass
class MemoryUpgrading:
    """A node that does what it is told; with a fault, one thing goes wrong."""

    fault: str = ""
    images: dict[str, str] = field(default_factory=lambda: dict.fromkeys(COMPONENTS, FORMER))
    configuration: str = FORMER
    is_killed: bool = False

    def run(
        self, _node: str, *words: str, killed_at: KillPoint | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        if "--dry-run" in words:
            return ended(0, json.dumps({"steps": [{"phase": "control-plane"}] * STEPS}))
        if words[0] == "status":
            return ended(0, json.dumps({"runs": [{"run": "r-1"}] if self.fault == "open" else []}))
        if words[0] in ("undo", "resume"):
            return self._ended(words[0])
        if killed_at is not None and self.fault != "not killed":
            self._become(TARGET)
            self.is_killed = True
            return ended(137)
        return ended(0, told="" if self.fault == "again" else "there is nothing to do")

    def _ended(self, command: str) -> subprocess.CompletedProcess[str]:
        told = ""
        if command == "undo":
            self._become(FORMER)
            if self.fault in ("etcd stays", "etcd stays untold"):
                self.images["etcd"] = TARGET
                told = f"{MANIFESTS}/etcd.yaml stays as the run wrote it" * (self.fault == "etcd stays")
        if self.fault == "mixed":
            self.images["kube-scheduler"] = FORMER if command == "resume" else TARGET
        if self.fault == "objects":
            self.configuration = "another"
        return ended(self.fault == "status", told=told)

    def _become(self, version: str) -> None:
        self.images = dict.fromkeys(COMPONENTS, version)
        self.configuration = version

    def files(self, _node: str) -> dict[str, str]:
        return {f"{MANIFESTS}/{name}.yaml": version for name, version in self.images.items()}

    def tags(self, _node: str) -> dict[str, str]:
        return dict(self.images)

    def objects(self) -> dict[str, str]:
        return {"ConfigMap/kubeadm-config": self.configuration}

    def is_ready(self, _node: str) -> bool:
        return self.fault != "unready" or not self.is_killed


@dataclass
class Clusters:
    """Makes a node for each outcome, and counts them."""

    fault: str = ""
    made: int = 0

    @contextmanager
    def one(self) -> Iterator[Any]:
        self.made += 1
        yield MemoryUpgrading(self.fault)


def test_every_step_has_two_points_and_a_day_has_points_of_both_moments() -> None:
    scene = UpgradeScene(Clusters().one)
    points = scene.points(scene.steps())
    assert len(points) == 2 * STEPS
    days = [chosen_points(points, scene.stride, day=day) for day in range(1000, 1000 + scene.stride)]
    assert {point for each in days for point in each} == {*points}
    assert all({point.moment for point in each} == {"begin", "end"} for each in days)


@pytest.mark.parametrize("fault", ["", "etcd stays"], ids=["all is as before", "etcd stays, and undo says so"])
def test_node_that_is_old_or_new_and_well_has_no_problems(fault: str) -> None:
    clusters = Clusters(fault)
    scene = UpgradeScene(clusters.one)
    for outcome in (scene.after_undo(POINT, "p"), scene.after_resume(POINT, "p")):
        assert outcome.problems == []
        assert (outcome.scenario, outcome.point) == ("upgrade of a control plane in the lab", "3 begun")
    assert clusters.made == 2, "each has a cluster of its own"


@pytest.mark.parametrize(
    ("fault", "then", "problem"),
    [
        ("etcd stays untold", "undo", f"image of etcd was {FORMER} and is {TARGET}"),
        ("mixed", "undo", f"file {MANIFESTS}/kube-scheduler.yaml was {FORMER} and is {TARGET}"),
        ("mixed", "resume", "the images are"),
        ("objects", "undo", "object ConfigMap/kubeadm-config was"),
        ("unready", "undo", "is not ready"),
        ("unready", "resume", "is not ready"),
        ("status", "undo", "undo ended with"),
        ("status", "resume", "resume ended with"),
        ("open", "undo", "r-1 is open"),
        ("open", "resume", "r-1 is open"),
        ("again", "resume", "the same command again has something to do"),
        ("not killed", "undo", "it was not killed"),
    ],
)
def test_what_is_wrong_is_told(fault: str, then: str, problem: str) -> None:
    scene = UpgradeScene(Clusters(fault).one)
    outcome = (scene.after_undo if then == "undo" else scene.after_resume)(POINT, "p")
    assert any(problem in line for line in outcome.problems), outcome
