"""A node in a mount namespace of its own whose part of a change waits to be confirmed: `confirming_node SCENE FILE`.

What it writes to /etc and /var/lib stays in memory, `systemctl` notes what it is told, and the API server of the
kubeconfig FILE is real. What became of the change is printed as JSON.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from garboard.cli.main import run
from garboard.engine import Journal, Plan, Step, WriteFile
from garboard.node.change_arming import arm
from garboard.node.change_cluster import ChangeCluster
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, this_node
from garboard.phases.revision import ChangeTarget, NodeReport, moment
from tests.support.node.reporters import MemoryReporter

ADMIN, FILE = "/etc/kubernetes/admin.conf", Path("/etc/kubernetes/x.yaml")
LAYERED, HIDDEN = ("/etc", "/var/lib"), ("/etc/systemd/system", "/var/lib/garboard", "/etc/kubernetes")
_SYSTEMCTL = """#!/bin/sh
echo "$@" >>{log}
case $1 in is-enabled) test -e /etc/systemd/system/$2 ;; esac
"""


def main(scene: str, kubeconfig: str) -> None:
    programs = hide_machine(Path(kubeconfig))
    node = this_node(MemoryReporter())
    cluster = ChangeCluster(ADMIN)
    FILE.write_text("former")
    within_s, act = SCENES[scene]
    begin(node, cluster, within_s)
    armed = units()
    if scene == "killed":
        act()
    else:
        threading.Thread(target=act, daemon=True).start()
    status = run(["change", "watch"])
    stored = cluster.target()
    print(
        json.dumps(
            {
                "status": status,
                "file": FILE.read_text(),
                "armed": armed,
                "left": units(),
                "state": stored.target.state if stored else "",
                "runs": [each.record.state for each in node.runs.all() if not each.header.undoes],
                "log": (programs / "log").read_text().splitlines(),
            }
        )
    )


def hide_machine(kubeconfig: Path) -> Path:
    """Cover what belongs to the machine, and put programs on the PATH that units and services need."""
    admin = kubeconfig.read_bytes()
    programs = kubeconfig.parent / "programs"
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    layers = kubeconfig.parent / "layers"
    layers.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", layers], check=True)
    for number, each in enumerate(LAYERED):
        upper, work = layers / f"u{number}", layers / f"w{number}"
        upper.mkdir()
        work.mkdir()
        options = f"lowerdir={each},upperdir={upper},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, each], check=True)
    for each in HIDDEN:
        Path(each).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", each], check=True)
    Path(ADMIN).write_bytes(admin)
    for name, text in (("systemctl", _SYSTEMCTL.format(log=programs / "log")), ("garboard", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    return programs


def begin(node: LocalNode, cluster: ChangeCluster, within_s: float) -> None:
    """Do this node's part of the recorded change; it is armed for `within_s`."""
    stored = cluster.target()
    assert stored is not None
    now = datetime.now(UTC)
    target = ChangeTarget(
        revision=3, digest="d", state="rolling", parent=2, nodes=["cp1"], confirm_within_seconds=300,
        armed_until=moment(now + timedelta(seconds=within_s)), revert_slot_seconds=1,
    )  # fmt: skip
    assert cluster.replace(stored, target)
    report = NodeReport(revision=3, digest="d", result="done", at=moment(now)).as_patch("cp1")
    steps = (Step(WriteFile(path=str(FILE), content=b"new", mode=0o600), "a test"), Step(report, "a test"))
    with node.reserved("change node", is_whole=True):
        confirm_by = arm(node, target, "cp1", {}, restarts_members=False)
        plan = Plan(tuple(replace(step, phase="test", node="cp1") for step in steps))
        options = RunOptions(command="change node", confirm_by=confirm_by)
        Transactions(node.runs, node.reporter).carry_out(plan, RunSettings(node_name="cp1"), options)


def units() -> list[str]:
    found = [*Path("/etc/systemd/system").iterdir(), *Path("/var/lib/garboard/change").glob("*")]
    return sorted(each.name for each in found)


def confirm() -> None:
    time.sleep(2)
    run(["change", "confirm", "--kubeconfig", ADMIN])


def edit() -> None:
    FILE.write_text("mine")


def watch_until_killed() -> None:
    """Have a watcher take the change back that is killed once it has begun with that."""
    pid = os.fork()
    if pid == 0:
        begin_step = Journal.begin

        def begin_and_die(journal: Journal, index: int, step: Step) -> None:
            begin_step(journal, index, step)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(Journal, "begin", begin_and_die)  # noqa: B010 - a method of a frozen class
        run(["change", "watch"])
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


SCENES: dict[str, tuple[float, Callable[[], object]]] = {
    "nobody": (3.0, lambda: None),
    "confirm": (300.0, confirm),
    "edit": (3.0, edit),
    "killed": (3.0, watch_until_killed),
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
