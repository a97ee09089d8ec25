"""A control plane without a kubelet: a real etcd and kube-apiserver, started as our own manifests say."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from garboard.documents import read_yaml
from garboard.lab.binaries import Binaries
from tests.support.parity.node_run import CONFIG_PATH, PATCHES_PATH, Configuration
from tools.harness.machine import Machine

# Objects are nested documents of which tests reach single fields.
Object: TypeAlias = dict[str, Any]
ADMIN, SUPER_ADMIN = "/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf"
ADMIN_BINDING = "ClusterRoleBinding /kubeadm:cluster-admins"
KINDS = (
    "configmaps,secrets,serviceaccounts,services,roles,rolebindings,clusterroles,clusterrolebindings,"
    "deployments,daemonsets"
)
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
encryptionAlgorithm: ECDSA-P256
networking: {{serviceSubnet: "10.96.0.0/12,fd00:10:96::/112"}}
"""
MADE_BEFORE = ("certs all", "kubeconfig all", "etcd local", "control-plane apiserver")
PUTTING = ("upload-config all", "bootstrap-token", "addon all")
READY_WITHIN_S = 240


@dataclass(frozen=True)
class Programs:
    """The real programs of one release."""

    version: str
    kubeadm: Path
    kubectl: Path
    etcd: Path
    api_server: Path

    @classmethod
    def of(cls, version: str, binaries: Binaries) -> "Programs":
        kubeadm, kubectl, api_server = (
            binaries.locate(name, version) for name in ("kubeadm", "kubectl", "kube-apiserver")
        )
        return cls(version, kubeadm, kubectl, binaries.locate_for("etcd", version), api_server)


@dataclass(frozen=True)
class LiveCluster:
    """An API server that answers on its machine, and what it held before anybody put anything there."""

    machine: Machine
    programs: Programs
    first: frozenset[str]

    def kubectl(self, *arguments: str) -> str:
        done = self.machine.run(self.programs.kubectl, "--kubeconfig", SUPER_ADMIN, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self) -> dict[str, Object]:
        """Return every object that has been put, by kind, namespace and name."""
        shown = ("--all-namespaces", "--show-managed-fields", "-o", "json")
        items = json.loads(self.kubectl("get", KINDS, *shown))["items"]
        return {key: each for each in items if (key := name_of(each)) not in self.first}

    def empty(self) -> None:
        """Delete everything that has been put, but for the rights of admin.conf, which take effect late."""
        found = [each for name, each in self.objects().items() if name != ADMIN_BINDING]
        if found:
            self.machine.put("/all.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
            self.kubectl("delete", "--wait=false", "-f", "/all.json")
        assert set(self.objects()) <= {ADMIN_BINDING}

    def configure(self, configuration: Configuration) -> None:
        self.machine.put(CONFIG_PATH, configuration.text(self.programs.version))
        shutil.rmtree(self.machine.root / PATCHES_PATH.lstrip("/"), ignore_errors=True)
        if configuration.patches:
            self.machine.put_tree(PATCHES_PATH, configuration.patches)

    def put_by_kubeadm(self, phases: Iterable[str] = PUTTING) -> None:
        for phase in phases:
            succeeded(self.machine.run(self.programs.kubeadm, *_line(phase)))

    def put_by_garboard(self, phases: Iterable[str] = PUTTING) -> None:
        for phase in phases:
            succeeded(self.machine.run_garboard(*_line(phase)))


def _line(phase: str) -> tuple[str, ...]:
    # The first of them finds admin.conf by itself, and its user without rights; the others are led by a flag.
    given = () if phase == PUTTING[0] else ("--kubeconfig", ADMIN)
    return ("init", "phase", *phase.split(), "--config", CONFIG_PATH, *given)


def name_of(item: Object) -> str:
    metadata = item["metadata"]
    return f"{item['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr


def make_node_files(machine: Machine, version: str) -> None:
    """Write certificates, kubeconfigs and manifests with garboard."""
    machine.put(CONFIG_PATH, CONFIG.format(version=version))
    for phase in MADE_BEFORE:
        succeeded(machine.run_garboard("init", "phase", *phase.split(), "--config", CONFIG_PATH))


@contextmanager
def control_plane(machine: Machine, programs: Programs) -> Iterator[LiveCluster]:
    """Run etcd and the API server of a machine whose files are made; both end with the block."""
    with ExitStack() as ends:
        etcd = _started(machine, "etcd", programs.etcd, ends)
        network = machine.in_network_of(etcd)
        _started(network, "kube-apiserver", programs.api_server, ends)
        cluster = LiveCluster(network, programs, frozenset())
        yield cluster


def when_ready(cluster: LiveCluster) -> LiveCluster:
    """Wait for the API server, and note what it has made itself."""
    give_up_at = time.monotonic() + READY_WITHIN_S
    ready = ("--kubeconfig", SUPER_ADMIN, "get", "--raw", "/readyz")
    while cluster.machine.run(cluster.programs.kubectl, *ready).returncode:
        log = (cluster.machine.root / "kube-apiserver.log").read_text()
        assert time.monotonic() < give_up_at, log[-4000:]
        time.sleep(0.5)
    return LiveCluster(cluster.machine, cluster.programs, frozenset(cluster.objects()))


def _started(machine: Machine, name: str, program: Path, ends: ExitStack) -> subprocess.Popen[bytes]:
    pod: Any = read_yaml(machine.text(f"/etc/kubernetes/manifests/{name}.yaml"), source=name)
    command = pod["spec"]["containers"][0]["command"]
    process = machine.start(program, *command[1:], log=machine.root / f"{name}.log")
    ends.callback(_stop, process)
    # It is the program itself only after its namespaces are set up, and others shall enter those.
    give_up_at = time.monotonic() + 10
    while Path(f"/proc/{process.pid}/comm").read_text().strip() != name[:15]:
        assert process.poll() is None, (machine.root / f"{name}.log").read_text()
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(10)
