"""Units of a node's own: services and timers that its `systemctl` reads, and what a stop of the node does to them."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from garboard.manifests.timers import TimedCommand, timer_files
from tests.support.lab.clusters import Bare
from tools.harness.lab import LabUnderTest, put

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

# /run is empty after a start of the node.
_PROBE = "#!/bin/sh\n[ -e /run/mark ] && echo before >>/root/fired || echo after >>/root/fired\n"
_LOOP = """\
[Service]
ExecStart=/usr/bin/tail -f /dev/null
Restart=always
RestartSec=100ms
[Install]
WantedBy=multi-user.target
"""
# What a workflow would plan: a timer, and with "fail" behind it a step that cannot be carried out.
_CARRY_OUT = """
import sys
from datetime import UTC, datetime, timedelta
from garboard.cli.console import ConsoleReporter
from garboard.engine import MakeFolder, Plan, Step
from garboard.manifests.timers import TimedCommand
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import this_node
from garboard.phases.node.timers import plan_timer, plan_timer_removal

node = this_node(ConsoleReporter())
timed = TimedCommand(
    name="garboard-probe", summary="probe", command=("/usr/bin/true",), at=datetime.now(UTC) + timedelta(hours=1)
)
steps = {
    "keep": [*plan_timer(timed, "it is tested")],
    "fail": [*plan_timer(timed, "it is tested"), Step(MakeFolder(path="/proc/none", mode=0o700), "it fails")],
    "remove": [*plan_timer_removal("garboard-probe", "it is tested")],
}[sys.argv[1]]
options = RunOptions(command="test", undoes_on_failure=True)
Transactions(node.runs, node.reporter).carry_out(Plan(tuple(steps)), RunSettings(), options)
"""
# Two commands come before it: it is stopped in time.
_LATER = timedelta(seconds=20)


def await_text(lab: LabUnderTest, path: str) -> str:
    """Return a file of cp1, once there is one."""
    script = f"until [ -s {path} ]; do sleep 0.1; done; cat {path}"
    return lab.exec("cp1", "timeout", "60", "sh", "-c", script).stdout


def systemctl(lab: LabUnderTest, *words: str) -> str:
    return lab.exec("cp1", "systemctl", *words, check=False).stdout.strip()


def test_timer_fires_although_the_node_was_down_at_its_moment(bare: Bare) -> None:
    lab = bare()
    put(lab, "cp1", "/usr/bin/probe", _PROBE)
    lab.exec("cp1", "sh", "-c", "chmod 755 /usr/bin/probe; touch /run/mark")
    lab.exec("cp1", "mkdir", "-p", "/run/systemd/transient")
    put(lab, "cp1", "/run/systemd/transient/other.service", _LOOP)
    assert systemctl(lab, "is-active", "other") == "inactive"
    at = datetime.now(UTC) + _LATER
    timed = TimedCommand(name="garboard-probe", summary="see who is there", command=("/usr/bin/probe",), at=at)
    writes = "".join(f"cat >{path} <<'EOF'\n{data.decode()}EOF\n" for path, data in timer_files(timed).items())
    lab.exec("cp1", "sh", "-ec", f"{writes}systemctl daemon-reload; systemctl enable --now garboard-probe.timer")
    lab.lab("stop", "cp1")
    time.sleep(max((at - datetime.now(UTC)).total_seconds(), 0))
    lab.lab("start", "cp1")
    assert await_text(lab, "/root/fired") == "after\n"
    asked = [systemctl(lab, question, "garboard-probe.timer") for question in ("is-active", "is-enabled")]
    assert asked == ["active", "enabled"]
    assert "could not be found" in systemctl(lab, "status", "other"), "what is transient is gone"
    lab.lab("stop", "cp1")
    lab.lab("start", "cp1")
    assert await_text(lab, "/root/fired") == "after\n"
    lab.exec("cp1", "systemctl", "disable", "--now", "garboard-probe.timer")
    assert systemctl(lab, "is-enabled", "garboard-probe.timer") == "disabled"


def test_enabled_service_runs_again_and_one_that_is_only_started_does_not(bare: Bare) -> None:
    lab = bare()
    for name in ("kept", "started"):
        put(lab, "cp1", f"/etc/systemd/system/{name}.service", _LOOP)
    lab.exec("cp1", "systemctl", "enable", "--now", "kept")
    lab.exec("cp1", "systemctl", "start", "started")
    assert [systemctl(lab, "is-active", name) for name in ("kept", "started")] == ["active", "active"]
    first = lab.exec("cp1", "pgrep", "-x", "tail").stdout.split()
    lab.exec("cp1", "pkill", "-KILL", "-x", "tail")
    lab.exec("cp1", "timeout", "60", "sh", "-c", "until [ $(pgrep -cx tail) = 2 ]; do sleep 0.1; done")
    assert not set(first) & set(lab.exec("cp1", "pgrep", "-x", "tail").stdout.split())
    lab.lab("stop", "cp1")
    lab.lab("start", "cp1")
    assert [systemctl(lab, "is-active", name) for name in ("kept", "started")] == ["active", "inactive"]
    assert systemctl(lab, "is-active", "containerd") == "active"


def test_timer_of_a_plan_is_enabled_removed_and_undone(bare: Bare, garboard_in_node: tuple[str, ...]) -> None:
    lab = bare()

    def carry_out(what: str, *, check: bool = True) -> tuple[str, str]:
        """Carry out a plan, and return what is known of the timer and of its files."""
        lab.exec("cp1", *garboard_in_node[:-1], _CARRY_OUT, what, check=check)
        files = lab.exec("cp1", "sh", "-c", "ls /etc/systemd/system | grep garboard", check=False).stdout
        return systemctl(lab, "is-enabled", "garboard-probe.timer"), files

    there = ("enabled", "garboard-probe.service\ngarboard-probe.timer\n")
    gone = ("Unit garboard-probe.timer could not be found.", "")
    assert carry_out("fail", check=False) == gone
    assert carry_out("keep") == there
    assert carry_out("fail", check=False) == there
    assert systemctl(lab, "is-active", "garboard-probe.timer") == "active"
    assert carry_out("remove") == gone
    assert carry_out("remove") == gone
