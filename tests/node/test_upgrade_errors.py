"""`upgrade apply` where the cluster cannot be asked, refuses, or stores what nobody can use: nothing is changed."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.cli.main import run
from garboard.manifests.kubelet import INSTANCE_CONFIG_FILE
from garboard.model.paths import ADMIN_CONF, SUPER_ADMIN_CONF, manifest_path
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.api_server import FakeApi

CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: node-1, criSocket: unix:///run/none.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.4
encryptionAlgorithm: ECDSA-P256
"""
HEAD = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
STORED = f"{HEAD}kubernetesVersion: v1.36.4\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
KUBEADM_CONFIG, KUBELET_CONFIG = f"{MAPS}/kubeadm-config", f"{MAPS}/kubelet-config"


@pytest.fixture
def root(tmp_path: Path, api: FakeApi, kubeconfig: Kubeconfig) -> Path:
    """A root below which a control-plane node has its files; its API server is the one of the test."""
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "kubeadm.yaml").write_text(CONFIG)
    for phase in ("certs all", "kubeconfig all", "control-plane all", "etcd local"):
        assert run(["init", "phase", *phase.split(), "--config", "/kubeadm.yaml", "--rootfs", str(root)]) == 0
    (root / "var/lib/kubelet").mkdir(parents=True, exist_ok=True)
    at(root, INSTANCE_CONFIG_FILE).write_text("containerRuntimeEndpoint: unix:///run/none.sock\n")
    for path in (ADMIN_CONF, SUPER_ADMIN_CONF):
        at(root, path).write_bytes(kubeconfig.to_bytes())
    lead_to(root, api.port)
    return root


