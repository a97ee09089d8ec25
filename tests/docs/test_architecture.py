"""What the architecture says in numbers is so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps journals, which are a part of the walk")
def test_walk_of_init_is_as_long_as_the_table_says() -> None:
    """In a process of its own: what this one has loaded and cached does not count."""
    done = subprocess.run([sys.executable, "-m", "tools.walk"], cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.match(r"init: (\d+) modules \(cli (\d+), node (\d+), phases (\d+), engine (\d+)\)", done.stdout)
    assert found is not None, done.stdout
    total, *rooms = found.groups()
    assert f"| now | {' | '.join(rooms)} | {total} |" in PAGE


def test_modules_are_about_as_many_as_the_page_says() -> None:
    told = re.search(r"There are about (\d+) modules", PAGE)
    assert told is not None
    modules = len(list((ROOT / "src/garboard").rglob("*.py")))
    assert modules == pytest.approx(int(told[1]), rel=0.05)
