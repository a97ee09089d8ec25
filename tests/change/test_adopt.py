"""What a cluster is found to have, and the command that mends it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from garboard.change.adopt import AdoptReport, adopt_report
from garboard.change.adopt_codes import ADOPT_CODES, FindingLevel
from garboard.change.adopt_text import report_as_json, report_as_text
from garboard.change.snapshot import CertificateFacts, ClusterSnapshot, SnapshotMember, SnapshotNode
from garboard.model import KubernetesVersion
from tests.support.change.snapshots import f1, f2, f3

PAGE = (Path(__file__).parents[2] / "docs/change.md").read_text()
NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
V1_36 = KubernetesVersion(1, 36, 4)
replace = msgspec.structs.replace


def found(snapshot: ClusterSnapshot) -> AdoptReport:
    return adopt_report(snapshot, NOW)


def with_node(snapshot: ClusterSnapshot, name: str, **changes: Any) -> ClusterSnapshot:
    nodes = [replace(each, **changes) if each.name == name else each for each in snapshot.nodes]
    return replace(snapshot, nodes=nodes)


def with_flag(snapshot: ClusterSnapshot, name: str, component: str, flag: str) -> ClusterSnapshot:
    def changed(node: SnapshotNode) -> SnapshotNode:
        pod = node.mirror_pods[component]
        return replace(node, mirror_pods={**node.mirror_pods, component: replace(pod, command=[*pod.command, flag])})

    nodes = [changed(each) if each.name == name else each for each in snapshot.nodes]
    return replace(snapshot, nodes=nodes)


def with_member(snapshot: ClusterSnapshot, **member: Any) -> ClusterSnapshot:
    return replace(snapshot, members=[*(snapshot.members or []), SnapshotMember(**member)])


def certificate(path: str, not_after: str) -> ClusterSnapshot:
    return with_node(f1(is_seen=True), "cp1", certificates=[CertificateFacts(path=path, not_after=not_after)])


def stored(snapshot: ClusterSnapshot, old: str, new: str) -> ClusterSnapshot:
    """Return the cluster with another text in its ClusterConfiguration."""
    config = snapshot.config_maps["kubeadm-config"]
    text = config.data["ClusterConfiguration"]
    assert old in text
    changed = replace(config, data={"ClusterConfiguration": text.replace(old, new)})
    return replace(snapshot, config_maps={**snapshot.config_maps, "kubeadm-config": changed})


def without_map(snapshot: ClusterSnapshot, name: str) -> ClusterSnapshot:
    return replace(snapshot, config_maps={key: each for key, each in snapshot.config_maps.items() if key != name})


def unready_scheduler(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    node = snapshot.nodes[0]
    pods = {
        **node.mirror_pods,
        "kube-scheduler": replace(node.mirror_pods["kube-scheduler"], is_ready=False, restarts=7),
    }
    return with_node(snapshot, node.name, mirror_pods=pods)


# What is made of a cluster that is well; the finding with its node, and a part of its cure.
CASES: dict[str, tuple[Callable[[], ClusterSnapshot], str, str, str]] = {
    "a certificate that has ended": (
        lambda: certificate("apiserver.crt", "2026-11-17T00:00:00Z"),
        "certificate-expired", "cp1", "on cp1: garboard certs renew apiserver",
    ),
    "a kubeconfig that ends soon": (
        lambda: certificate("/etc/kubernetes/admin.conf", "2026-12-01T00:00:00Z"),
        "certificate-expires", "cp1", "on cp1: garboard certs renew admin.conf",
    ),
    "an authority that ends within a year": (
        lambda: certificate("etcd/ca.crt", "2027-06-01T00:00:00Z"), "authority-expires", "cp1", "in stages",
    ),
    "the kubelet's own certificate": (
        lambda: certificate("/var/lib/kubelet/pki/kubelet-client-current.pem", "2026-11-19T00:00:00Z"),
        "certificate-expires", "cp1", "systemctl restart kubelet",
    ),
    "a member that no node runs": (
        lambda: with_member(f2(), name="gone", member_id="abc", peer_urls=["https://192.0.2.99:2380"]),
        "orphan-member", "", "etcdctl member remove abc",
    ),
    "a learner": (
        lambda: with_member(f2(), name="", member_id="abc", is_learner=True, node="cp3"),
        "learner-left", "cp3", "etcdctl member remove abc",
    ),
    "a member that does not answer": (
        lambda: with_member(f2(), name="cp1", member_id="abc", is_healthy=False, node="cp1"),
        "unhealthy-member", "cp1", "crictl logs",
    ),
    "two members": (lambda: f2(control_planes=("cp1", "cp2")), "even-members", "", "garboard join"),
    "a flag that the minor does not have": (
        lambda: with_flag(f1(), "cp1", "kube-scheduler", "--no-such-flag=1"),
        "unknown-flag", "", "garboard change plan --unset 'scheduler.extraArgs[no-such-flag]'",
    ),
    "a flag that the next minor does not have": (
        lambda: with_flag(f1(version=V1_36), "cp1", "kube-controller-manager", "--concurrent-service-syncs=2"),
        "removed-flag", "", "--unset 'controllerManager.extraArgs[concurrent-service-syncs]'",
    ),
    "a flag of etcd that the next minor does not have": (
        lambda: with_flag(f2(version=V1_36), "cp2", "etcd", "--experimental-initial-corrupt-check=true"),
        "removed-flag", "cp2", "--unset 'etcd.local.extraArgs[experimental-initial-corrupt-check]'",
    ),
    "a flag of the kubelet that the next minor does not have": (
        lambda: with_node(
            f1(version=V1_36), "w1", kubelet_flags='KUBELET_KUBEADM_ARGS="--v=2 --containerd=/run/c.sock"\n'
        ),
        "removed-flag", "w1", "kubeadm-flags.env",
    ),
    "a gate that the next minor does not have": (
        lambda: with_flag(f1(version=V1_36), "cp1", "kube-apiserver", "--feature-gates=BtreeWatchCache=true"),
        "removed-gate", "", "apiServer.extraArgs[feature-gates]",
    ),
    "a gate that the next minor locks": (
        lambda: with_flag(f1(version=V1_36), "cp1", "kube-scheduler", "--feature-gates=DRAPrioritizedList=false"),
        "locked-gate", "", "scheduler.extraArgs[feature-gates]",
    ),
    "a gate of all kubelets that the next minor does not have": (
        lambda: f1(version=V1_36, kubelet={"featureGates": {"SidecarContainers": True}}),
        "removed-gate", "", "garboard change plan --unset 'KubeletConfiguration:featureGates.SidecarContainers'",
    ),
    "control planes that differ": (
        lambda: with_flag(f2(), "cp2", "kube-apiserver", "--event-ttl=2h"),
        "flags-differ", "", "apiServer.extraArgs[event-ttl]",
    ),
    "a kubelet that an upgrade left behind": (
        lambda: with_node(f1(), "w2", kubelet_version="v1.36.4"), "version-skew", "w2", "on w2: garboard upgrade node",
    ),
    "a node that is not ready": (
        lambda: with_node(f1(), "w1", is_ready=False), "node-not-ready", "w1", "kubectl describe node w1",
    ),
    "a component that is not ready": (
        lambda: unready_scheduler(f1()), "component-not-ready", "cp1", "logs kube-scheduler-cp1",
    ),
    "an old version of the configuration": (
        lambda: stored(f1(version=V1_36), "kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta3"),
        "old-api", "", "garboard upgrade apply v1.36.4",
    ),
    "a minor that is not known": (
        lambda: stored(f1(), "v1.37.1", "v1.33.2"), "unknown-minor", "", "each minor on the way",
    ),
    "no configuration of the kubelets": (
        lambda: without_map(f1(), "kubelet-config"), "missing-config", "", "upload-config",
    ),
    "a configuration that is no document": (
        lambda: stored(f1(), "apiVersion:", "}{ ["), "missing-config", "", "upload-config",
    ),
    "no endpoint": (lambda: f1(cluster={"controlPlaneEndpoint": ""}), "no-endpoint", "", "controlPlaneEndpoint"),
    "another endpoint for those that join": (
        lambda: replace(f1(), cluster_info_server="https://old.example.com:6443"),
        "endpoint-differs", "", "edit configmap cluster-info",
    ),
    "a flag of the kubelet from long ago": (
        lambda: with_node(
            f1(), "w1", kubelet_flags='KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.9"\n'
        ),
        "old-kubelet-flag", "w1", "remove the flag",
    ),
    "a socket in the flags alone": (
        lambda: with_node(f1(is_seen=True), "w1", instance_config=""), "socket-not-noted", "w1", "upgrade node",
    ),
    "a Corefile of their own": (
        lambda: replace(f1(), addons=replace(f1().addons, corefile=".:53 {}\n")), "corefile-changed", "", "Corefile",
    ),
    "an addon that an upgrade left behind": (
        lambda: replace(f1(), addons=replace(f1().addons, kube_proxy_image="registry.k8s.io/kube-proxy:v1.36.4")),
        "addon-version", "", "garboard upgrade apply v1.37.1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("snapshot", [f1(), f2(is_seen=True), f3(), f2(version=V1_36)], ids=["F1", "F2", "F3", "1.36"])
def test_nothing_is_found_in_a_cluster_that_is_well(snapshot: ClusterSnapshot) -> None:
    assert found(snapshot).findings == ()


@pytest.mark.parametrize(("make", "code", "node", "cure"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_found_with_its_node_and_its_cure(
    make: Callable[[], ClusterSnapshot], code: str, node: str, cure: str
) -> None:
    hits = [each for each in found(make()).findings if each.code == code]
    assert [each.node for each in hits] in ([node], [node] * len(hits))
    assert hits, [each.code for each in found(make()).findings]
    assert cure in hits[0].cure or cure in hits[0].message


def test_every_code_is_told_apart_by_a_case_or_by_drift() -> None:
    by_drift = {"hand-edit", "patches-not-recorded", "unreadable-config"}
    assert {code for _, code, _, _ in CASES.values()} | by_drift == set(ADOPT_CODES)


def test_page_has_every_code_with_its_level() -> None:
    rows = [f"| `{code}` | {each.level} | {each.why} |" for code, each in ADOPT_CODES.items()]
    assert [row for row in rows if row not in PAGE] == []


def test_what_matters_most_comes_first() -> None:
    snapshot = with_node(certificate("apiserver.crt", "2026-11-17T00:00:00Z"), "w1", is_ready=False)
    levels = [each.level for each in found(replace(snapshot, cluster_info_server="https://x:1")).findings]
    assert levels == [FindingLevel.DANGER, FindingLevel.WARNING, FindingLevel.WARNING]


def test_flag_that_all_control_planes_have_is_told_once() -> None:
    snapshot = f2(cluster={"apiServer": {"extraArgs": [{"name": "no-such-flag", "value": "1"}]}})
    assert [(each.code, each.node) for each in found(snapshot).findings] == [("unknown-flag", "")]


def test_what_was_not_looked_at_is_said_and_not_taken_for_well() -> None:
    seen = with_node(replace(f2(), members=None), "cp1", manifests={})
    text = report_as_text(found(seen))
    assert "files and certificates of cp2, cp3, w1, w2, w3: run garboard change adopt there" in text
    assert "the members of etcd: run garboard change adopt on a control plane, as root" in text


def test_text_has_everything_that_json_has() -> None:
    report = found(with_node(certificate("apiserver.crt", "2026-11-17T00:00:00Z"), "w1", is_ready=False))
    document: Any = report_as_json(report)
    text = report_as_text(report)
    assert [each["code"] for each in document["findings"]] == ["certificate-expired", "node-not-ready"]
    for each in document["findings"]:
        assert each["message"] in text
        assert each["why"] in text
        assert f"cure: {each['cure']}" in text
    for node in document["nodes"]:
        assert node["name"] in text
