"""Hive's documents for hosts that are nodes of a lab, and the provision command on them."""

import json
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

from garboard.documents import Json, write_yaml
from garboard.model import DEFAULT_VERSION
from tools.harness.lab import GARBOARD, LabUnderTest, garboard

IGNORED: list[Json] = ["SystemVerification", "NumCPU", "Mem"]
DEPLOYMENT = "fleet-c1"


def install_config(lab: LabUnderTest, control_planes: int, workers: int) -> dict[str, Json]:
    names = [*(f"cp{n + 1}" for n in range(control_planes)), *(f"worker{n + 1}" for n in range(workers))]
    hosts: list[Json] = [
        {
            "name": name,
            "address": f"10.89.0.{11 + index}",
            "role": "control-plane" if name.startswith("cp") else "worker",
        }
        for index, name in enumerate(names)
    ]
    return {
        "apiVersion": "fleet.garboard.dev/v1alpha1",
        "kind": "InstallConfig",
        "metadata": {"name": "c1"},
        "baseDomain": "lab",
        "platform": {"none": {}},
        "via": f"{GARBOARD} lab exec --name {lab.name} {{host}} --",
        "hosts": hosts,
        "kubeadm": kubeadm_documents(),
        "addons": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "addons"}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "of-the-fleet", "namespace": "addons"},
                "data": {"made": "by an addon"},
            },
        ],
    }


def kubeadm_documents() -> list[Json]:
    """Return what a lab needs, as its own configuration has it."""
    return [
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ClusterConfiguration",
            "kubernetesVersion": str(DEFAULT_VERSION),
            "controlPlaneEndpoint": "control-plane.lab:6443",
            "networking": {"podSubnet": "10.244.0.0/16"},
            "controllerManager": {"extraArgs": [{"name": "allocate-node-cidrs", "value": "false"}]},
        },
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "InitConfiguration",
            "nodeRegistration": {"ignorePreflightErrors": IGNORED},
        },
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "JoinConfiguration",
            "nodeRegistration": {"ignorePreflightErrors": IGNORED},
        },
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%"},
        },
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "conntrack": {"maxPerCore": 0, "min": 0},
        },
    ]


def documents(
    lab: LabUnderTest, control_planes: int, workers: int, install: Sequence[Json], manifests: Sequence[Json]
) -> str:
    """Return a pool whose one inventory entry has the customizations."""
    objects: list[dict[str, Json]] = [
        {
            "apiVersion": "hive.openshift.io/v1",
            "kind": "ClusterPool",
            "metadata": {"name": "fleet"},
            "spec": {
                "platform": {"none": {}},
                "baseDomain": "lab",
                "size": 1,
                "imageSetRef": {"name": "garboard"},
                "installConfigSecretTemplateRef": {"name": "template"},
                "inventory": [{"name": "c1"}],
            },
        },
        {
            "apiVersion": "hive.openshift.io/v1",
            "kind": "ClusterImageSet",
            "metadata": {"name": "garboard"},
            "spec": {"releaseImage": "none"},
        },
        {
            "apiVersion": "hive.openshift.io/v1",
            "kind": "ClusterDeploymentCustomization",
            "metadata": {"name": "c1"},
            "spec": {"installConfigPatches": list(install), "installerManifestPatches": list(manifests)},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "template"},
            "stringData": {"install-config.yaml": write_yaml(install_config(lab, control_planes, workers))},
        },
    ]
    return "---\n".join(map(write_yaml, objects))


def provision(files: Path, work: Path, *, check: bool = True) -> CompletedProcess[str]:
    return garboard(*provision_command(files, work)[1:], check=check)


def provision_command(files: Path, work: Path) -> list[str]:
    return [GARBOARD, "fleet", "provision", "-f", str(files), "--deployment", DEPLOYMENT, "--work", str(work), "-ojson"]


def deprovision(work: Path, *, check: bool = True) -> CompletedProcess[str]:
    return garboard("fleet", "deprovision", "--work", str(work), check=check)


def patch(op: str, path: str, value: Json) -> dict[str, Json]:
    return {"op": op, "path": path, "valueJSON": json.dumps(value)}
