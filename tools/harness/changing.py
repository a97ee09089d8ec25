"""A cluster of a lab that is changed by garboard, and what its nodes look like before and afterwards."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from tools.harness.killing import KillPoint
from tools.harness.lab import GARBOARD, LabUnderTest
from tools.harness.swapping import COMPONENTS

_FILES = (
    "find /etc/kubernetes /var/lib/kubelet/*.yaml /var/lib/kubelet/*.env /var/lib/kubelet/pki -type f"
    " -exec sha256sum {} + ; find /etc/kubernetes /var/lib/kubelet/*.yaml /var/lib/kubelet/*.env -type f"
    " -exec stat -c '%a:%u:%g %n' {} +"
)
_CRICTL = "crictl -r unix:///run/containerd/containerd.sock"


@dataclass(frozen=True)
class Changing:
    """The nodes of a lab; `garboard` is the command that runs it there."""

    lab: LabUnderTest
    garboard: tuple[str, ...]

    @property
    def via(self) -> str:
        """What runs a command on a node, for somebody on the machine of the lab."""
        return f"{GARBOARD} lab exec --name {self.lab.name} {{node}} --"

    def run(self, node: str, *words: str, killed_at: KillPoint | None = None) -> subprocess.CompletedProcess[str]:
        command = killed_at.of(self.garboard) if killed_at else self.garboard
        return self.lab.exec(node, *command, "change", *words, check=False)

    def files(self, node: str) -> dict[str, str]:
        """Return the digest, the mode and the owner of every file that a change may touch, by path."""
        listed = self.lab.exec(node, "sh", "-c", _FILES).stdout
        found: dict[str, str] = {}
        for value, path in (line.split() for line in listed.splitlines()):
            found[path] = f"{found.get(path, '')} {value}".strip()
        return found

    def containers(self, node: str) -> dict[str, str]:
        """Return the ids of the containers that run on a node, by the name and the pod of each."""
        listed = json.loads(self.lab.exec(node, "sh", "-c", f"{_CRICTL} ps -o json").stdout)["containers"]
        return {f"{each['metadata']['name']} {each['podSandboxId']}": each["id"] for each in listed}

    def started(self, node: str, former: dict[str, str]) -> set[str]:
        """Return the names of the containers that have started since, or have gone."""
        now = self.containers(node)
        moved = {key for key in {*former, *now} if former.get(key) != now.get(key)}
        return {key.split()[0] for key in moved}

    def kubelet(self, node: str) -> str:
        """Return the process of the kubelet of a node."""
        script = 'for each in /proc/[0-9]*; do [ "$(cat $each/comm 2>/dev/null)" = kubelet ] && echo $each; done; true'
        found = self.lab.exec(node, "sh", "-c", script).stdout.strip()
        assert found, f"no kubelet runs on {node}"
        return found

    def stored(self, name: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.lab.kubectl("-n", "kube-system", "get", "cm", name, "-o", "json"))[
            "data"
        ]
        return found

    def status(self, node: str = "cp1") -> Any:
        return json.loads(self.run(node, "status", "-o", "json", "--kubeconfig", "/etc/kubernetes/admin.conf").stdout)

    def components(self) -> tuple[str, ...]:
        return COMPONENTS
