"""A machine for one test: a process tree, mounts, network and control groups of its own, so that a listing is complete.

`run_alone` starts a scenario of this module there; the scenario compares full listings before and after and answers
with what differs. A listing leaves nothing out: no other process shares this machine.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from garboard.host.pivot import mount
from garboard.lab.cgroups import Hierarchy, parse_hierarchies
from garboard.lab.layout import images_folder, lab_home
from garboard.retry import Pauses, wait_until

GARBOARD = str(Path(sys.executable).parent / "garboard")
REPOSITORY = Path(__file__).parents[3]
SETTLE_WITHIN_S = 15.0
# Files outside of the labs' home that a kubelet, kubeadm or a network plugin would leave on a machine of its own.
WATCHED = ("/run", "/opt", "/etc/kubernetes", "/etc/cni", "/var/lib/kubelet", "/var/lib/etcd", "/var/lib/cni",
           "/var/lib/containerd", "/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes")  # fmt: skip
Listing = dict[str, list[str]]


def run_alone(scenario: str, *arguments: str) -> dict[str, object]:
    """Run a scenario of this module alone and return its answer."""
    tag = f"garboard-test-{os.getpid()}"
    groups = [each.path / tag for each in hierarchies()]
    home = lab_home().parent / tag
    home.mkdir(parents=True)
    for group in groups:
        group.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (group / name).exists():
                (group / name).write_text((group.parent / name).read_text())
    try:
        shutil.copytree(images_folder(lab_home()), images_folder(home), copy_function=os.link, symlinks=True)
        join = 'for g; do [ "$g" = -- ] && break; echo 0 >"$g/cgroup.procs"; shift; done; shift; exec "$@"'
        command = [
            "sh", "-c", join, "join", *map(str, groups), "--", "unshare", "--mount", "--pid", "--net", "--ipc", "--uts",
            "--cgroup", "--kill-child=KILL", "--mount-proc", "--", sys.executable, "-m", "tests.support.lab.alone",
            scenario,
        ]  # fmt: skip
        environment = {**os.environ, "GARBOARD_LAB_HOME": str(home)}
        ended = subprocess.run(
            [*command, *arguments],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-4000:]
        sys.stderr.write(ended.stderr)
        answer: dict[str, object] = json.loads(ended.stdout)
        return answer
    finally:
        shutil.rmtree(home)
        for group in groups:
            group.rmdir()


def hierarchies() -> tuple[Hierarchy, ...]:
    return parse_hierarchies(Path("/proc/self/mountinfo").read_text())


# --- inside ----------------------------------------------------------------------------------------------------------


def listing() -> Listing:
    """List everything that a lab could leave in the kernel or beside its home."""
    _reap()
    processes = {path.name: _process(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    namespaces = {each for _, held in processes.values() for each in held}
    return {
        "processes": sorted(f"{pid} {command}" for pid, (command, _) in processes.items()),
        "mounts": Path("/proc/self/mountinfo").read_text().splitlines(),
        "namespaces": sorted(namespaces),
        "control groups": sorted(str(path) for each in hierarchies() for path in _folders(each.path)),
        "links": _output("ip", "-o", "link")
        + _output("ip", "-o", "addr")
        + _output("ip", "route", "show", "table", "all"),
        "nft rules": _output("nft", "list", "ruleset"),
        "sysctls": _sysctls(),
        "files": sorted(str(path) for top in WATCHED for path in Path(top).rglob("*")),
    }


def _process(path: Path) -> tuple[str, list[str]]:
    """The command line and the namespaces of a process; one that just ends has none of the latter any more."""
    try:
        return repr((path / "cmdline").read_bytes()), [str(link.readlink()) for link in (path / "ns").iterdir()]
    except OSError:
        return "ending", []


def _reap() -> None:
    """Reap orphans: the first process of a namespace inherits them."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _folders(top: Path) -> list[Path]:
    return [top, *(path for child in top.iterdir() if child.is_dir() for path in _folders(child))]


def _output(*command: str) -> list[str]:
    # The age of an entry is no difference.
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sorted(re.sub(r"\s+(expires|age) \S+", "", line) for line in text.splitlines())


