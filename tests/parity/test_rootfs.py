"""`--rootfs`: everything below another root, as kubeadm's chroot leaves it there."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.parity.comparing import differences, owners_and_modes
from tests.support.parity.credentials import without_chance
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import FILE_FOLDERS, FILE_PHASES
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
patches: {directory: /patches}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
encryptionAlgorithm: ECDSA-P256
"""
LATER = ("certs check-expiration --config /kubeadm.yaml", "certs renew all --config /kubeadm.yaml",
         "kubeconfig user --client-name me --config /kubeadm.yaml", "config images list --config /kubeadm.yaml",
         "certs generate-csr --config /kubeadm.yaml --cert-dir /srv/csr --kubeconfig-dir /srv/csr")  # fmt: skip


def other_root(machine: Machine, version: str) -> Machine:
    """Return a root within the machine's: folders behind links, and one with authorities that only it has."""
    inner = Machine.make(machine.root / "other", directories=("/srv/kubernetes", "/usr/share/ca-certificates"))
    inner.put("/kubeadm.yaml", CONFIG.replace("VERSION", version))
    inner.put("/patches/kube-scheduler.yaml", "metadata: {annotations: {who: me}}\n")
    (inner.root / "etc/kubernetes").symlink_to("/srv/kubernetes")
    return inner


def test_everything_happens_below_the_root(kubeadm: Kubeadm, tmp_path: Path) -> None:
    roots, statuses = [], []
    for name in ("theirs", "ours"):
        machine = Machine.make(tmp_path / name)
        run = partial(machine.run, kubeadm.program) if name == "theirs" else machine.run_garboard
        roots.append(other_root(machine, kubeadm.version))
        lines = [*(f"init phase {phase} --config /kubeadm.yaml" for phase in FILE_PHASES), *LATER]
        done = [run("--rootfs", "/other", *line.split()) for line in lines[:-1]]
        done.append(run(*lines[-1].split(), "--rootfs=/other"))
        statuses.append([each.returncode for each in done])
        assert not machine.files("/etc/kubernetes", "/var/lib/kubelet")
    theirs, ours = roots
    assert statuses[0] == statuses[1] == [0] * (len(FILE_PHASES) + len(LATER))
    assert "/srv/kubernetes/pki/ca.crt" in ours.files("/srv")
    files = [without_chance({k: v for k, v in each.files(*FILE_FOLDERS).items() if "/csr/" not in k}) for each in roots]
    assert differences(files[1], files[0]) == ""
    assert owners_and_modes(ours) == owners_and_modes(theirs)


def test_a_root_that_is_not_there_is_refused(kubeadm: Kubeadm, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    line = ("init", "phase", "certs", "ca", "--rootfs=/nope")
    assert machine.run(kubeadm.program, *line).returncode != 0
    assert machine.run_garboard(*line).returncode == 2
