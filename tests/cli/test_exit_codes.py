"""Mistakes have one exit code wherever they are made: 2 for the command line, 1 for a file that is not there."""

from pathlib import Path

import pytest

from garboard.cli.main import run

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler}\nspec: {containers: [{name: a, image: b}]}\n"
CONFIG = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "patch.yaml").write_text("spec: {priority: 7}\n")
    (tmp_path / "kubeadm.yaml").write_text(CONFIG)
    (tmp_path / "root" / "tmp").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "patch apply -f pod.yaml --patch-file patch.yaml --kubernetes-version nonsense",
        "patch apply -f pod.yaml --patch-file patch.yaml --kubernetes-version v1.20.0",
        "patch apply -f pod.yaml",
        "patch diff",
        "patch diff -f pod.yaml --patches . --target nope",
        "patch explain a[ -f pod.yaml --patch-file patch.yaml",
        "patch lint patch.yaml",
        "patch lint . --to v1.20.0",
        "patch new nope -f pod.yaml",
        "patch schema --kind Nope",
        "config print init-defaults --kubernetes-version v1.20.0",
        "config print init-defaults --component-configs Nope",
        "config images list --feature-gates Nope=true",
        "config explain nope --config kubeadm.yaml",
        "token create nope --rootfs root",
        "join --rootfs root --dry-run",
        "join 192.0.2.1:6443 --token nope --rootfs root --dry-run",
        "init --pod-network-cidr nope --rootfs root --dry-run",
        "init --kubernetes-version v1.20.0 --rootfs root --dry-run",
        "init --skip-phases nope --rootfs root --dry-run",
        "init phase nope",
        "certs renew nope --dry-run --rootfs root",
        "lab binaries get nope",
        "lab status --name there-is-none",
        "tunnel server --server-port nope",
        "tunnel certs -o pki --server-name not/a/name",
        "status --rootfs nowhere",
        "man nope",
        "nope",
    ],
)
def test_mistake_on_the_command_line_is_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2, capsys.readouterr().err
    assert capsys.readouterr().err.startswith("error[")


@pytest.mark.parametrize(
    "line",
    [
        "patch apply -f nowhere.yaml --patch-file patch.yaml",
        "patch apply -f pod.yaml --patch-file nowhere.yaml",
        "patch apply -f pod.yaml --patch-set nowhere.yaml",
        "patch apply -f pod.yaml --patches nowhere",
        "patch diff --config nowhere.yaml",
        "patch lint nowhere.yaml",
        "patch lint --config nowhere.yaml",
        "patch compile --patches nowhere --out compiled",
        "patch capture --original nowhere.yaml --modified pod.yaml",
        "patch create --original pod.yaml --modified nowhere.yaml",
        "patch new kube-scheduler -f nowhere.yaml",
        "config validate --config nowhere.yaml",
        "config migrate --old-config nowhere.yaml",
        "config explain etcd --config nowhere.yaml",
        "config images list --config nowhere.yaml",
        "config images pull --config nowhere.yaml",
        "init --config nowhere.yaml --rootfs root --dry-run",
        "join --config nowhere.yaml --rootfs root --dry-run",
        "reset --config nowhere.yaml --rootfs root --dry-run",
        "certs renew all --config nowhere.yaml --dry-run --rootfs root",
        "kubeconfig user --client-name x --config nowhere.yaml --rootfs root",
        "token list --kubeconfig nowhere.conf --rootfs root",
        "tunnel agent --ca-cert nowhere.pem --proxy-server-host x.example",
    ],
)
def test_file_that_is_not_there_is_1(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 1, capsys.readouterr().err
    assert capsys.readouterr().err.startswith(("error[unreadable]", "error[no-kubeconfig]", "error[file-missing]"))
