"""Labs for tests: bare nodes for one test, clusters for a module; logs of nodes are kept when a test fails."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garboard.lab.layout import LabFiles, lab_home
from tests.lab.node_program import garboard_for_nodes

GARBOARD = str(Path(sys.executable).parent / "garboard")
ARTIFACTS = Path(__file__).parents[2] / "test-artifacts"
RUN = os.getpid()


def garboard(*arguments: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    ended = subprocess.run(
        [GARBOARD, *arguments], capture_output=True, text=True, input=stdin, timeout=400, check=False
    )
    if check:
        assert ended.returncode == 0, f"garboard {' '.join(arguments)}\n{ended.stdout}\n{ended.stderr}"
    return ended


@dataclass(frozen=True)
class LabUnderTest:
    """A lab by its name, and the commands that tests use on it."""

    name: str

    @property
    def files(self) -> LabFiles:
        return LabFiles(lab_home(), self.name)

    def lab(self, command: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return garboard("lab", command, "--name", self.name, *arguments, check=check)

    def status(self) -> Any:
        return json.loads(self.lab("status", "-o", "json", check=False).stdout)

    def kubectl(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        return garboard("lab", "kubectl", "--name", self.name, *arguments, check=check, stdin=stdin).stdout

    def exec(self, node: str, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.lab("exec", node, "--", *command, check=check)

    def keep_logs(self, test: str) -> None:
        """Copy the logs of the supervisor, the services and the pods to where they can be looked at."""
        kept = ARTIFACTS / test / self.name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for node in sorted((self.files.folder / "nodes").glob("*")):
            log = self.files.node(node.name).var / "log"
            shutil.copytree(log, kept / node.name, symlinks=True, ignore_dangling_symlinks=True)
        shutil.copy2(self.files.supervisor_log, kept)


Bare = Callable[..., LabUnderTest]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep the logs of every lab that a failed test used."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy hands over its result
    if report.when == "call" and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            for lab in value if isinstance(value, list) else [value]:
                if isinstance(lab, LabUnderTest) and lab.files.folder.is_dir():
                    lab.keep_logs(item.name)


@pytest.fixture
def labs_made() -> Iterator[list[LabUnderTest]]:
    """The labs that a test has made; they go when it ends."""
    made: list[LabUnderTest] = []
    yield made
    for lab in made:
        lab.lab("down", check=False)


@pytest.fixture
def bare(labs_made: list[LabUnderTest]) -> Bare:
    """Make bare nodes for one test: `bare(workers=1)` is a lab of two, fresh and its own."""

    def make(control_planes: int = 1, workers: int = 0, version: str = "") -> LabUnderTest:
        lab = LabUnderTest(f"t{RUN}-{len(labs_made)}")
        labs_made.append(lab)
        release = ("--kubernetes-version", version) if version else ()
        size = ("--control-planes", str(control_planes), "--workers", str(workers))
        lab.lab("up", "--by", "none", *size, *release)
        return lab

    return make


def _cluster(name: str, *arguments: str) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(f"t{RUN}-{name}")
    lab.lab("up", *arguments)
    yield lab
    lab.lab("down")


@pytest.fixture(scope="module")
def one_node() -> Iterator[LabUnderTest]:
    """A cluster of one node, shared by a module: tests leave it as they found it."""
    yield from _cluster("one", "--control-planes", "1", "--workers", "0")


@pytest.fixture(scope="module")
def ha() -> Iterator[LabUnderTest]:
    """A cluster of three control planes and a worker, shared by a module: tests leave it as they found it."""
    yield from _cluster("ha")


@pytest.fixture(scope="session")
def garboard_in_node() -> Iterator[tuple[str, ...]]:
    """The command that runs garboard in a node."""
    with garboard_for_nodes() as command:
        yield command
