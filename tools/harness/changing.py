"""A cluster of a lab that is changed by garboard, and what its nodes look like before and afterwards."""

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from garboard.retry import Pauses, wait_until
from tools.harness.killing import KillPoint
from tools.harness.lab import GARBOARD, LabUnderTest
from tools.harness.swapping import COMPONENTS

CONTROL_PLANES = ("cp1", "cp2", "cp3")
NODES = (*CONTROL_PLANES, "worker1")
# All that is the cluster's on a node, except for what a kubelet notes of its pods.
_FILES = (
    "found=$(find /etc/kubernetes /etc/systemd/system /etc/cni /var/lib/kubelet/pki -type f;"
    " find /var/lib/kubelet -maxdepth 1 -type f ! -name '*_pods_state');"
    " sha256sum $found; stat -c '%a:%u:%g %n' $found"
)
_CONTAINERS = "crictl -r unix:///run/containerd/containerd.sock ps -o json"
_KUBELET = 'for each in /proc/[0-9]*; do [ "$(cat $each/comm 2>/dev/null)" = kubelet ] && echo $each; done; true'
_CARRIER = """#!/bin/sh
inside() {{ exec {lab} "$node" -- {garboard} "$@"; }}
node=$1; shift 2
{before}
inside "$@"
"""


@dataclass(frozen=True)
class SeenNode:
    """What a node has: the digest, mode and owner of each file, its containers by name and pod, and its kubelet."""

    files: dict[str, str]
    containers: dict[str, str]
    kubelet: str


@dataclass(frozen=True)
class Changing:
    """The nodes of a lab; `garboard` is the command that runs it there."""

    lab: LabUnderTest
    garboard: tuple[str, ...]

    @property
    def inside(self) -> str:
        """The words of a shell that run a command in a node: its name, `--` and the command follow."""
        return shlex.join([GARBOARD, "lab", "exec", "--name", self.lab.name])

    def run(self, node: str, *words: str, killed_at: KillPoint | None = None) -> subprocess.CompletedProcess[str]:
        command = killed_at.of(self.garboard) if killed_at else self.garboard
        return self.lab.exec(node, *command, "change", *words, check=False)

    def carried(self, script: Path, before: str = "") -> list[str]:
        """Return the flags with which all nodes are reached from the machine of the lab, by a script that is written.

        `before` are lines of shell that the script runs first: `$node` and the words of the command are there.
        """
        script.write_text(_CARRIER.format(lab=self.inside, garboard=shlex.join(self.garboard), before=before))
        script.chmod(0o755)
        return ["--via", f"{script} {{node}}", "--kubeconfig", str(self.lab.files.kubeconfig)]

    def look(self, node: str) -> SeenNode:
        """Return what a node has that a change may touch, or must not."""
        told = self.lab.exec(node, "sh", "-c", f"{_KUBELET}; echo; {_FILES}; echo; {_CONTAINERS}").stdout
        kubelet, files, containers = told.split("\n\n", 2)
        assert kubelet, f"no kubelet runs on {node}"
        return SeenNode(_files(files), _containers(containers), kubelet)

    def files(self, node: str) -> dict[str, str]:
        """Return the digest, the mode and the owner of every file that a change may touch, by path."""
        return _files(self.lab.exec(node, "sh", "-c", _FILES).stdout)

    def stored(self, name: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.lab.kubectl("-n", "kube-system", "get", "cm", name, "-o", "json"))[
            "data"
        ]
        return found

    def status(self, node: str = "cp1") -> Any:
        return json.loads(self.run(node, "status", "-o", "json", "--kubeconfig", "/etc/kubernetes/admin.conf").stdout)

    def last_run(self, node: str) -> tuple[str, str]:
        """Return when the newest run of a change on a node began its first step, and when it ended."""
        newest = "$(ls -d /var/lib/garboard/runs/*-change/ | tail -n 1)journal.jsonl"
        told = self.lab.exec(node, "sh", "-c", f"head -n 2 {newest} | tail -n 1; tail -n 1 {newest}").stdout
        first, last = (json.loads(line) for line in told.splitlines())
        return str(first["at"]), str(last["at"])

    def unready_pod(self) -> str | None:
        """Name a pod of the cluster that is not ready, or is not what runs: what a plan was made from would move.

        The API shows the pods of a node that was started again, or whose manifests have just changed, as they were
        before, and ready, until its kubelet has told it otherwise.
        """
        pods = json.loads(self.lab.kubectl("-n", "kube-system", "get", "pods", "-o", "json"))["items"]
        unready = next((each["metadata"]["name"] for each in pods if not is_ready(each)), None)
        if unready is not None:
            return str(unready)
        shown = {name: {_uid(each) for each in pods if each["spec"]["nodeName"] == name}
                 for name in {each["spec"]["nodeName"] for each in pods}}  # fmt: skip
        return next((f"a pod of {name}" for name, uids in sorted(shown.items()) if self._running(name) != uids), None)

    def _running(self, node: str) -> set[str]:
        """Return the identities of the cluster's pods that have a running container on a node."""
        listed = json.loads(self.lab.exec(node, "sh", "-c", _CONTAINERS, check=False).stdout or "{}")
        labels = [each["labels"] for each in listed.get("containers", ())]
        return {
            each["io.kubernetes.pod.uid"] for each in labels if each["io.kubernetes.pod.namespace"] == "kube-system"
        }

    def await_pods(self, timeout_s: float = 180.0) -> None:
        """Wait until all pods of the cluster are ready, and the API shows just those that run."""
        assert wait_until(self.unready_pod, timeout_s=timeout_s, pauses=Pauses.every(1)) is None


