"""The stock project's own integration suite, with our agent in the place of its agent.

It runs in a network namespace of its own, so that whatever it dials stays on loopback.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.harness.oracles import stock_suite

pytestmark = [pytest.mark.real, pytest.mark.alone]  # it races against its own short timeouts

LEFT_OUT = "TestProxyDial_AgentTimeout_GRPC"  # waits for an address outside of the machine to be silent
EXPECTED = 25
# These fail now and then with the stock agent too, on a busy machine in one run of ten or more: the client's tunnel may
# close before the cancelled request looks at its context, and the error is then "EOF".
RACING = {"TestProxyHandle_TunnelContextCancelled_GRPC"}
TRIES = 6


@pytest.fixture(scope="module")
def suite() -> Path:
    return stock_suite().built()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("agent") / "agent"
    program.write_text(f'#!/bin/sh\nexec {Path(sys.executable).parent / "garboard"} tunnel agent "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.timeout(900)
def test_our_agent_passes_the_suite_of_the_stock_one(suite: Path, agent: Path) -> None:
    verdicts, printed = _run(suite, agent, "-test.skip", f"^{LEFT_OUT}$")
    failed = {name for name, verdict in verdicts.items() if verdict != "PASS"}
    assert failed <= RACING, printed
    assert len(verdicts) == EXPECTED, printed
    for name in failed:
        again = [_run(suite, agent, "-test.run", f"^{name}$") for _ in range(TRIES)]
        assert {name: "PASS"} in [verdicts for verdicts, _ in again], again[-1][1]


def _run(suite: Path, agent: Path, *chosen: str) -> tuple[dict[str, str], str]:
    """Run tests of the suite; return the verdict on each, and all that was printed."""
    alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    command = [*alone, str(suite), "-test.v", *chosen, "-agent-path", str(agent)]
    printed = subprocess.run(command, cwd=agent.parent, capture_output=True, text=True).stdout
    verdicts = re.findall(r"^--- (\w+): (\w+)", printed, re.MULTILINE)
    return {name: verdict for verdict, name in verdicts}, printed
