from dataclasses import replace

from garboard.manifests.rootless import KEY_READERS, USERS, ownerships
from garboard.manifests.rootless_users import plan_users
from garboard.manifests.static_pods import control_plane_pod, etcd_pod
from garboard.model.cluster import ClusterConfiguration
from tests.manifests.nodes import HOST, node

IDS = plan_users("", "").ids
ROOTLESS = ClusterConfiguration(feature_gates={"RootlessControlPlane": True})
HOST_WITH_USERS = replace(HOST, rootless_ids=IDS)


def test_pods_run_as_their_users_once_those_exist() -> None:
    document = control_plane_pod("kube-apiserver", node(ROOTLESS, host=HOST_WITH_USERS)).document
    assert document["spec"]["securityContext"] == {  # type: ignore[index,call-overload]
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": IDS.users["kubeadm-kas"],
        "runAsGroup": IDS.groups["kubeadm-kas"],
        "supplementalGroups": [IDS.groups[KEY_READERS]],
    }


def test_nothing_changes_without_the_gate_or_the_users() -> None:
    plain = etcd_pod(node()).document
    assert etcd_pod(node(host=HOST_WITH_USERS)).document == plain
    assert etcd_pod(node(ROOTLESS)).document == plain


def test_a_key_that_is_elsewhere_changes_no_hands() -> None:
    outside = node(ROOTLESS, host=replace(HOST_WITH_USERS, is_external_ca=True))
    paths = [each.path for component in USERS for each in ownerships(component, outside, IDS)]
    assert "/etc/kubernetes/pki/ca.key" not in paths
    assert "/etc/kubernetes/pki/ca.key" in [
        each.path for each in ownerships("kube-controller-manager", node(ROOTLESS, host=HOST_WITH_USERS), IDS)
    ]
