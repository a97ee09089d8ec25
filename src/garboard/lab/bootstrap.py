"""Making a cluster of running nodes, with the real kubeadm or with garboard: both take the same commands."""

import json
import secrets
import string
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from garboard.documents import Json, read_yaml, write_yaml
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.lab.kubeadm import (
    DISCOVERY,
    NODE_FOLDER,
    ClusterSecrets,
    Documents,
    Needs,
    init_documents,
    join_documents,
)
from garboard.lab.layout import LabFiles
from garboard.lab.machine import LabMachine
from garboard.lab.readiness import LISTED, missing_for_ready, not_yet_restarted
from garboard.lab.topology import API_PORT, ENDPOINT_NAME, Bootstrap, Lab, Node
from garboard.retry import Pauses, wait_until

READY_WITHIN_S = 240.0
POLL_EVERY_S = 0.5

Enter = Callable[[Node, list[str]], list[str]]


def new_secrets() -> ClusterSecrets:
    """Make the bootstrap token and the key that protects uploaded certificates."""
    letters = string.ascii_lowercase + string.digits
    identifier, secret = ("".join(secrets.choice(letters) for _ in range(count)) for count in (6, 16))
    return ClusterSecrets(f"{identifier}.{secret}", secrets.token_hex(32))


@dataclass(frozen=True, slots=True)
class ClusterBootstrap:
    """Runs kubeadm or garboard in the nodes; `enter` turns a command into one that runs inside a node."""

    machine: LabMachine
    files: LabFiles
    lab: Lab
    enter: Enter
    kubectl: Path
    needs: Needs
    yours: Documents
    report: Callable[[str], None]

    def run(self, port: int, timings: dict[str, float]) -> None:
        """Bring up the first control plane, join the others one after the other and the workers beside them."""
        shared = new_secrets()
        first, *others = self.lab.control_planes
        with measured(timings, f"{self.tool} init {first.name}"):
            self._run(first, "init", init_documents(self.lab, first, shared, self.needs, self.yours))
        self.write_kubeconfig(first, port)
        with ThreadPoolExecutor() as pool:
            workers = [pool.submit(self._timed_join, node, shared, timings) for node in self.lab.workers]
            for node in others:
                self._timed_join(node, shared, timings)
            for each in workers:
                each.result()
        with measured(timings, "wait until ready"):
            self.wait_until_ready()

    def _timed_join(self, node: Node, shared: ClusterSecrets, timings: dict[str, float]) -> None:
        with measured(timings, f"{self.tool} join {node.name}"):
            self.join(node, shared)

    def join(self, node: Node, shared: ClusterSecrets) -> None:
        """Join one node with the discovery file made from the administrator's kubeconfig."""
        self.place(node, DISCOVERY, self._discovery().encode())
        self._run(node, "join", join_documents(self.lab, node, shared, self.yours))

    def fresh_secrets(self) -> ClusterSecrets:
        """Put a new token and newly encrypted certificates into a running cluster, for a node that joins later."""
        shared = new_secrets()
        first = self._any_control_plane()
        self.machine.run(self.enter(first, [self.tool, "token", "create", shared.token, "--ttl", "1h"]))
        upload = [
            self.tool,
            "init",
            "phase",
            "upload-certs",
            "--upload-certs",
            "--certificate-key",
            shared.certificate_key,
        ]
        self.machine.run(self.enter(first, upload))
        return shared

    def _any_control_plane(self) -> Node:
        for node in self.lab.control_planes:
            if (self.files.node(node.name).upper / "etc/kubernetes/admin.conf").exists():
                return node
        raise GarboardError(f"lab {self.lab.name} has no control plane to join", error_class="no-cluster")

    def place(self, node: Node, path: str, data: bytes) -> None:
        """Write a file inside a running node."""
        script = 'mkdir -p "$(dirname "$1")" && umask 077 && cat >"$1"'
        self.machine.run(self.enter(node, ["sh", "-c", script, "place", path]), stdin=data)

    @property
    def tool(self) -> str:
        """The command that makes the cluster; kubeadm also for bare nodes, which may have become a cluster by hand."""
        return "garboard" if self.lab.bootstrap is Bootstrap.GARBOARD else "kubeadm"

    def _run(self, node: Node, action: str, documents: str) -> None:
        path = f"{NODE_FOLDER}/{action}.yaml"
        self.place(node, path, documents.encode())
        command = [self.tool, action, "--config", path]
        if action == "init":
            command += ["--upload-certs", "--skip-token-print", "--skip-certificate-key-print"]
        seen: set[str] = set()

        def progress(line: str) -> None:
            phase = line[1:].partition("]")[0].partition("/")[0] if line.startswith("[") else ""
            if phase and phase not in seen:
                seen.add(phase)
                self.report(f"{node.name}: {self.tool} {action}: {phase}")

        self.machine.stream(self.enter(node, command), progress, shown=f"{self.tool} {action} on {node.name}")

    def write_kubeconfig(self, first: Node, port: int) -> None:
        """Write the administrator's kubeconfig for use on the machine, through the loopback forward."""
        text = self._read_admin(first).replace(f"https://{ENDPOINT_NAME}:{API_PORT}", f"https://127.0.0.1:{port}")
        self.machine.write_file(self.files.kubeconfig, text.encode(), mode=0o600)

    def _read_admin(self, node: Node) -> str:
        return self.machine.read_file(self.files.node(node.name).upper / "etc/kubernetes/admin.conf").decode()

    def _discovery(self) -> str:
        """Write a kubeconfig that knows the cluster and its authority, and a user without credentials."""
        admin = read_yaml(self._read_admin(self._any_control_plane()), source="admin.conf")
        assert isinstance(admin, dict)
        users = admin["users"]
        assert isinstance(users, list)
        anonymous: list[Json] = [{"name": user["name"], "user": {}} for user in users if isinstance(user, dict)]
        return write_yaml({**admin, "users": anonymous})

    def wait_until_ready(self) -> None:
        """Wait for nodes Ready, CoreDNS and kube-proxy available; the error says what is still missing."""
        self.wait_for(self.missing_for_ready)

    def wait_for(self, missing_now: Callable[[], list[str]]) -> None:
        """Wait until nothing is missing any more; the error says what still is."""
        reported = None

        def probe() -> str | None:
            nonlocal reported
            missing = "; ".join(missing_now()) or None
            if missing and missing != reported:
                reported = missing
                self.report(f"waiting: {missing}")
            return missing

        missing = wait_until(probe, timeout_s=READY_WITHIN_S, pauses=Pauses.every(POLL_EVERY_S))
        if missing is None:
            return
        raise ClusterUnreachable(
            f"lab {self.lab.name} was not ready within {READY_WITHIN_S:.0f} s: {missing}",
            hint=f"look with `garboard lab status --name {self.lab.name}` and `garboard lab logs`",
        )

    def missing_for_ready(self, since: datetime | None = None) -> list[str]:
        """Say what is missing; with `since`, also what has not been started, or has not reported, since that moment."""
        kubectl: list[str | Path] = [self.kubectl, "--kubeconfig", self.files.kubeconfig, "--request-timeout=5s"]
        command = [*kubectl, "get", LISTED, "--all-namespaces", "-o", "json"]
        ended = self.machine.run(command, check=False)
        if ended.status != 0:
            return ["the API server does not answer"]
        listing = json.loads(ended.stdout)
        missing = missing_for_ready(listing, self.lab)
        return missing or (not_yet_restarted(listing, since) if since else [])


class measured:  # noqa: N801  # reads as a statement where it is used
    """Note under `name` how many seconds the block takes."""

    def __init__(self, timings: dict[str, float], name: str) -> None:
        self.timings, self.name = timings, name

    def __enter__(self) -> None:
        self.began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.timings[self.name] = round(time.monotonic() - self.began, 3)
