"""The first node by garboard, on a bare machine: as kubeadm would leave it, its kubelet at its own API server."""

import json
import time
from typing import Any

import pytest

from garboard.model import SUPPORTED_VERSIONS
from tests.support.lab.clusters import Bare
from tests.support.lab.first_node import CONFIG, DOCUMENTS, put_config
from tests.support.lab.objects import comparable_objects
from tests.support.lab.sampling import peers_seen, start_sampling
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

# What garboard keeps of a cluster, and kubeadm does not: its record, and that nodes may read it.
RECORD = {
    "ConfigMap kube-system/garboard-revision-0",
    "ConfigMap kube-system/garboard-change",
    "Role kube-system/garboard:change",
    "RoleBinding kube-system/garboard:change",
}
LOCAL, SHARED = "10.89.0.11", "10.89.0.1"


def wait_ready(lab: LabUnderTest, node: str = "cp1") -> None:
    kubectl = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf")
    lab.exec(node, *kubectl, "wait", "--for=condition=Ready", f"node/{node}", "--timeout=180s")


def settled_objects(lab: LabUnderTest) -> dict[str, Any]:
    """Return the objects once the controllers have added theirs."""
    wait_ready(lab)
    before = comparable_objects(lab, "cp1")
    for _ in range(30):
        time.sleep(1)
        found = comparable_objects(lab, "cp1")
        if found == before and "ConfigMap kube-system/kube-root-ca.crt" in found:
            return found
        before = found
    return before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("version", [str(each) for each in SUPPORTED_VERSIONS])
def test_live_objects_equal_those_of_a_cluster_by_kubeadm(bare: Bare, version: str) -> None:
    lab = bare(version=version)
    put_config(lab, DOCUMENTS.replace("VERSION", version))
    lab.exec("cp1", "kubeadm", "init", "--config", CONFIG, "--upload-certs")
    theirs = settled_objects(lab)
    lab.lab("down")
    lab = bare(version=version)
    put_config(lab, DOCUMENTS.replace("VERSION", version))
    said = lab.exec("cp1", "garboard", "init", "--config", CONFIG, "--upload-certs")
    assert "garboard join control-plane.lab:6443 --token abcdef.0123456789abcdef" in said.stdout
    ours = settled_objects(lab)
    recorded = {name: ours.pop(name) for name in RECORD}
    assert ours == theirs
    revision = json.loads(recorded["ConfigMap kube-system/garboard-revision-0"]["data"]["revision"])
    keys = {"kubeadm-config": "ClusterConfiguration", "kubelet-config": "kubelet", "kube-proxy": "config.conf"}
    stored = {name: ours[f"ConfigMap kube-system/{name}"]["data"][key] for name, key in keys.items()}
    assert revision["documents"] == stored


@pytest.mark.parametrize("gate", ["", "false"], ids=["local mode", "gate false"])
def test_kubelet_talks_only_to_the_api_server_beside_it_unless_told_otherwise(bare: Bare, gate: str) -> None:
    lab = bare()
    gates = f"featureGates: {{ControlPlaneKubeletLocalMode: {gate}}}\n" if gate else ""
    put_config(
        lab, DOCUMENTS.replace("VERSION", "v1.37.1").replace("controlPlaneEndpoint", f"{gates}controlPlaneEndpoint")
    )
    start_sampling(lab, "cp1")
    lab.exec("cp1", "garboard", "init", "--config", CONFIG)
    wait_ready(lab)
    seen = peers_seen(lab, "cp1")
    assert sum(seen.values()) > 20, "the kubelet was looked at all the time"
    if gate:
        # Its probes of the static pod go to the node's own address in any case.
        assert seen[SHARED] > seen.get(LOCAL, 0), seen
    else:
        assert set(seen) == {LOCAL}, seen
