"""The machine on which `benchmarks.reliability.scratch` kills runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import garboard
from tests.parity.machine import Machine

ROOT = Path(__file__).parents[2]
# A service manager that remembers, made of nothing but a shell.
_SYSTEMCTL = """#!/bin/sh
case "$1" in
  is-active) [ "$2" = kubelet ] || { echo inactive; exit 3; }; read -r state < /run/kubelet.state; echo "$state" ;;
  restart) echo active > /run/kubelet.state ;;
  stop) echo inactive > /run/kubelet.state ;;
esac
"""


def make_machine(root: Path) -> Machine:
    machine = Machine.make(root, directories=["root"])
    machine.put("/programs/systemctl", _SYSTEMCTL)
    (root / "programs/systemctl").chmod(0o755)
    return machine


def kill_everywhere(root: Path, *scenarios: str, every: int = 1) -> list[dict[str, Any]]:
    """Kill the scenarios at all their points, or at every n-th; return what became of each."""
    machine = make_machine(root)
    folders = (Path(sys.prefix), Path(sys.base_prefix), Path(garboard.__file__).parents[1], ROOT)
    done: subprocess.CompletedProcess[str] = machine.run(
        Path(sys.executable), "-m", "benchmarks.reliability.scratch", f"--every={every}", *scenarios,
        environment={"PYTHONPATH": f"{ROOT}"}, folders=folders, timeout_s=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
