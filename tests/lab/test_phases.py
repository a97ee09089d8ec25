"""A control plane on files that garboard wrote: its static pods, kubelet, certificates and kubeconfigs at work."""

import json

import pytest

from tests.support.lab.clusters import Bare
from tools.harness.lab import put

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

CONFIG = "/etc/kubeadm.yaml"
DONE_BY_GARBOARD = ("preflight", "certs", "kubeconfig", "etcd", "control-plane", "kubelet-start")
LEFT_TO_KUBEADM = (
    "preflight", "wait-control-plane", "upload-config", "upload-certs", "mark-control-plane", "bootstrap-token",
    "kubelet-finalize", "addon", "show-join-command",
)  # fmt: skip
_DOCUMENTS = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.89.0.11}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
controlPlaneEndpoint: cp1:6443
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
evictionHard: {nodefs.available: "0%", imagefs.available: "0%"}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0}
"""


def test_control_plane_runs_on_our_files_and_kubeadm_goes_on_from_there(
    bare: Bare, garboard_in_node: tuple[str, ...]
) -> None:
    lab = bare()
    put(lab, "cp1", CONFIG, _DOCUMENTS)
    lab.exec("cp1", *garboard_in_node, "init", "--config", CONFIG, "--skip-phases", ",".join(LEFT_TO_KUBEADM))
    assert lab.exec("cp1", "systemctl", "is-active", "kubelet").stdout == "active\n"

    lab.exec("cp1", "kubeadm", "init", "--config", CONFIG, "--skip-phases", ",".join(DONE_BY_GARBOARD))

    kubectl = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf")
    assert lab.exec("cp1", *kubectl, "get", "--raw", "/readyz").stdout == "ok"
    pods = json.loads(lab.exec("cp1", *kubectl, "get", "pods", "-n", "kube-system", "-o", "json").stdout)["items"]
    names = {pod["metadata"]["name"] for pod in pods}
    components = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    assert names >= {f"{component}-cp1" for component in components}

    planned = lab.exec("cp1", *garboard_in_node, "init", "--dry-run", "--config", CONFIG, "-o", "json", "--skip-phases",
                       ",".join(LEFT_TO_KUBEADM))  # fmt: skip
    assert json.loads(planned.stdout)["steps"] == [], "what runs is what would be written"
