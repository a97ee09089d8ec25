"""Running the examples of a page of the docs."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
# Journals of the examples stay with them: what this machine has is not seen, and nothing is left there.
_MOUNT = 'mkdir -p /var/lib/garboard && mount -t tmpfs none /var/lib/garboard && exec "$@"'
_PRIVATE = ("unshare", "--mount", "sh", "-c", _MOUNT, "sh")


def run_examples(page: str, folder: Path, *, at_least: int) -> subprocess.CompletedProcess[str]:
    """Run every shell block of a page, from top to bottom as one script, in an empty folder."""
    text = (DOCS / page).read_text()
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    assert script.count("garboard ") >= at_least
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shell = ["bash", "-euo", "pipefail", "-c", script]
    command = [*_PRIVATE, *shell] if os.geteuid() == 0 else shell
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done
