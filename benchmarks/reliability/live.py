"""Kill control-plane joins in the lab, each at one point, and look at what resume and undo make of the cluster.

One cluster serves all points: after an undo, or the reset of a node that joined, it is as it was.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab.joining import CONFIG, Joining, kubeadm_cluster
from tests.lab.killing import KillPoint
from tests.lab.node_program import garboard_for_nodes

NODE = "cp2"
# What a join leaves on a node, whoever did it; the journal itself is not looked at, nor what the runtime stores.
_TREE = (
    "find /etc /var/lib /root /run/flannel /opt/cni -xdev "
    "\\( -path /var/lib/garboard -o -path /var/lib/containerd -o -path /var/lib/cni \\) -prune "
    "-o -printf '%y %m %U:%G %p\\n' 2>/dev/null | sort; "
    "find /etc /var/lib/kubelet /var/lib/etcd -xdev -type f -exec sha256sum {} + 2>/dev/null | sort -k2"
)
_PODS = "crictl -r unix:///run/containerd/containerd.sock pods -q"


@dataclass(frozen=True)
class LiveOutcome:
    """What became of a join that was killed at a point."""

    scenario: str
    point: str
    phase: str
    then: str
    problems: list[str]


@contextmanager
def cluster(name: str, version: str = "v1.37.1") -> Iterator[Joining]:
    """Make a cluster of one control plane, with a bare node beside it."""
    with (
        garboard_for_nodes() as command,
        kubeadm_cluster(name, version, command, control_planes=2, workers=0) as joining,
    ):
        joining.prepare(NODE)
        yield joining


def steps_of(joining: Joining) -> list[str]:
    """Return the phase of every step that a join of the bare node has."""
    done = joining.lab.exec(NODE, *joining.garboard, "join", "--config", CONFIG, "--dry-run", "-o", "json")
    return [step["phase"] for step in json.loads(done.stdout)["steps"]]


def kill(joining: Joining, point: KillPoint) -> list[str]:
    done = joining.lab.exec(NODE, *point.of(joining.garboard), "join", "--config", CONFIG, check=False)
    status = json.loads(joining.lab.exec(NODE, *joining.garboard, "status", "-o", "json").stdout)
    return [] if status["runs"] else [f"no run is open after the kill: {done.stderr[-500:]}"]


def tree(joining: Joining) -> str:
    return joining.lab.exec(NODE, "sh", "-c", _TREE, check=False).stdout


def nodes(joining: Joining) -> set[str]:
    return set(joining.lab.kubectl("get", "nodes", "-o", "name").split())


def after_undo(joining: Joining, point: KillPoint, phase: str) -> LiveOutcome:
    """Kill the join, undo it, and say what is not as it was: files, members, nodes, pods, the service."""
    before = tree(joining)
    problems = kill(joining, point)
    done = joining.lab.exec(NODE, *joining.garboard, "undo", check=False)
    if done.returncode:
        problems.append(f"undo ended with {done.returncode}: {done.stderr[-800:]}")
    problems += _changed(before, tree(joining))
    if joining.members() != {"cp1": False}:
        problems.append(f"the members are {joining.members()}")
    if nodes(joining) != {"node/cp1"}:
        problems.append(f"the nodes are {sorted(nodes(joining))}")
    if pods := joining.lab.exec(NODE, "sh", "-c", _PODS, check=False).stdout.split():
        problems.append(f"{len(pods)} pods are left")
    return LiveOutcome("control-plane join", _told(point), phase, "undo", problems)


def after_resume(joining: Joining, point: KillPoint, phase: str) -> LiveOutcome:
    """Kill the join, resume it, and say what is missing; then undo nothing but reset the node for the next one."""
    problems = kill(joining, point)
    killed = _credentials(joining)
    done = joining.lab.exec(NODE, *joining.garboard, "resume", check=False)
    if done.returncode:
        problems.append(f"resume ended with {done.returncode}: {done.stderr[-800:]}")
    else:
        after = _credentials(joining)
        problems += [f"{path} was made again" for path, inode in killed.items() if after.get(path) != inode]
        if joining.members() != {"cp1": False, NODE: False}:
            problems.append(f"the members are {joining.members()}")
    if nodes(joining) != {"node/cp1", f"node/{NODE}"}:
        problems.append(f"the nodes are {sorted(nodes(joining))}")
    joining.lab.exec(NODE, *joining.garboard, "reset", "--force", check=False)
    joining.lab.kubectl("delete", "node", NODE, check=False)
    return LiveOutcome("control-plane join", _told(point), phase, "resume", problems)


def _credentials(joining: Joining) -> dict[str, str]:
    """Return the credentials of steps that have finished, with inode and digest."""
    script = (
        "find /etc/kubernetes/pki -name '*.crt' -printf '%p %i\\n'; sha256sum $(find /etc/kubernetes/pki -name '*.crt')"
    )
    lines = joining.lab.exec(NODE, "sh", "-c", script, check=False).stdout.splitlines()
    return dict(line.split()[:2] for line in lines if len(line.split()) == 2)


def _changed(before: str, after: str) -> list[str]:
    old, new = set(before.splitlines()), set(after.splitlines())
    return [f"- {line}" for line in sorted(old - new)] + [f"+ {line}" for line in sorted(new - old)]


def _told(point: KillPoint) -> str:
    return f"{point.index} {'begun' if point.moment == 'begin' else 'done'}"


def points_of(phases: Sequence[str]) -> list[KillPoint]:
    return [KillPoint(moment, index) for index in range(len(phases)) for moment in ("begin", "end")]
