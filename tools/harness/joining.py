"""A cluster that kubeadm or garboard began, with bare nodes beside it for either of them to join."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from garboard.cli.lab.wiring import labs
from garboard.lab.bootstrap import new_secrets
from garboard.lab.kubeadm import ClusterSecrets, init_documents, join_documents
from garboard.lab.topology import Node
from tools.harness.lab import LabUnderTest, put

CONFIG = "/etc/kubeadm.yaml"
# What is a node's own among its files: names, addresses, the date in a file name.
_OWN = re.compile(r"\b(?:cp|worker)[0-9]\b|\b10\.89\.0\.1[0-9]\b|2026-\d\d-\d\d-\d\d-\d\d-\d\d")
_FOLDERS = ("/etc/kubernetes", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env",
            "/var/lib/kubelet/instance-config.yaml", "/var/lib/kubelet/pki", "/var/lib/etcd")  # fmt: skip
_LIST = "find {} -maxdepth 3 ! -path '*/member*' -printf '%M %U:%G %y %p\\n' 2>/dev/null | sort -k4"
_SAMPLER = """rm -f /tmp/stop
setsid sh -c 'until test -e /tmp/stop; do
  ss -Htnp state established state syn-sent | grep kubelet
  sleep 0.05
done >/tmp/sockets' </dev/null >/dev/null 2>&1 &
"""


@dataclass(frozen=True)
class Joining:
    """The lab, what its cluster was begun with, and garboard as a command of its nodes."""

    lab: LabUnderTest
    secrets: ClusterSecrets
    garboard: tuple[str, ...]
    pin: str

    def prepare(self, node: str, more: str = "") -> None:
        """Write the configuration that both programs join with."""
        record = labs().records.require(self.lab.name)
        text = join_documents(record.lab, _node(self.lab.name, node), self.secrets, {})
        put(self.lab, node, CONFIG, self._with_token(text) + more)

    def _with_token(self, text: str) -> str:
        """Return the configuration with discovery by token: the lab's own is by file."""
        found = re.sub(r"discovery:\n(?:  .*\n)+", f"discovery: {self.discovery()}\n", text)
        assert "bootstrapToken" in found
        return found

    def discovery(self, *, token: str = "", pin: str = "", endpoint: str = "control-plane.lab:6443") -> str:
        hashes = f"[{pin or self.pin}]"
        return (
            f"{{bootstrapToken: {{token: {token or self.secrets.token}, apiServerEndpoint: '{endpoint}', "
            f"caCertHashes: {hashes}}}}}"
        )

    def files(self, node: str) -> str:
        """Return every file that a join makes, by mode, owner and name, without what is a node's own."""
        listed = self.lab.exec(node, "sh", "-c", _LIST.format(" ".join(_FOLDERS))).stdout
        return _OWN.sub("OWN", listed)

    def text(self, node: str, *paths: str) -> str:
        return _OWN.sub("OWN", self.lab.exec(node, "sh", "-c", f"tail -n +1 {' '.join(paths)}").stdout)

    def sample_sockets(self, node: str) -> None:
        self.lab.exec(node, "sh", "-c", _SAMPLER)

    def api_servers_of_kubelet(self, node: str) -> set[str]:
        """Return the API servers that the kubelet had connections to since sampling began."""
        found = self.lab.exec(node, "sh", "-c", "touch /tmp/stop; cat /tmp/sockets").stdout
        return set(re.findall(r"(\d+(?:\.\d+){3}):6443\s+users:", found))

    def members(self) -> dict[str, bool]:
        """Return the members of etcd by name, and whether each is a learner."""
        folder = "/etc/kubernetes/pki/etcd"
        access = ("--cacert", f"{folder}/ca.crt", "--cert", f"{folder}/server.crt", "--key", f"{folder}/server.key")
        listed = self.lab.exec("cp1", "etcdctl", *access, "member", "list").stdout
        rows = [line.split(", ") for line in listed.splitlines()]
        return {row[2]: row[5] == "true" for row in rows}


@contextmanager
def begun_cluster(
    name: str,
    version: str,
    garboard: tuple[str, ...],
    *,
    control_planes: int = 3,
    workers: int = 2,
    init: tuple[str, ...] = ("kubeadm",),
    before: Callable[[LabUnderTest], object] = lambda _: None,
) -> Iterator[Joining]:
    """Make a lab whose first node `init`, kubeadm unless said otherwise, has initialised; the others are bare.

    `before` is called when all is ready for that.
    """
    lab = LabUnderTest(name)
    counts = ("--control-planes", str(control_planes), "--workers", str(workers))
    lab.lab("up", "--by", "none", "--kubernetes-version", version, *counts)
    try:
        secrets = new_secrets()
        home = labs()
        record = home.records.require(name)
        _, needs = home.records.read_given(home.files(name))
        put(lab, "cp1", CONFIG, init_documents(record.lab, record.lab.nodes[0], secrets, needs, {}))
        before(lab)
        lab.exec("cp1", *init, "init", "--config", CONFIG, "--upload-certs", "--skip-token-print")
        home.bootstrap(record, needs, {}).write_kubeconfig(record.lab.nodes[0], record.port)
        yield Joining(lab, secrets, garboard, _pin(lab))
    finally:
        lab.lab("down", check=False)


def _node(lab: str, name: str) -> Node:
    return labs().records.require(lab).lab.node(name)


def _pin(lab: LabUnderTest) -> str:
    printed = lab.exec("cp1", "kubeadm", "token", "create", "--print-join-command", "--ttl", "10m").stdout
    found = re.search(r"sha256:[0-9a-f]{64}", printed)
    assert found
    return found[0]
