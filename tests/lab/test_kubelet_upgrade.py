"""A whole cluster goes up a minor, its kubelets too: their package is the package manager's, here that of the lab."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.lab.clusters import await_nodes, node_object
from tools.harness.lab import RUN, LabUnderTest, garboard
from tools.harness.snapshots import ClusterSnapshots

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
FORMER, TARGET = "v1.36.4", "v1.37.1"
NODES = ("cp1", "worker1")


@pytest.fixture(scope="module")
def lab(cluster_snapshots: ClusterSnapshots) -> Iterator[LabUnderTest]:
    """A control plane and a worker of the former minor, made by kubeadm, with the programs of the target beside."""
    made = LabUnderTest(f"t{RUN}-kubelets")
    size = ("--control-planes", "1", "--workers", "1")
    try:
        cluster_snapshots.up(made, *size, "--kubernetes-version", FORMER, "--also", TARGET, "--by", "kubeadm")
        yield made
    finally:
        made.lab("down", check=False)


def install(lab: LabUnderTest, node: str) -> None:
    """Do what the package manager does."""
    garboard("lab", "kubelet", "--name", lab.name, node, "--kubernetes-version", TARGET)


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_cluster_ends_with_kubelets_of_the_target_everywhere(
    lab: LabUnderTest, garboard_in_node: tuple[str, ...]
) -> None:
    """The control plane by the printed commands, the worker by --drain with its package installed before."""
    told = succeeded(lab.exec("cp1", *garboard_in_node, "upgrade", "apply", TARGET, "--yes", check=False))
    drain, restart, uncordon = (printed(told, words) for words in ("kubectl drain cp1", "systemctl", "kubectl unc"))
    lab.kubectl(*drain.split()[1:])
    # Else what was evicted may still be on its way when cp1 takes pods again, and nothing comes to worker1.
    lab.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
    install(lab, "cp1")
    assert kubelets(lab) == {"cp1": FORMER, "worker1": FORMER}, "a package does not restart the kubelet"
    lab.exec("cp1", "sh", "-ec", restart)
    lab.kubectl(*uncordon.split()[1:])

    assert any(name.startswith("coredns-") for name in pods_of(lab, "worker1")), "there is something to evict"
    install(lab, "worker1")
    told = succeeded(lab.exec("worker1", *garboard_in_node, "upgrade", "node", "--drain", check=False))
    assert "apt-get" not in told, "its package is that of the target already"
    await_nodes(lab, *NODES)
    assert kubelets(lab) == dict.fromkeys(NODES, TARGET)
    assert [node_object(lab, name)["spec"].get("unschedulable") for name in NODES] == [None, None]


def printed(told: str, words: str) -> str:
    """Return the printed command that begins with some words."""
    found = re.search(rf"^  ({re.escape(words)}.*)$", told, re.MULTILINE)
    assert found, told
    return found[1]


def kubelets(lab: LabUnderTest) -> dict[str, str]:
    return {name: str(node_object(lab, name)["status"]["nodeInfo"]["kubeletVersion"]) for name in NODES}


def pods_of(lab: LabUnderTest, node: str) -> list[str]:
    fields = f"spec.nodeName={node}"
    return lab.kubectl(
        "get", "pods", "-A", "--field-selector", fields, "-o", "jsonpath={.items[*].metadata.name}"
    ).split()
