"""The stock project's own integration suite, with our agent in the place of its agent.

It runs in a network namespace of its own, so that whatever it dials stays on loopback.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

MODULE = "sigs.k8s.io/apiserver-network-proxy"
VERSION = "v0.36.0"
LEFT_OUT = "TestProxyDial_AgentTimeout_GRPC"  # waits for an address outside of the machine to be silent
EXPECTED = 25


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stock-suite")
    (folder / "go.mod").write_text(f"module suite\n\ngo 1.25\n\nrequire {MODULE} {VERSION}\n")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    for command in (["get", f"{MODULE}/tests@{VERSION}"], ["test", "-c", "-o", "suite", f"{MODULE}/tests"]):
        subprocess.run(["nice", "go", *command], cwd=folder, env=environment, check=True, capture_output=True)
    return folder / "suite"


@pytest.mark.timeout(900)
def test_our_agent_passes_the_suite_of_the_stock_one(suite: Path, tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text(f'#!/bin/sh\nexec {Path(sys.executable).parent / "garboard"} tunnel agent "$@"\n')
    program.chmod(0o755)
    alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    command = [*alone, str(suite), "-test.v", "-test.skip", f"^{LEFT_OUT}$", "-agent-path", str(program)]
    ran = subprocess.run(command, cwd=suite.parent, capture_output=True, text=True)
    named = re.findall(r"^--- (\w+): (\w+)", ran.stdout, re.MULTILINE)
    assert [name for verdict, name in named if verdict != "PASS"] == []
    assert len(named) == EXPECTED, ran.stdout[-3000:]
