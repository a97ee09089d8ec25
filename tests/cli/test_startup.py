"""What starting costs: commands that read nothing must not load what reading needs."""

import json
import subprocess
import sys

import pytest

# Each of these costs more than all of garboard's own start.
HEAVY = {
    "yaml",
    "msgspec",
    "cryptography",
    "hypothesis",
    "asyncio",
    "tomllib",
    "importlib.resources",
    "ssl",
    "subprocess",
    "urllib.request",
    "http.client",
    "garboard.documents",
    "garboard.patches",
    "garboard.schema",
}
PROGRAM = """
import json, sys
from garboard.cli.main import run
status = run(sys.argv[1:])
print("\\n" + json.dumps({"status": status, "modules": sorted(sys.modules)}))
"""


def modules_after(arguments: list[str]) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    assert answer["status"] == 0
    return set(answer["modules"])


def bare_modules() -> set[str]:
    """What Python itself loads here, before any of our code."""
    command = [sys.executable, "-c", "import json, sys; print(json.dumps(sorted(sys.modules)))"]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["patch", "--help"]], ids=" ".join)
def test_command_that_reads_nothing_loads_no_heavy_module(arguments: list[str]) -> None:
    assert not HEAVY & (modules_after(arguments) - bare_modules())


def test_the_list_of_heavy_modules_is_not_vain() -> None:
    assert {"yaml", "msgspec"} <= modules_after(["patch", "apply", "--help"])
