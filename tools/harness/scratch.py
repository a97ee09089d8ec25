"""The scratch machine on which runs are killed: it has a service manager that remembers the state of the kubelet."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import garboard
from tools.harness.machine import Machine

ROOT = Path(__file__).parents[2]
GARBOARD = Path(sys.prefix, "bin/garboard")
_SOURCE = Path(garboard.__file__).parents[1]
_FOLDERS = (Path(sys.prefix), Path(sys.base_prefix), _SOURCE, ROOT)
# Made of nothing but a shell.
_SYSTEMCTL = """#!/bin/sh
case "$1" in
  is-active) [ "$2" = kubelet ] || { echo inactive; exit 3; }; read -r state < /run/kubelet.state; echo "$state" ;;
  restart) echo active > /run/kubelet.state ;;
  stop) echo inactive > /run/kubelet.state ;;
esac
"""


@contextmanager
def scratch_machine() -> Iterator[Machine]:
    """Make a machine in memory where there is some: what is killed a thousand times need not wait for a disk."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="garboard-scratch-", dir=memory if memory.is_dir() else None))
    try:
        machine = Machine.make(root, directories=["root"])
        machine.put("/programs/systemctl", _SYSTEMCTL)
        (root / "programs/systemctl").chmod(0o755)
        machine.put("/run/kubelet.state", "inactive\n")
        yield machine
    finally:
        shutil.rmtree(root)


def run_script(machine: Machine, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script on the machine, in which `garboard` is that of this checkout."""
    text = f'garboard() {{ {GARBOARD} "$@"; }}\n{script}'
    return machine.run(Path("/bin/sh"), "-euc", text, folders=_FOLDERS)


def kill_everywhere(scenario: str, every: int = 1, first: int = 0) -> list[dict[str, Any]]:
    """Kill a scenario at all its points, or at every n-th from a first one on; return what became of each."""
    with scratch_machine() as machine:
        done = machine.run(
            Path(sys.executable), "-m", "tools.harness.scratch_kills", f"--every={every}", f"--first={first}", scenario,
            environment={"PYTHONPATH": f"{_SOURCE}:{ROOT}"}, folders=_FOLDERS, timeout_s=3600,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
