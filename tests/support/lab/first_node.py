"""What the first node of a lab's cluster is initialised with; VERSION stands for the release."""

from tools.harness.lab import LabUnderTest, put

CONFIG = "/etc/kubeadm.yaml"
DOCUMENTS = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.89.0.11}
nodeRegistration: {ignorePreflightErrors: [SystemVerification, NumCPU, Mem]}
bootstrapTokens: [{token: abcdef.0123456789abcdef, ttl: 24h0m0s}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
controlPlaneEndpoint: control-plane.lab:6443
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


def put_config(lab: LabUnderTest, text: str) -> None:
    """Write the configuration of cp1."""
    put(lab, "cp1", CONFIG, text)
