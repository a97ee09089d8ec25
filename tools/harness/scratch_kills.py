"""Kill the file-only part of init, a swap of static pods and an upgrade, at every point, on a scratch machine.

What resume and undo leave is compared with what an undisturbed run leaves, and with what was there before.

Runs as root inside the namespaces of `tools.harness.machine`, where `/etc` and `/var` belong to it; prints JSON.
"""

import argparse
import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from garboard.cli.console import ConsoleReporter
from garboard.cli.main import run
from garboard.engine import traits_of
from garboard.host.node_machine import NodeMachine
from garboard.node.runs import Run, Runs
from tools.harness import scratch_swap, scratch_upgrade
from tools.harness.credentials import credential_problems
from tools.harness.killing import Points
from tools.harness.trees import Tree, differences, read_tree

ROOTS, STATE = ("/etc", "/var", "/run"), "/var/lib/garboard"
CONFIG, LOG = "/kubeadm.yaml", Path("/tmp/last-run.log")
LIVE = (
    "preflight,wait-control-plane,upload-config,mark-control-plane,bootstrap-token,kubelet-finalize,addon,"
    "show-join-command"
)
CONFIGURATION = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10}}
nodeRegistration: {{name: node-1}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
{more}"""
NO_RUN = 4  # how undo ends if nothing is open
WHOLE = ("init", "--config", CONFIG, "--skip-phases", LIVE)
UPGRADE = scratch_upgrade.UPGRADE
SWAP = ("swap",)  # no command of ours yet: a function of the library


@dataclass(frozen=True)
class Scenario:
    """A command on a machine, and what is there before."""

    name: str
    command: tuple[str, ...]
    more: str = ""
    has_files: bool = False

    def prepare(self) -> None:
        """Make the machine as it is before the command."""
        for folder in ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd", STATE):
            shutil.rmtree(folder, ignore_errors=True)
        Path("/run/kubelet.state").write_text("inactive\n")
        Path("/etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        Path("/etc/group").write_text("root:x:0:\n")
        Path(CONFIG).write_text(CONFIGURATION.format(more=self.more))
        if self.has_files:
            self._leave_files()
        if self.command == UPGRADE:
            scratch_upgrade.stand_in()
            scratch_upgrade.leave_node(CONFIGURATION.format(more=""))
        if self.command == SWAP:
            scratch_swap.leave_manifests()
            scratch_swap.stand_in()

    def _leave_files(self) -> None:
        """Leave what an earlier life of the machine could have left: files to be replaced, others to be kept."""
        Path("/run/kubelet.state").write_text("active\n")
        for path, mode, uid in (
            ("/var/lib/kubelet/config.yaml", 0o640, 1000),
            ("/var/lib/kubelet/.config.yaml.abcdefgh", 0o600, 0),  # looks like a killed write, and is not ours
            ("/var/lib/kubelet/kubeadm-flags.env", 0o600, 0),
            ("/etc/kubernetes/manifests/kube-scheduler.yaml", 0o644, 1000),
            ("/etc/kubernetes/notes.txt", 0o604, 1000),
        ):
            Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o750)
            Path(path).write_text(f"what stood in {path}\n")
            Path(path).chmod(mode)
            os.chown(path, uid, uid)


SCENARIOS = (
    Scenario("init on an empty machine", WHOLE),
    Scenario("init over files of an earlier life", WHOLE, has_files=True),
    Scenario("init with a rootless control plane", WHOLE, more="featureGates: {RootlessControlPlane: true}\n"),
    Scenario("a single phase (certs)", ("init", "phase", "certs", "all", "--config", CONFIG)),
    Scenario("swap of static pods", SWAP),
    Scenario("upgrade of a control plane", UPGRADE),
)


@dataclass(frozen=True)
class Outcome:
    scenario: str
    point: str
    phase: str
    then: str
    problems: list[str]
    of: int = 0  # so many points there are


def child(command: Sequence[str], points: Points | None = None) -> int:
    """Run a command in a process of its own; return its status, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if points:
            points.watch()
        status = _started(command)
        if points and not points.deadly:
            Path("/tmp/points.json").write_text(json.dumps(points.passed))
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _started(command: Sequence[str]) -> int:
    return scratch_swap.swap(ConsoleReporter()) if tuple(command) == SWAP else run(list(command))


def warm_up(command: Sequence[str]) -> None:
    """Import here what commands import when they run, so that no child has to."""
    for package in ("cli", "node", "phases", "pki", "etcd", "kube", "cri"):
        for found in walk_packages(import_module(f"garboard.{package}").__path__, f"garboard.{package}."):
            import_module(found.name)
    if tuple(command) != SWAP:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            run([*command, "--dry-run"])


def points_of(command: Sequence[str]) -> list[str]:
    """Carry the command out, and return all points that it passes."""
    status = child(command, Points())
    assert status == 0, LOG.read_text()
    passed: list[str] = json.loads(Path("/tmp/points.json").read_text())
    return list(dict.fromkeys(passed))


def tree() -> Tree:
    return read_tree(ROOTS, without=(STATE,))


def open_run() -> Run | None:
    return next(iter(Runs(NodeMachine(None)).open()), None)


def after_resume(scenario: Scenario, point: str, whole: Tree) -> Outcome:
    """Kill the command at a point, resume, and say what is not as if nothing had happened."""
    scenario.prepare()
    problems = _kill(scenario.command, point)
    killed, found = tree(), open_run()
    phase = found.record.next_phase if found else ""
    finished = _finished_files(found)
    if found is not None:
        problems += _status("resume", child(("resume",)))
    elif child(scenario.command) != 0:
        problems.append(f"the command cannot be repeated: {LOG.read_text()[-500:]}")
    after = tree()
    problems += [f"{path} was made again" for path in finished if not killed[path].is_same_file(after.get(path))]
    problems += _unlike(whole, after) + credential_problems()
    return Outcome(scenario.name, point, phase, "resume", problems + _left_open())


def after_undo(scenario: Scenario, point: str) -> Outcome:
    """Kill the command at a point, undo, and say what is not as it was."""
    scenario.prepare()
    before = tree()
    problems = _kill(scenario.command, point)
    found = open_run()
    phase = found.record.next_phase if found else ""
    status = child(("undo",))
    if status and (found is not None or status != NO_RUN):
        problems += _status("undo", status)
    problems += differences(before, tree())
    return Outcome(scenario.name, point, phase, "undo", problems + _left_open())


def after_killed_undo(scenario: Scenario, last: str, point: str) -> Outcome:
    """Kill the command at its end and the undo at a point, undo again, and say what is not as it was."""
    scenario.prepare()
    before = tree()
    problems = _kill(scenario.command, last) + _kill(("undo",), point)
    if open_run() is not None:
        problems += _status("undo", child(("undo",)))
    problems += differences(before, tree())
    return Outcome(scenario.name, point, "undo", "undo again", problems + _left_open())


def _kill(command: Sequence[str], point: str) -> list[str]:
    status = child(command, Points(point))
    return [] if status == -signal.SIGKILL else [f"was not killed but ended with {status}: {LOG.read_text()[-500:]}"]


def _status(what: str, status: int) -> list[str]:
    return [f"{what} ended with {status}: {LOG.read_text()[-800:]}"] if status else []


def _finished_files(found: Run | None) -> list[str]:
    if found is None:
        return []
    plan = found.record.plan(found.folder, Runs(NodeMachine(None)).codec)
    finished = (plan.steps[index].action for index in found.record.progress.finished)
    return [path for action in finished for path in traits_of(action).writes(action)]


def _unlike(whole: Tree, after: Tree) -> list[str]:
    """Say in what a tree differs from that of an undisturbed run; credentials are new each time."""

    def known(found: Tree) -> Tree:
        return {path: each for path, each in found.items() if not path.endswith((".key", ".crt", ".pub", ".conf"))}

    lines = differences(known(whole), known(after))
    return lines + [f"{path} is missing" for path in sorted(whole.keys() - after.keys())]


def _left_open() -> list[str]:
    runs, found = Path(STATE, "runs"), open_run()
    kept = sorted(str(path) for path in runs.glob("*/kept")) if runs.exists() else []
    return ([f"{found.record.header.run} is open"] if found else []) + kept


def outcomes(scenario: Scenario, *, undoes_undo: bool, every: int = 1, first: int = 0) -> Iterator[Outcome]:
    """Kill a scenario at all its points, or at every n-th of them from a first one on."""
    scenario.prepare()
    warm_up(scenario.command)
    points = points_of(scenario.command)
    whole = tree()
    last = next(point for point in reversed(points) if point.endswith("ended"))
    for point in points[first::every]:
        for outcome in (after_resume(scenario, point, whole), after_undo(scenario, point)):
            yield replace(outcome, of=len(points))
    if undoes_undo:
        scenario.prepare()
        _kill(scenario.command, last)
        of_undo = points_of(("undo",))
        for point in of_undo[first::every]:
            yield replace(after_killed_undo(scenario, last, point), of=len(of_undo))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="kill only at every n-th point")
    parser.add_argument("--first", type=int, default=0, help="the first point to kill at")
    parser.add_argument("names", nargs="*", help="the scenarios to run; all of them if none is named")
    asked = parser.parse_args()
    for scenario in SCENARIOS:
        if not asked.names or scenario.name in asked.names:
            undoes_undo = scenario.command in (WHOLE, SWAP, UPGRADE)
            for each in outcomes(scenario, undoes_undo=undoes_undo, every=asked.every, first=asked.first):
                sys.stdout.write(json.dumps(asdict(each)) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