def _files(listed: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for value, path in (line.split(maxsplit=1) for line in listed.splitlines()):
        found[path] = f"{found.get(path, '')} {value}".strip()
    return found


def _containers(listed: str) -> dict[str, str]:
    running = json.loads(listed)["containers"]
    return {f"{each['metadata']['name']} {each['podSandboxId']}": each["id"] for each in running}


def _uid(pod: Any) -> str:
    """Return by what a kubelet knows a pod: static ones have another identity there than in the API."""
    metadata = pod["metadata"]
    return str(metadata.get("annotations", {}).get("kubernetes.io/config.hash", metadata["uid"]))


def is_ready(item: Any) -> bool:
    """Say whether a Pod or a Node is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in item["status"].get("conditions", ()))


@dataclass(frozen=True)
class SeenNodes:
    """What nodes have, to be compared with what they have later."""

    nodes: Changing
    seen: dict[str, SeenNode] = field(repr=False)

    @classmethod
    def now(cls, nodes: Changing, names: Sequence[str] = NODES) -> Self:
        return cls(nodes, {name: nodes.look(name) for name in names})

    def since(self) -> "Since":
        return Since(self.seen, {name: self.nodes.look(name) for name in self.seen})


@dataclass(frozen=True)
class Since:
    """What is not as it was, by node."""

    before: dict[str, SeenNode] = field(repr=False)
    after: dict[str, SeenNode] = field(repr=False)

    def _each(self, differ: Callable[[SeenNode, SeenNode], set[str]]) -> dict[str, set[str]]:
        return {name: differ(self.before[name], self.after[name]) for name in self.before}

    @property
    def changed(self) -> dict[str, set[str]]:
        """The files that have come, gone or changed: their content, their mode or their owner."""
        return self._each(lambda before, after: {path for path, _ in before.files.items() ^ after.files.items()})

    @property
    def modes(self) -> dict[str, set[str]]:
        """The modes and owners that there are now and were not before, with their files."""
        return self._each(lambda before, after: _modes(after) - _modes(before))

    @property
    def started(self) -> dict[str, set[str]]:
        """The names of the containers that have started, or have gone."""
        return self._each(
            lambda before, after: {key.split()[0] for key, _ in before.containers.items() ^ after.containers.items()}
        )

    @property
    def restarted(self) -> dict[str, set[str]]:
        """The components of the cluster that have started again."""
        return {name: found & {*COMPONENTS, "kube-proxy"} for name, found in self.started.items()}

    @property
    def kubelets(self) -> set[str]:
        """The nodes whose kubelets have started again."""
        return {name for name in self.before if self.before[name].kubelet != self.after[name].kubelet}

    @property
    def is_nothing(self) -> bool:
        return not any([*self.changed.values(), *self.started.values(), self.kubelets])


def _modes(node: SeenNode) -> set[str]:
    return {f"{path} {value.split()[-1]}" for path, value in node.files.items()}
