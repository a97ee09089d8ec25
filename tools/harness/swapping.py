"""Static pods of a lab's node replaced by garboard's own code: every manifest gets a note, as a label or a flag."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.harness.killing import KillPoint
from tools.harness.lab import LabUnderTest

SOCKET = "unix:///run/containerd/containerd.sock"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_MANIFESTS = "/etc/kubernetes/manifests"
# Run by the Python of the node, with what it needs in the words behind.
_SWAP = """
import json, sys
from pathlib import Path
from garboard.cli.console import ConsoleReporter
from garboard.errors import GarboardError
from garboard.node.static_pods import Swap, swap_static_pods
from garboard.node.transaction import RunOptions
from garboard.node.workflow import this_node
from garboard.phases.static_pods import SwapSettings
given = json.loads(sys.argv[1])
manifests = {}
for name in given["components"]:
    lines = Path(f"/etc/kubernetes/manifests/{name}.yaml").read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("    note: "))
    for old, new in given["edits"]:
        assert old.replace("NAME", name) in text, old
        text = text.replace(old.replace("NAME", name), new.replace("NAME", name), 1)
    manifests[name] = text.encode()
swap = Swap(
    manifests=manifests, cause="a test", node_name=given["node"], cri_socket=given["socket"],
    settings=SwapSettings(settled_within_s=given["within"], member_url=given["member"]),
)
options = RunOptions(command="swap", undoes_on_failure=given["undo"], timings="json")
try:
    swap_static_pods(swap, this_node(ConsoleReporter()), options)
except GarboardError as error:
    sys.exit(f"{error.message}; {error.hint}")
"""


@dataclass(frozen=True)
class Swapping:
    """A control-plane node of a lab whose static pods are replaced; `garboard` is the command that runs it there."""

    lab: LabUnderTest
    garboard: tuple[str, ...]
    node: str = "cp1"

    def swap(
        self,
        note: str,
        components: Iterable[str] = COMPONENTS,
        *,
        killed_at: KillPoint | None = None,
        flag: str = "",
        edits: Sequence[tuple[str, str]] = (),
        undoes: bool = False,
        within_s: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Give each manifest the label `note`, or a flag, or edits: texts in it, and what replaces them."""
        change = ("- NAME\n", f"- NAME\n    - {flag}\n") if flag else ("labels:\n", f"labels:\n    note: {note}\n")
        given = {
            "components": [*components], "edits": [*edits] or [change], "node": self.node, "socket": SOCKET,
            "within": within_s, "undo": undoes, "member": f"https://{self._address()}:2380",
        }  # fmt: skip
        command = (*self.garboard[:-1], _SWAP)
        command = killed_at.of(command) if killed_at else command
        return self.lab.exec(self.node, *command, json.dumps(given), check=False)

    def rename(self, note: str, components: Iterable[str] = COMPONENTS) -> subprocess.CompletedProcess[str]:
        """Give each manifest the label as an editor would: a new file is renamed over the old one."""
        edit = f"sed '/^    note: /d; s/^  labels:$/  labels:\\n    note: {note}/' $name.yaml >/etc/kubernetes/new.yaml"
        loop = (
            f"for name in {' '.join(components)}; do {edit} && mv /etc/kubernetes/new.yaml $name.yaml || exit 1; done"
        )
        return self.lab.exec(self.node, "sh", "-c", f"cd {_MANIFESTS} && {loop}", check=False)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.lab.exec(self.node, *self.garboard, *words, check=False)

    def notes(self) -> dict[str, str]:
        """Return the note of every static pod that runs, by component."""
        listed = self.lab.exec(self.node, "crictl", "-r", SOCKET, "pods", "--state", "ready", "-o", "json").stdout
        pods = ((each["metadata"]["name"], each["labels"]) for each in json.loads(listed)["items"])
        suffix = f"-{self.node}"
        found = {name.removesuffix(suffix): labels.get("note", "") for name, labels in pods if name.endswith(suffix)}
        return {name: found[name] for name in COMPONENTS if name in found}

    def manifests(self) -> str:
        return self.lab.exec(self.node, "sh", "-c", f"cd {_MANIFESTS} && sha256sum *").stdout

    def containers(self) -> dict[str, str]:
        """Return the running containers of static pods by component."""
        listed = self.lab.exec(self.node, "crictl", "-r", SOCKET, "ps", "-o", "json").stdout
        found = {each["metadata"]["name"]: each["id"] for each in json.loads(listed)["containers"]}
        return {name: found[name] for name in COMPONENTS if name in found}

    def is_ready(self) -> bool:
        """Say whether this node's own API server is ready."""
        script = (
            f"kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://{self._address()}:6443 get --raw /readyz"
        )
        return self.lab.exec(self.node, "sh", "-c", script, check=False).stdout == "ok"

    def _address(self) -> str:
        nodes = {each["name"]: each for each in self.lab.status()["nodes"]}
        return str(nodes[self.node]["address"])
