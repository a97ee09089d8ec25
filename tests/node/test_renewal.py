"""`certs renew` plans under the node lock, from what is on disk then."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from garboard.cli.main import run
from garboard.errors import StalePlan
from garboard.host import HostFolder
from garboard.host.locks import NodeLocked
from garboard.host.node_machine import NodeMachine
from garboard.host.runs import RunFolders
from garboard.manifests.kubelet import INSTANCE_CONFIG_FILE
from garboard.node import renewal
from garboard.node.renewal import Renewal, observe_node, renew_certificates
from garboard.node.workflow import LocalNode
from garboard.pki.expiration import ObservedNode
from tests.support.node.reporters import MemoryReporter

FolderAt: TypeAlias = Callable[[str], HostFolder]
CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10}}
nodeRegistration: {{name: node-1, criSocket: unix:///run/none.sock}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
certificatesDir: {folder}/pki
"""


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("garboard.node.workflow.can_journal", lambda: True)
    (tmp_path / "kubeadm.yaml").write_text(CONFIG.format(folder=tmp_path))
    assert run(["init", "phase", "certs", "all", "--config", str(tmp_path / "kubeadm.yaml")]) == 0
    return tmp_path / "pki"


def renew(certificates: Path, *, is_shown: bool = False) -> None:
    wanted = Renewal(
        name="front-proxy-client",
        configuration=None,
        cert_dir=str(certificates),
        kubeconfig_dir=str(certificates),
        is_shown=is_shown,
    )
    renew_certificates(wanted, LocalNode(NodeMachine(None), MemoryReporter()))


def meanwhile(monkeypatch: pytest.MonkeyPatch, event: Callable[[], object]) -> None:
    """Let something happen right after the certificates have been read."""

    def observe(cert_dir: str, kubeconfig_dir: str, folder_at: FolderAt) -> ObservedNode:
        found = observe_node(cert_dir, kubeconfig_dir, folder_at)
        event()
        return found

    monkeypatch.setattr(renewal, "observe_node", observe)


def test_renewal_is_planned_under_the_lock_and_shown_without_it(
    certificates: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    def try_lock() -> None:
        try:
            with RunFolders(state_dir).lock("somebody else"):
                held.append(False)
        except NodeLocked:
            held.append(True)

    meanwhile(monkeypatch, try_lock)
    renew(certificates)
    renew(certificates, is_shown=True)
    assert held == [True, False]


def test_plan_names_the_node_and_what_it_was_made_from(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("garboard.host.facts.MachineFacts.hostname", lambda _: "cp-7")
    words = ["certs", "renew", "front-proxy-client", "--dry-run", "--kubeconfig-dir", str(certificates)]
    assert run([*words, "--cert-dir", str(certificates)]) == 0
    without_file = capsys.readouterr().out
    assert run([*words, "--config", str(certificates.parent / "kubeadm.yaml")]) == 0
    with_file = capsys.readouterr().out
    assert "plan: 1 step on cp-7\n" in without_file
    assert "plan: 1 step on node-1\n" in with_file
    observed = re.compile(r"^observed: \d+ files and objects, sha256:[0-9a-f]{16}$", re.MULTILINE)
    assert observed.findall(without_file) == observed.findall(with_file) != []
    (certificates / "front-proxy-client.crt").write_bytes((certificates / "apiserver.crt").read_bytes())
    assert run([*words, "--cert-dir", str(certificates)]) == 0
    assert observed.findall(capsys.readouterr().out) != observed.findall(without_file)


def test_certificate_that_another_program_renews_meanwhile_is_not_replaced(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = certificates / "front-proxy-client.key"
    meanwhile(monkeypatch, lambda: key.write_text("theirs"))
    with pytest.raises(StalePlan, match=r"front-proxy-client\.key has changed since"):
        renew(certificates)
    assert key.read_text() == "theirs"


CONTROL_PLANE = ("certs all", "kubeconfig all", "control-plane all", "etcd local")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root below which a control-plane node has all of its files."""
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "kubeadm.yaml").write_text(CONFIG.format(folder="/etc/kubernetes"))
    for phase in CONTROL_PLANE:
        words = ["init", "phase", *phase.split(), "--config", "/kubeadm.yaml", "--rootfs", str(root)]
        assert run(words) == 0
    (root / "var/lib/kubelet").mkdir(parents=True, exist_ok=True)
    (root / INSTANCE_CONFIG_FILE.lstrip("/")).write_text("containerRuntimeEndpoint: unix:///run/none.sock\n")
    return root


def planned(root: Path, capsys: pytest.CaptureFixture[str], name: str = "all") -> str:
    capsys.readouterr()
    assert run(["certs", "renew", name, "--restart", "--dry-run", "--rootfs", str(root)]) == 0
    return capsys.readouterr().out


def test_restart_is_planned_behind_the_files_with_the_cause_of_each_and_without_the_api_server(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = planned(root, capsys)
    assert " on node-1\n" in text, "the kubelet's certificate names it"
    removed = re.findall(r"remove /etc/kubernetes/manifests/([a-z-]+)\.yaml", text)
    assert removed == ["kube-controller-manager", "kube-scheduler"]
    for name in ("controller-manager", "scheduler"):
        assert f"kube-{name} reads /etc/kubernetes/{name}.conf only when it starts" in text
    assert "kube-apiserver reads /etc/kubernetes/pki/apiserver.crt again by itself" in text
    assert text.index("certificate in scheduler.conf") < text.index("acquire") < text.index("remove /etc/kubernetes")


def test_certificate_that_is_read_again_is_renewed_without_lease_or_restart(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = planned(root, capsys, "apiserver")
    assert "plan: 1 step on node-1\n" in text
    assert "again by itself" in text


def test_restart_needs_what_the_lease_is_acquired_with(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "etc/kubernetes/admin.conf").unlink()
    assert run(["certs", "renew", "scheduler.conf", "--restart", "--dry-run", "--rootfs", str(root)]) == 4
    assert "there is no /etc/kubernetes/admin.conf" in capsys.readouterr().err


def test_restart_needs_to_know_the_container_runtime(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / INSTANCE_CONFIG_FILE.lstrip("/")).unlink()
    assert run(["certs", "renew", "scheduler.conf", "--restart", "--dry-run", "--rootfs", str(root)]) == 4
    told = capsys.readouterr().err
    assert "error[not-ready]: no container runtime listens on this node" in told
    assert "hint: start it (systemctl start containerd)" in told


def test_only_root_restarts(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.node.renewal.can_journal", lambda: False)
    assert run(["certs", "renew", "all", "--restart", "--cert-dir", str(certificates)]) == 2
