"""Real starts of components: the programs of a release in a network namespace of their own, with kubeadm's flags."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from garboard.documents import Json, write_yaml
from garboard.lab.binaries import Binaries
from garboard.model import KubernetesVersion
from tests.support.rules.component_pods import component_pod

ADDRESS = "192.0.2.10"  # that of the examples
_GARBOARD = "from garboard.cli.main import main; main()"
PATIENCE_S = 60
# What a component says once it is past its flags and options.
PAST = {
    "etcd": re.compile("ready to serve client requests"),
    "kube-apiserver": re.compile("Serving securely on"),
    "kube-controller-manager": re.compile("acquire leader lease|Starting controller", re.IGNORECASE),
    "kube-scheduler": re.compile("acquire leader lease|Starting Kubernetes Scheduler|Caches are synced", re.IGNORECASE),
    # It ends at the container runtime, which is not there.
    "kubelet": re.compile("validate service connection|none.sock"),
}


@dataclass(frozen=True)
class Start:
    """How a component started: whether it got past its flags, and the end of what it said."""

    is_past: bool
    log: str


@dataclass(frozen=True)
class ControlPlane:
    """The files of a control plane, and a network namespace in which its parts run."""

    version: KubernetesVersion
    binaries: Binaries
    folder: Path
    holder: "subprocess.Popen[bytes]"

    def words(self, component: str) -> list[str]:
        """Return kubeadm's flags of a component, with the files of this control plane."""
        pod: Any = component_pod(component)
        return [self.placed(word) for word in pod["spec"]["containers"][0]["command"][1:]]

    def placed(self, word: str) -> str:
        """Return a flag with files of this folder instead of those of a node."""
        return re.sub(r"(?<=[=,])/(etc/kubernetes|var/lib/etcd)", rf"{self.folder}/\1", word)

    def program(self, component: str) -> Path:
        locate = self.binaries.locate_for if component == "etcd" else self.binaries.locate
        return locate(component, str(self.version))

    @contextmanager
    def running(self, component: str, words: Sequence[str]) -> Iterator[Start]:
        """Start a component, and tell whether it gets past its flags; it is stopped afterwards."""
        log = self.folder / f"{component}.log"
        command: list[str | Path] = [
            "nsenter",
            f"--net=/proc/{self.holder.pid}/ns/net",
            self.program(component),
            *words,
        ]
        with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder) as process:
            try:
                yield _await(component, process, log)
            finally:
                process.kill()

    def start(self, component: str, words: Sequence[str]) -> Start:
        with self.running(component, words) as start:
            return start

    def start_kubelet(self, document: Any) -> Start:
        """Start a kubelet that asks no API server, on whatever machine this is."""
        alone: dict[str, Json] = {
            "failCgroupV1": False,
            "containerRuntimeEndpoint": f"unix://{self.folder}/none.sock",
            "authentication": {"webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
        }
        (self.folder / "kubelet.yaml").write_text(write_yaml({**document, **alone}))
        words = [f"--config={self.folder / 'kubelet.yaml'}", f"--root-dir={self.folder / 'kubelet'}"]
        return self.start("kubelet", [*words, f"--cert-dir={self.folder / 'kubelet/pki'}"])


def _await(component: str, process: "subprocess.Popen[bytes]", log: Path) -> Start:
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        has_ended = process.poll() is not None
        text = log.read_text(errors="replace")
        if PAST[component].search(text):
            return Start(True, text[-3000:])
        if has_ended or time.monotonic() > give_up_at:
            return Start(False, text[-3000:])
        time.sleep(0.1)


@contextmanager
def control_plane(binaries: Binaries, version: KubernetesVersion, folder: Path) -> Iterator[ControlPlane]:
    """Make the certificates and kubeconfigs of a node, and the namespace that has its address."""
    (folder / "kubeadm.yaml").write_text(_CONFIG.format(version=version, address=ADDRESS))
    for phase in ("certs", "kubeconfig"):
        words = ["init", "phase", phase, "all", "--config", "/kubeadm.yaml", "--rootfs", str(folder)]
        subprocess.run([sys.executable, "-c", _GARBOARD, *words], check=True, capture_output=True)
    commands = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo && echo ready && exec sleep infinity"
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", commands], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        yield ControlPlane(version, binaries, folder, holder)
    finally:
        holder.kill()
        with suppress(subprocess.TimeoutExpired):
            holder.wait(10)


@contextmanager
def serving(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Run etcd and the API server of a control plane, for the components that ask it."""
    with ExitStack() as ends:
        for component in ("etcd", "kube-apiserver"):
            start = ends.enter_context(plane.running(component, plane.words(component)))
            assert start.is_past, start.log
        yield plane


_CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {address}}}
nodeRegistration: {{name: cp1, criSocket: unix:///nowhere.sock}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
controlPlaneEndpoint: {address}:6443
"""
