"""A node of a lab as another machine: garboard on it through `garboard lab exec`, also when that is killed."""

from pathlib import Path

import pytest

from garboard.model import DEFAULT_VERSION
from garboard.node.via import Carrier, CommandEnded, CommandFound, Via
from tests.support.lab.clusters import Bare
from tests.support.lab.first_node import CONFIG, DOCUMENTS, put_config
from tests.support.node.reporters import MemoryReporter
from tools.harness.lab import GARBOARD

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

# Kills `lab exec` once the run of init has finished some steps; other commands are left alone. What it killed is the
# parent of the command: in the node that goes on, without anybody who reads its output.
_CUT = """#!/bin/sh
node=$1; shift
inside() {{ {garboard} lab exec --name {lab} "$node" -- "$@"; }}
[ "$2" = init ] || {{ inside "$@"; exit; }}
{garboard} lab exec --name {lab} "$node" -- "$@" &
until inside sh -c 'test "$(grep -c end /var/lib/garboard/runs/*/journal.jsonl)" -gt 5' 2>/dev/null; do sleep 0.1; done
kill -9 $!
wait $!
"""


def test_run_is_found_whose_connection_was_killed(bare: Bare, tmp_path: Path) -> None:
    lab = bare()
    put_config(lab, DOCUMENTS.replace("VERSION", str(DEFAULT_VERSION)))
    script = tmp_path / "carrier"
    script.write_text(_CUT.format(garboard=GARBOARD, lab=lab.name))
    script.chmod(0o755)
    reporter = MemoryReporter()
    carrier = Carrier(Via.parse(f"{script} {{node}}"), reporter)
    carrier.require_same_version(["cp1"])
    found = carrier.change("cp1", ["init", f"--config={CONFIG}"], timeout_s=300.0, find_out_s=300.0)
    assert isinstance(found, CommandFound), reporter.lines
    assert "signal 9" in found.reason
    assert [(each.command, each.state) for each in found.runs] == [("init", "committed")]
    assert any("asking what became of garboard init" in line for line in reporter.lines)
    ready = lab.exec("cp1", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "--raw", "/readyz")
    assert ready.stdout == "ok"
    assert carrier.run("cp1", ["status"], timeout_s=300.0) == CommandEnded(0)
    assert reporter.lines[-1] == "[cp1] no run is open on this node"
