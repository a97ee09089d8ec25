"""A lab by its name, used through the command line as a user does."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from garboard.lab.layout import LabFiles, lab_home

GARBOARD = str(Path(sys.executable).parent / "garboard")
ARTIFACTS = Path(__file__).parents[2] / "test-artifacts"
# In the names of labs, so that test processes which run side by side do not share one.
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


def put(lab: LabUnderTest, node: str, path: str, text: str) -> None:
    """Write a file of a node."""
    lab.exec(node, "sh", "-c", f"cat >{path} <<'EOF'\n{text}EOF\n")
