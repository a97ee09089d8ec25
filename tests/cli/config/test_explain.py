"""`config explain` names the default, the line of the configuration or the line of the patch."""

import json
from pathlib import Path

import pytest

from garboard.cli.main import run

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 192.0.2.10
nodeRegistration:
  name: cp1
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
apiServer:
  extraArgs:
  - name: profiling
    value: "false"
networking:
  serviceSubnet: 10.97.0.0/16
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 50
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kubeadm.yaml").write_text(CONFIG)
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "kube-apiserver.yaml").write_text("metadata:\n  labels:\n    team: a\n")
    (tmp_path / "patches" / "kubeletconfiguration.yaml").write_text("maxPods: 60\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "field", "story"),
    [
        pytest.param(
            "kube-apiserver",
            "spec.containers[0].command[--profiling]",
            ["set by kubeadm.yaml:13:5 (ClusterConfiguration apiServer.extraArgs[0])"],
            id="an extra argument",
        ),
        pytest.param(
            "kube-apiserver",
            "spec.containers[0].command[--service-cluster-ip-range]",
            ["set by kubeadm.yaml:16:3 (ClusterConfiguration networking.serviceSubnet)"],
            id="a field that a flag derives from",
        ),
        pytest.param(
            "kube-apiserver",
            "spec.containers[0].command[--allow-privileged]",
            ["set by the default of Kubernetes v1.37.1"],
            id="a default of the minor",
        ),
        pytest.param(
            "kube-apiserver",
            "spec.containers[0].command[--secure-port]",
            ["set by the default of InitConfiguration localAPIEndpoint.bindPort in Kubernetes v1.37.1"],
            id="a field left to its default",
        ),
        pytest.param(
            "kube-apiserver",
            "metadata.labels.team",
            ["set by patches/kube-apiserver.yaml:3:5 (strategic patch)"],
            id="patch",
        ),
        pytest.param(
            "kubeletconfiguration",
            "maxPods",
            [
                "set by patches/kubeletconfiguration.yaml:1:1 (strategic patch), over 50",
                "was 50, set by kubeadm.yaml:20:1 (KubeletConfiguration maxPods)",
            ],
            id="a patch over a component configuration",
        ),
        pytest.param(
            "corednsdeployment", "spec.replicas", ["set by the default of Kubernetes v1.37.1"], id="an addon's default"
        ),
    ],
)
def test_field_is_explained(
    target: str, field: str, story: list[str], machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "explain", target, field, "--config", "kubeadm.yaml", "--patches", "patches"]) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == story


def test_without_a_field_everything_that_somebody_decided_is_told(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["config", "explain", "kube-apiserver", "--config", "kubeadm.yaml", "--patches", "patches", "-o", "json"]
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    kinds = {each["origin"]["kind"] for each in told}
    assert {"config", "patch"} <= kinds
    assert "metadata.labels.component" not in [each["field"] for each in told]


def test_unknown_target_is_refused_with_the_list(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "explain", "kube-proxy", "--config", "kubeadm.yaml"]) == 2
    assert "kubeproxydaemonset" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "line"),
    [
        pytest.param([], "set by patches/node/cp1/kubeletconfiguration.yaml:1:1", id="the node of the file"),
        pytest.param(["--node", "w1", "--role", "worker"], "set by patches/role/worker/kubeletconfiguration.yaml:1:1",
                     id="a worker"),
    ],
)  # fmt: skip
def test_layers_are_those_of_the_node_that_is_asked_for(
    options: list[str], line: str, machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (
        ("garboard.yaml", ""),
        ("node/cp1/kubeletconfiguration.yaml", "maxPods: 61\n"),
        ("role/worker/kubeletconfiguration.yaml", "maxPods: 62\n"),
    ):
        path = machine / "patches" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    words = ["config", "explain", "kubeletconfiguration", "maxPods", "--config", "kubeadm.yaml"]
    assert run([*words, "--patches", "patches", *options]) == 0
    assert line in capsys.readouterr().out.splitlines()[1]


def test_misspelt_field_is_refused_with_a_suggestion(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "explain", "kubeletconfiguration", "maxPds", "--config", "kubeadm.yaml"]) == 3
    assert "did you mean 'maxPods'?" in capsys.readouterr().err
