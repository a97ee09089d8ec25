"""Joining clusters that kubeadm began: workers and control planes, beside kubeadm's own, file by file."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from garboard.model import SUPPORTED_VERSIONS
from tests.support.lab.clusters import await_nodes, left_on, node_object
from tests.support.lab.node_tree import node_tree, unexplained
from tools.harness.joining import CONFIG, Joining, begun_cluster
from tools.harness.lab import RUN, put

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600), pytest.mark.sampled(2, by="cluster")]
# What a control-plane node has in files that are no credentials.
RENDERED = (
    "/etc/kubernetes/manifests/kube-*.yaml", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kubelet/instance-config.yaml", "/etc/kubernetes/kubelet.conf",
)  # fmt: skip


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def cluster(request: pytest.FixtureRequest, garboard_in_node: tuple[str, ...]) -> Iterator[Joining]:
    name = f"t{RUN}-join{request.param.minor}"
    with begun_cluster(name, str(request.param), garboard_in_node, control_planes=4) as made:
        yield made


def as_registered(node: dict[str, Any]) -> dict[str, Any]:
    """Return what decides how a Node is treated, without its name."""
    metadata = node["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key != "kubernetes.io/hostname"}
    taints = [each for each in node["spec"].get("taints", []) if "not-ready" not in each["key"]]
    return {"labels": labels, "annotations": sorted(metadata.get("annotations", {})), "taints": taints}


@pytest.mark.parametrize(
    ("changed", "error_class", "said"),
    [
        ({"pin": "sha256:" + "0" * 64}, "wrong-ca", "is not the one that was announced"),
        ({"token": "zzzzzz.0123456789abcdef"}, "unknown-token", "it has expired or was deleted"),
        ({"endpoint": "10.89.0.250:6443"}, "unreachable", "10.89.0.250:6443"),
        ({"endpoint": "worker2:6443"}, "unreachable", "refused the connection"),
    ],
    ids=["wrong CA pin", "expired token", "nobody at the address", "no API server there"],
)
def test_cause_is_named_and_nothing_remains(
    cluster: Joining, changed: dict[str, str], error_class: str, said: str
) -> None:
    document = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ntimeouts: {discovery: 2s}\n"
    put(cluster.lab, "worker1", CONFIG, f"{document}discovery: {cluster.discovery(**changed)}\n")
    before = node_tree(cluster.lab, "worker1")
    ended = cluster.lab.exec("worker1", *cluster.garboard, "join", "--config", CONFIG, check=False)
    assert f"error[{error_class}]" in ended.stderr
    assert said in ended.stderr
    assert "hint: " in ended.stderr
    assert unexplained(before, node_tree(cluster.lab, "worker1")) == []


def test_secret_half_of_another_token_is_named(cluster: Joining) -> None:
    wrong = cluster.secrets.token[:7] + "0" * 16
    document = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
    put(cluster.lab, "worker1", CONFIG, f"{document}discovery: {cluster.discovery(token=wrong)}\n")
    ended = cluster.lab.exec("worker1", *cluster.garboard, "join", "--config", CONFIG, check=False)
    assert "error[wrong-token]" in ended.stderr
    assert wrong[7:] not in ended.stderr


def test_workers_of_both_are_equal(cluster: Joining) -> None:
    for node in ("worker1", "worker2"):
        cluster.prepare(node)
    shown = cluster.lab.exec("worker1", *cluster.garboard, "join", "--config", CONFIG, "--dry-run", "-o", "json").stdout
    assert cluster.secrets.token not in shown
    cluster.lab.exec("worker1", *cluster.garboard, "join", "--config", CONFIG)
    cluster.lab.exec("worker2", "kubeadm", "join", "--config", CONFIG)
    await_nodes(cluster.lab, "worker1", "worker2")
    assert cluster.files("worker1") == cluster.files("worker2")
    rendered = (*RENDERED[1:], "/etc/kubernetes/pki/ca.crt")
    assert cluster.text("worker1", *rendered) == cluster.text("worker2", *rendered)
    ours, theirs = (as_registered(node_object(cluster.lab, name)) for name in ("worker1", "worker2"))
    assert ours == theirs


def test_control_planes_of_both_are_equal_and_the_kubelet_is_local_from_the_first_moment(cluster: Joining) -> None:
    for node in ("cp2", "cp3"):
        cluster.prepare(node)
    cluster.sample_sockets("cp2")
    cluster.lab.exec("cp2", *cluster.garboard, "join", "--config", CONFIG)
    await_nodes(cluster.lab, "cp2")
    assert cluster.api_servers_of_kubelet("cp2") == {"10.89.0.12"}
    assert cluster.members() == {"cp1": False, "cp2": False}
    cluster.lab.exec("cp3", "kubeadm", "join", "--config", CONFIG)
    await_nodes(cluster.lab, "cp3")
    assert cluster.members() == {"cp1": False, "cp2": False, "cp3": False}
    assert cluster.files("cp2") == cluster.files("cp3")
    assert cluster.text("cp2", *RENDERED) == cluster.text("cp3", *RENDERED)
    ours, theirs = (cluster.text(node, "/etc/kubernetes/manifests/etcd.yaml").splitlines() for node in ("cp2", "cp3"))
    differing = [(mine, other) for mine, other in zip(ours, theirs, strict=True) if mine != other]
    assert [mine.split("=")[0].strip() for mine, _ in differing] == ["- --initial-cluster"]
    ours_, theirs_ = (as_registered(node_object(cluster.lab, name)) for name in ("cp2", "cp3"))
    assert ours_ == theirs_
    assert "garboard-control-plane" not in cluster.lab.kubectl("get", "leases", "-n", "kube-system")


def test_with_the_gate_off_the_kubelet_talks_to_the_shared_endpoint(cluster: Joining) -> None:
    stored = json.loads(cluster.lab.kubectl("get", "configmap", "-n", "kube-system", "kubeadm-config", "-o", "json"))
    text = stored["data"]["ClusterConfiguration"] + "featureGates: {ControlPlaneKubeletLocalMode: false}\n"
    change = json.dumps({"data": {"ClusterConfiguration": text}})
    cluster.lab.kubectl("patch", "configmap", "-n", "kube-system", "kubeadm-config", "--type=merge", "-p", change)
    cluster.prepare("cp4")
    cluster.sample_sockets("cp4")
    cluster.lab.exec("cp4", *cluster.garboard, "join", "--config", CONFIG)
    await_nodes(cluster.lab, "cp4")
    assert "10.89.0.1" in cluster.api_servers_of_kubelet("cp4")
    assert cluster.members()["cp4"] is False


@pytest.mark.parametrize(("ours", "theirs"), [("worker1", "worker2"), ("cp2", "cp3")])
def test_reset_leaves_what_kubeadm_leaves(cluster: Joining, ours: str, theirs: str) -> None:
    """Last, for it takes the cluster apart: each node by the tool that joined it."""
    cluster.lab.exec(ours, *cluster.garboard, "reset", "--force")
    cluster.lab.exec(theirs, "kubeadm", "reset", "--force")
    assert not {ours, theirs} & set(cluster.members())
    left = [set(left_on(cluster.lab, node).replace(node, "OWN").splitlines()) for node in (ours, theirs)]
    assert left[0] - left[1] == set()
    # kubeadm empties the data folder while etcd still runs, which may then write there once more.
    assert {line for line in left[1] - left[0] if not line.startswith("/var/lib/etcd/member")} == set()
    assert cluster.lab.exec(ours, "systemctl", "is-active", "kubelet", check=False).stdout == "inactive\n"
