"""The scene that kills init and joins in the lab, over a node in memory."""

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

import pytest

from tools.harness.killing import KillPoint
from tools.harness.lab_kills import Scene

POINTS = [KillPoint("begin", 3), KillPoint("end", 9), KillPoint("begin", 12)]
PHASES = ["certs", "etcd", "addon"]


@dataclass
class MemoryLab:
    """A node whose runs do what they are told; with a fault, one thing goes wrong."""

    fault: str = ""
    is_open: bool = False
    commands: list[str] = field(default_factory=list)
    certificates: dict[str, str] = field(default_factory=dict)

    def exec(self, _node: str, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        text = " ".join(command)
        if command[:1] == ("garboard",):
            return self._garboard(command[-1], is_killed="SIGKILL" in text)
        if "%p %i" in text:
            return _ended(0, "".join(f"{path} {inode}\n" for path, inode in self.certificates.items()))
        if "get nodes" in text:
            return _ended(0, "" if self.fault == "no node" else "node/cp1\n")
        if "member list" in text:
            return _ended(0, "1, started, cp1, https://a, https://b, false\n")
        return _ended(0)

    def _garboard(self, word: str, *, is_killed: bool) -> subprocess.CompletedProcess[str]:
        if word == "json":
            return _ended(0, json.dumps({"runs": [{}] if self.is_open else []}))
        self.commands.append(f"{word} killed" if is_killed else word)
        self.certificates[f"{len(self.commands)}.crt"] = "1"
        if self.fault == "made again":
            self.certificates["1.crt"] = str(len(self.commands))
        if is_killed and not (self.fault == "not killed" and word == "resume"):
            self.is_open = self.fault != "closed"
            return _ended(137)
        self.is_open = False
        return _ended(1 if self.fault == "fails" and word == "resume" else 0)


def _ended(status: int, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, text, "why")


def scene(lab: Any) -> Scene:
    return Scene("init", lab, ("garboard", "the program"), "cp1", ("init",))


def test_one_run_is_killed_at_all_points_in_turn_and_resumed_to_its_end() -> None:
    lab = MemoryLab()
    found = scene(lab).after_resumes(POINTS, PHASES)
    assert [each.point for each in found] == ["3 begun", "9 done", "12 begun"]
    assert [each.phase for each in found] == PHASES
    assert [each.problems for each in found] == [[], [], []]
    assert lab.commands == ["init killed", "resume killed", "resume killed", "resume", "--force"]


@pytest.mark.parametrize(
    ("fault", "wrong", "problem"),
    [
        ("not killed", [1, 2], "resume was not killed but ended with 0"),
        ("closed", [0, 1, 2], "no run is open after the kill"),
        ("fails", [0, 1, 2], "resume ended with 1"),
        ("made again", [0, 1, 2], "1.crt was made again"),
        ("no node", [0, 1, 2], "nodes: "),
    ],
)
def test_what_is_wrong_is_told_of_the_points_that_may_have_caused_it(
    fault: str, wrong: list[int], problem: str
) -> None:
    found = scene(MemoryLab(fault)).after_resumes(POINTS, PHASES)
    assert [number for number, each in enumerate(found) if any(problem in line for line in each.problems)] == wrong
