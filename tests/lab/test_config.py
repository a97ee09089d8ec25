"""The user's configuration and patches in a cluster, and what is refused before anything is started."""

from pathlib import Path

import pytest

from tools.harness.lab import LabUnderTest, garboard

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: mine
networking:
  podSubnet: 10.32.0.0/16
  serviceSubnet: 10.99.0.0/16
scheduler:
  extraArgs: [{name: v, value: "3"}]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 42
"""
PATCH = """\
metadata:
  annotations: {example.com/patched: "yes"}
"""


def test_your_configuration_and_patches_end_up_in_the_cluster(labs_made: list[LabUnderTest], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "kube-scheduler+strategic.yaml").write_text(PATCH)
    (patches / "kubeletconfiguration+merge.yaml").write_text("maxPods: 43\n")
    lab = LabUnderTest("config")
    labs_made.append(lab)
    one_node = ["--control-planes", "1", "--workers", "0", "--kubernetes-version", "v1.36.4"]
    lab.lab("up", *one_node, "--config", str(tmp_path / "config.yaml"), "--patches", str(patches))
    assert lab.kubectl("config", "view", "-o", "jsonpath={.clusters[0].name}") == "mine"
    assert (
        lab.kubectl("get", "node", "cp1", "-o", "jsonpath={.status.capacity.pods} {.status.nodeInfo.kubeletVersion}")
        == "43 v1.36.4"
    )
    scheduler = lab.kubectl(
        "get",
        "pod",
        "-n",
        "kube-system",
        "kube-scheduler-cp1",
        "-o",
        "jsonpath={.metadata.annotations} {.spec.containers[0].command}",
    )
    assert '"example.com/patched":"yes"' in scheduler
    assert "--v=3" in scheduler
    dns = lab.kubectl(
        "get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].status.podIP}"
    )
    assert all(address.startswith("10.32.0.") for address in dns.split())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        pytest.param(["--kubernetes-version", "v1.20.0"], 2, "v1.20.0 is not known to the lab", id="unknown version"),
        pytest.param(["--name", "Big"], 3, "is no name for a lab", id="a bad name"),
        pytest.param(["--control-planes", "0"], 3, "make no lab", id="no control plane"),
        pytest.param(["--control-planes", "199"], 4, "MiB of memory", id="more than the machine has"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_started(arguments: list[str], status: int, said: str) -> None:
    ended = garboard("lab", "up", *arguments, check=False)
    assert ended.returncode == status
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert '"name": "lab"' not in garboard("lab", "list", "-o", "json").stdout


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param(
            "config",
            CONFIG.replace("clusterName: mine", "controlPlaneEndpoint: a.b:1"),
            "controlPlaneEndpoint",
            id="config",
        ),
        pytest.param(
            "patch", "cgroupDriver: systemd\n", "cgroupDriver is 'systemd', the lab needs 'cgroupfs'", id="patch"
        ),
    ],
)
def test_contradictions_are_named_and_nothing_is_left(tmp_path: Path, name: str, text: str, said: str) -> None:
    if name == "config":
        (tmp_path / "config.yaml").write_text(text)
        arguments = ["--config", str(tmp_path / "config.yaml")]
    else:
        (tmp_path / "kubeletconfiguration+merge.yaml").write_text(text)
        arguments = ["--patches", str(tmp_path)]
    ended = garboard("lab", "up", "--name", "conflict", *arguments, check=False)
    assert ended.returncode == 3
    assert said in ended.stderr
    assert '"conflict"' not in garboard("lab", "list", "-o", "json").stdout
