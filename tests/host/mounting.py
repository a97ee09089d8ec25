"""Python code in mounts of its own, which end with it."""

import subprocess
import sys
from pathlib import Path


def in_own_mounts(code: str, *arguments: Path) -> None:
    """Run the code where it may mount what it likes; it fails if the code does."""
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