def _sysctls() -> list[str]:
    """Every sysctl by name, and the value of each that can be set; the others are the kernel's own counters."""
    found = []
    for path in Path("/proc/sys").rglob("*"):
        if path.is_file():
            # Writing to ns_last_pid sets the number of the next process; it moves with every one that starts.
            is_setting = path.stat().st_mode & 0o200 and path.name != "ns_last_pid"
            found.append(f"{path}={_value(path)}" if is_setting else str(path))
    return sorted(found)


def _value(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def differences(before: Listing, after: Listing) -> dict[str, list[str]]:
    """What is there now and was not, or the other way round."""
    return {
        kind: [f"- {each}" for each in set(before[kind]) - set(after[kind])]
        + [f"+ {each}" for each in set(after[kind]) - set(before[kind])]
        for kind in before
        if before[kind] != after[kind]
    }


def settle(before: Listing) -> dict[str, list[str]]:
    """Compare until nothing differs; the kernel takes namespaces down in the background."""
    found: dict[str, list[str]] = {}

    def compare() -> str | None:
        nonlocal found
        found = differences(before, listing())
        return ", ".join(found) or None

    wait_until(compare, timeout_s=SETTLE_WITHIN_S, pauses=Pauses.every(0.2))
    return found


def garboard(*arguments: str) -> str:
    ended = subprocess.run([GARBOARD, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{arguments}: {ended.stderr}"
    return ended.stdout


def up_and_down() -> dict[str, object]:
    """A cluster of two nodes with a crash and a partition in its life."""
    before = listing()
    garboard("lab", "up", "--control-planes", "1")
    during = differences(before, listing())
    garboard("lab", "partition", "cp1", "worker1")
    garboard("lab", "stop", "worker1")
    garboard("lab", "start", "worker1")
    garboard("lab", "down")
    return {"during": sorted(during), "left": settle(before)}


def supervisor_killed() -> dict[str, object]:
    """A lab whose supervisor dies: everything in the kernel goes with it, the rest with prune."""
    before = listing()
    garboard("lab", "up", "--by", "none", "--control-planes", "1")
    (lab,) = json.loads(garboard("lab", "list", "-o", "json"))
    record = json.loads((lab_home() / "labs/lab/lab.json").read_text())
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    time.sleep(1)
    _reap()
    (dead,) = json.loads(garboard("lab", "list", "-o", "json"))
    pruned = json.loads(garboard("lab", "prune", "-o", "json"))
    return {"states": [lab["state"], dead["state"]], "pruned": pruned, "left": settle(before)}


# Where `lab up` is when it writes a line that begins so.
STAGES = {
    "programs and images": "",
    "supervisor": "starting the lab's supervisor",
    "nodes": "starting 2 nodes",
    "nodes up": "cp1: runs",
    "certificates": "cp1: kubeadm init: certs",
    "static pods": "cp1: kubeadm init: wait-control-plane",
    "add-ons": "cp1: kubeadm init: addons",
    "join": "worker1: kubeadm join: preflight",
    "waiting": "waiting:",
}


def up_killed(seed: str, *stages: str) -> dict[str, object]:
    """`lab up` killed once in each of the stages: prune, or the next `up`, clears away what is left."""
    chance = random.Random(int(seed))
    before = listing()
    left: dict[str, object] = {}
    for stage in stages:
        _kill_in_stage(STAGES[stage], chance.uniform(0, 0.4))
        garboard("lab", "prune")
        left[stage] = settle(before)
    _kill_in_stage(STAGES["static pods"], 0.1)
    garboard("lab", "up", "--by", "none")  # takes over the name of the one that died
    garboard("lab", "down")
    left["taken over"] = settle(before)
    return {"seed": seed, "left": left}


def _kill_in_stage(begins: str, delay: float) -> None:
    command = [GARBOARD, "lab", "up", "--control-planes", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr if begins else ():
            if line.startswith(begins):
                break
        time.sleep(delay)
        process.kill()


SCENARIOS: dict[str, Callable[..., dict[str, object]]] = {
    "up-and-down": up_and_down,
    "supervisor-killed": supervisor_killed,
    "up-killed": up_killed,
}


def main() -> None:
    """Show only our own control groups, then run the scenario that the command line names."""
    for each in hierarchies():
        subprocess.run(["umount", each.path], check=True)
        mount("cgroup", str(each.path), each.kind, 0, each.options or None)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    answer = SCENARIOS[sys.argv[1]](*sys.argv[2:])
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
