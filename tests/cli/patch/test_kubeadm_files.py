"""What kubeadm itself wrote with patches is recognised as rendered and patched."""

import os
import subprocess
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.lab.binaries import Binaries
from garboard.manifests.node import EXTRA_CA_DIRECTORIES
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion

pytestmark = pytest.mark.real

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 192.0.2.10
nodeRegistration:
  name: cp1
  criSocket: unix:///run/containerd/containerd.sock
patches:
  directory: PATCHES
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
"""
PATCHES = {
    "kube-apiserver.yaml": "spec: {containers: [{name: kube-apiserver, resources: {requests: {cpu: 0.5}}}]}\n",
    "kube-scheduler+json.yaml": "- {op: add, path: /metadata/labels/team, value: a}\n",
    "etcd+merge.yaml": "metadata: {annotations: {owner: b}}\n",
    "kubeletconfiguration.yaml": "maxPods: 60\n",
}
MANIFESTS, KUBELET = "etc/kubernetes/manifests", "var/lib/kubelet"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A folder that looks like this machine to garboard: with the certificate folders that kubeadm mounts."""
    for name in (MANIFESTS, KUBELET, "patches", "tmp"):
        (tmp_path / name).mkdir(parents=True)
    for name in EXTRA_CA_DIRECTORIES:
        if Path(name).is_dir():
            (tmp_path / name.lstrip("/")).mkdir(parents=True)
    for name, text in PATCHES.items():
        (tmp_path / "patches" / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_files_that_kubeadm_wrote_are_as_rendered_and_patched(
    version: KubernetesVersion, node: Path, binaries: Binaries, capsys: pytest.CaptureFixture[str]
) -> None:
    config = CONFIG.replace("VERSION", str(version)).replace("PATCHES", str(node / "patches"))
    (node / "kubeadm.yaml").write_text(config)
    kubeadm = binaries.locate("kubeadm", str(version))
    for phase in ("control-plane all", "etcd local", "kubelet-start"):
        written = node / "written" / phase.split(" ")[0]
        written.mkdir(parents=True)
        words = ["init", "phase", *phase.split(), "--config", str(node / "kubeadm.yaml"), "--dry-run"]
        environment = {"KUBEADM_INIT_DRYRUN_DIR": str(written), "PATH": os.environ["PATH"]}
        subprocess.run([kubeadm, *words], check=True, capture_output=True, timeout=120, env=environment)
        for path in written.rglob("*.yaml"):
            folder = KUBELET if path.name == "config.yaml" else MANIFESTS
            (node / folder / path.name).write_bytes(path.read_bytes())
    words = ["patch", "diff", "--config", "/kubeadm.yaml", "--patches", "/patches", "--live", "--exit-code"]
    status = run([*words, "--rootfs", str(node)])
    out, err = capsys.readouterr()
    assert err.count("is as rendered and patched\n") == 5, err + out
    assert status == 0
