"""Kill init and control-plane joins in the lab, at one point or at several, and compare what resume and undo leave.

One lab serves all points: an undo, or a reset after a resume, brings its nodes back to how they were.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from garboard.cli.lab.wiring import labs
from garboard.lab.bootstrap import new_secrets
from garboard.lab.kubeadm import init_documents
from tools.harness.joining import CONFIG, Joining, begun_cluster
from tools.harness.killing import KillPoint, both_points
from tools.harness.lab import LabUnderTest, put
from tools.harness.node_program import garboard_for_nodes

VERSION = "v1.37.1"
_KILLED = (-9, 128 + 9)  # what SIGKILL has ended, by itself and below a shell
_ETCD = "/etc/kubernetes/pki/etcd"
_ETCDCTL = f"etcdctl --cacert {_ETCD}/ca.crt --cert {_ETCD}/server.crt --key {_ETCD}/server.key member list"
_NODES = "kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes -o name"
# What a run leaves on a node; its journal is not looked at, nor what the container runtime stores for itself, nor the
# logs that the lab keeps of services, as journald would.
_TREE = (
    "find /etc /var /run/flannel /opt/cni -xdev "
    "\\( -path /var/lib/garboard -o -path /var/lib/containerd "
    "-o -path /var/log/containerd.log -o -path /var/log/kubelet.log \\) -prune "
    "-o -printf '%y %m %U:%G %p\\n' 2>/dev/null | sort; "
    "find /etc /var/lib/kubelet /var/lib/etcd -xdev -type f -exec sha256sum {} + 2>/dev/null | sort -k2"
)
_STATE = "crictl -r unix:///run/containerd/containerd.sock pods -q; systemctl is-active kubelet"
_CERTIFICATES = "cd /etc/kubernetes/pki && find . -name '*.crt' -printf '%p %i %T@\\n'"


@dataclass(frozen=True)
class LiveOutcome:
    """What became of a run that was killed at a point."""

    scenario: str
    point: str
    phase: str
    then: str
    problems: list[str]


@dataclass(frozen=True)
class Scene:
    """A command on a node of a lab, and a healthy node that can be asked about the cluster, if there is one."""

    name: str
    lab: LabUnderTest
    garboard: tuple[str, ...]
    node: str
    words: tuple[str, ...]
    witness: str = ""
    stride: int = 1  # all points, each time

    def steps(self) -> list[str]:
        """Return the phase of every step."""
        done = self.lab.exec(self.node, *self.garboard, *self.words, "--dry-run", "-o", "json")
        return [step["phase"] for step in json.loads(done.stdout)["steps"]]

    def points(self, phases: list[str]) -> list[KillPoint]:
        """Return the points that need a lab: of init those from kubelet-start on, of join all."""
        first = phases.index("kubelet-start") if self.words[0] == "init" else 0
        return both_points(range(first, len(phases)))

    def after_undo(self, point: KillPoint, phase: str) -> LiveOutcome:
        """Kill the run, undo it, and say what is not as it was: files, members, nodes, pods, the service."""
        before = self._seen()
        problems = self._kill(point, self.words)
        done = self.lab.exec(self.node, *self.garboard, "undo", check=False)
        if done.returncode:
            problems.append(f"undo ended with {done.returncode}: {done.stderr[-800:]}")
        return LiveOutcome(self.name, point_name(point), phase, "undo", problems + _changed(before, self._seen()))

    def after_resume(self, point: KillPoint, phase: str) -> LiveOutcome:
        """Kill the run, resume it, and say what is missing; then the node is reset for the next one."""
        return self.after_resumes([point], [phase])[0]

    def after_resumes(self, points: Sequence[KillPoint], phases: Sequence[str]) -> list[LiveOutcome]:
        """Kill one run at each of the points in turn, resume it each time, and say what is missing at its end."""
        killed: list[list[str]] = []
        finished: dict[str, str] = {}
        for number, point in enumerate(points):
            killed.append(self._kill(point, ("resume",) if number else self.words))
            finished = self._finished_certificates() | finished
        done = self.lab.exec(self.node, *self.garboard, "resume", check=False)
        ended = [f"resume ended with {done.returncode}: {done.stderr[-800:]}"] if done.returncode else []
        after = self._finished_certificates()
        ended += [f"{path} was made again" for path, found in finished.items() if after.get(path) != found]
        ended += self._missing()
        self._clear()
        return [
            LiveOutcome(self.name, point_name(point), phase, "resume", problems + ended)
            for point, phase, problems in zip(points, phases, killed, strict=True)
        ]

    def _kill(self, point: KillPoint, words: tuple[str, ...]) -> list[str]:
        done = self.lab.exec(self.node, *point.of(self.garboard), *words, check=False)
        status = json.loads(self.lab.exec(self.node, *self.garboard, "status", "-o", "json").stdout)
        if done.returncode not in _KILLED:
            return [f"{' '.join(words)} was not killed but ended with {done.returncode}: {done.stderr[-500:]}"]
        return [] if status["runs"] else [f"no run is open after the kill: {done.stderr[-500:]}"]

    def _seen(self) -> str:
        cluster = f"{self._members(self.witness)}\n{self._nodes(self.witness)}" if self.witness else ""
        return self._shell(self.node, f"{_TREE}; {_STATE}") + cluster

    def _missing(self) -> list[str]:
        expected = {name for name in (self.witness, self.node) if name}
        members, nodes = self._members(self.node), self._nodes(self.node)
        found = [line for line in members.splitlines() if not line.endswith("false")]
        if len(members.splitlines()) != len(expected) or found:
            found.append(f"the members are {members}")
        return found if set(nodes.split()) == {f"node/{name}" for name in expected} else [*found, f"nodes: {nodes}"]

    def _members(self, node: str) -> str:
        return self._shell(node, _ETCDCTL)

    def _nodes(self, node: str) -> str:
        return self._shell(node, _NODES)

    def _finished_certificates(self) -> dict[str, str]:
        """Return the certificates on the node with inode and time; one that was being written is not among them."""
        lines = self._shell(self.node, _CERTIFICATES).splitlines()
        return {path: rest for path, _, rest in (line.partition(" ") for line in lines)}

    def _clear(self) -> None:
        self.lab.exec(self.node, *self.garboard, "reset", "--force", check=False)
        self._shell(self.node, "rm -rf /var/log/pods /var/log/containers")  # which a reset leaves
        if self.witness:
            self._shell(self.witness, f"kubectl --kubeconfig /etc/kubernetes/admin.conf delete node {self.node}")

    def _shell(self, node: str, script: str) -> str:
        return self.lab.exec(node, "sh", "-c", script, check=False).stdout


@contextmanager
def joining_scene(name: str) -> Iterator[Scene]:
    """Make a cluster of one control plane, with a bare node beside it that joins as another."""
    with garboard_for_nodes() as command:
        cluster = begun_cluster(name, VERSION, command, control_planes=2, workers=0)
        with cluster as joining:
            assert isinstance(joining, Joining)
            joining.prepare("cp2")
            yield Scene("control-plane join", joining.lab, command, "cp2", ("join", "--config", CONFIG), "cp1")


@contextmanager
def init_scene(name: str) -> Iterator[Scene]:
    """Make a bare node that becomes the first of a cluster."""
    lab = LabUnderTest(name)
    lab.lab("up", "--by", "none", "--kubernetes-version", VERSION, "--control-planes", "1")
    try:
        home = labs()
        record = home.records.require(name)
        _, needs = home.records.read_given(home.files(name))
        put(lab, "cp1", CONFIG, init_documents(record.lab, record.lab.nodes[0], new_secrets(), needs, {}))
        with garboard_for_nodes() as command:
            yield Scene("init", lab, command, "cp1", ("init", "--config", CONFIG))
    finally:
        lab.lab("down", check=False)


def _changed(before: str, after: str) -> list[str]:
    old, new = set(before.splitlines()), set(after.splitlines())
    return [f"- {line}" for line in sorted(old - new)] + [f"+ {line}" for line in sorted(new - old)]


def point_name(point: KillPoint) -> str:
    """Name a point by its step and whether the step had begun or was done."""
    return f"{point.index} {'begun' if point.moment == 'begin' else 'done'}"