def at(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def lead_to(root: Path, port: int) -> None:
    """Let the manifest of the API server say that it listens at a port of this machine."""
    manifest = at(root, manifest_path("kube-apiserver"))
    text = manifest.read_text().replace("--advertise-address=192.0.2.10", "--advertise-address=127.0.0.1")
    manifest.write_text(text.replace("--secure-port=6443", f"--secure-port={port}"))


def state_of(root: Path) -> dict[Path, bytes]:
    """Return all files but those of the runs."""
    return {each: each.read_bytes() for name in ("etc", "var") for each in (root / name).rglob("*") if each.is_file()}


def refused(root: Path, capsys: pytest.CaptureFixture[str], code: int) -> tuple[str, str]:
    """Return the error and the hint of an upgrade that ends with that code, and has changed nothing."""
    before = state_of(root)
    capsys.readouterr()
    assert run(["upgrade", "apply", "v1.37.1", "--yes", "--rootfs", str(root)]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    assert state_of(root) == before
    error, separator, hint = told.err.partition("\nhint: ")
    assert separator, "no hint"
    return error, hint


def test_api_server_that_does_not_listen_is_a_cluster_out_of_reach(
    root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened to
        port = nobody.getsockname()[1]
        manifest = at(root, manifest_path("kube-apiserver"))
        manifest.write_text(manifest.read_text().replace(f"--secure-port={api.port}", f"--secure-port={port}"))
        error, hint = refused(root, capsys, 5)
    assert error == f"error[unreachable]: the API server at https://127.0.0.1:{port} refused the connection"
    assert "start the control plane" in hint
    assert api.asked == []


def test_api_server_of_another_cluster_is_not_trusted(
    root: Path, kubeconfig: Kubeconfig, capsys: pytest.CaptureFixture[str]
) -> None:
    other = at(root, "/etc/kubernetes/pki/ca.crt").read_bytes()
    for path in (ADMIN_CONF, SUPER_ADMIN_CONF):
        at(root, path).write_bytes(replace(kubeconfig, ca=other).to_bytes())
    error, hint = refused(root, capsys, 5)
    assert error.startswith("error[untrusted]: ")
    assert "the kubeconfig is of another cluster" in hint


@pytest.mark.parametrize(
    ("status", "reason", "error_class"),
    [(403, "Forbidden", "forbidden"), (401, "Unauthorized", "unauthenticated")],
)
def test_user_who_may_not_read_the_configuration_is_told_which_one_may(
    status: int, reason: str, error_class: str, root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[KUBEADM_CONFIG] = {"data": {"ClusterConfiguration": STORED}}
    api.refuse("GET", KUBEADM_CONFIG, status, reason, "user nobody may not")
    error, hint = refused(root, capsys, 1)
    assert error == f"error[{error_class}]: cannot get ConfigMap kubeadm-config: user nobody may not"
    assert "super-admin.conf, with --kubeconfig" in hint


@pytest.mark.parametrize("data", [None, {}, {"Other": STORED}], ids=["no ConfigMap", "no data", "another key"])
def test_configuration_that_is_not_stored_is_told_with_the_command_that_stores_it(
    data: dict[str, str] | None, root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        api.objects[KUBEADM_CONFIG] = {"data": data}
    error, hint = refused(root, capsys, 3)
    told = "the cluster has no ConfigMap kube-system/kubeadm-config with the key ClusterConfiguration"
    assert error == f"error[bad-document]: {told}"
    assert "garboard init phase upload-config kubeadm --config FILE" in hint


def test_configuration_of_kubelets_that_is_not_stored_is_told_with_the_command_that_stores_it(
    root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[KUBEADM_CONFIG] = {"data": {"ClusterConfiguration": STORED}}
    error, hint = refused(root, capsys, 3)
    assert "no ConfigMap kube-system/kubelet-config with the key kubelet" in error
    assert "garboard init phase upload-config kubelet --config FILE" in hint


@pytest.mark.parametrize(
    ("text", "error_class", "told"),
    [
        pytest.param("a: [", "bad-document", "ConfigMap kubeadm-config:2:1: did not find", id="no YAML"),
        pytest.param("", "bad-document", "holds no ClusterConfiguration", id="empty"),
        pytest.param("[]", "bad-document", "kind and apiVersion is mandatory", id="a list"),
        pytest.param("apiVersion: v1\nkind: Pod\n", "bad-document", "Kind=Pod", id="another kind"),
        pytest.param(f"{STORED}networking: 3\n", "bad-document", "cannot unmarshal number", id="another type"),
        pytest.param(STORED.replace("beta4", "beta1"), "bad-document", "an old API spec", id="an old API version"),
        pytest.param(STORED.replace("v1.36.4", "none"), "invalid-value", 'version "none"', id="no version"),
        pytest.param(HEAD, "bad-document", "does not say which kubernetesVersion", id="without a version"),
    ],
)
def test_configuration_that_cannot_be_read_is_told_with_the_command_that_corrects_it(
    text: str, error_class: str, told: str, root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[KUBEADM_CONFIG] = {"data": {"ClusterConfiguration": text}}
    error, hint = refused(root, capsys, 3)
    assert error.startswith(f"error[{error_class}]: ")
    assert told in error
    assert "correct it: kubectl -n kube-system edit configmap kubeadm-config" in hint


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [", id="no YAML"),
        pytest.param("", id="empty"),
        pytest.param("[]", id="a list"),
        pytest.param(f"{KUBELET}maxPods: x\n", id="another type"),
    ],
)
def test_configuration_of_kubelets_that_cannot_be_read_is_told_with_the_command_that_corrects_it(
    text: str, root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[KUBEADM_CONFIG] = {"data": {"ClusterConfiguration": STORED}}
    api.objects[KUBELET_CONFIG] = {"data": {"kubelet": text}}
    error, hint = refused(root, capsys, 3)
    assert "ConfigMap kubelet-config" in error
    assert "correct it: kubectl -n kube-system edit configmap kubelet-config" in hint


def test_minor_that_is_not_known_is_refused_with_the_list(
    root: Path, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[KUBEADM_CONFIG] = {"data": {"ClusterConfiguration": STORED.replace("v1.36.4", "v1.35.2")}}
    error, hint = refused(root, capsys, 3)
    assert error.startswith("error[unsupported-version]: this cluster cannot be upgraded: ")
    assert "garboard upgrades clusters of 1.36 and 1.37" in hint
