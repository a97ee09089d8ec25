from dataclasses import replace

import pytest

from garboard.errors import NotReady
from garboard.manifests.rootless import KEY_READERS, USERS, ownerships, plan_users, without_users
from garboard.manifests.static_pods import control_plane_pod, etcd_pod
from garboard.model.cluster import ClusterConfiguration
from tests.support.manifests.nodes import HOST, node

IDS = plan_users("", "").ids
ROOTLESS = ClusterConfiguration(feature_gates={"RootlessControlPlane": True})
HOST_WITH_USERS = replace(HOST, rootless_ids=IDS)

PASSWD = "root:x:0:0:root:/root:/bin/sh\nsomebody:x:101:100::/:/bin/false\n"
GROUP = "root:x:0:\nsomebody:x:100:"


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


def test_missing_users_take_the_first_free_numbers() -> None:
    planned = plan_users(PASSWD, GROUP)
    assert planned.ids.users == {"kubeadm-etcd": 100, "kubeadm-kas": 102, "kubeadm-kcm": 103, "kubeadm-ks": 104}
    assert planned.ids.groups["kubeadm-sa-key-readers"] == 105
    assert planned.passwd == PASSWD + (
        "kubeadm-etcd:x:100:101:::/bin/false\nkubeadm-kas:x:102:102:::/bin/false\n"
        "kubeadm-kcm:x:103:103:::/bin/false\nkubeadm-ks:x:104:104:::/bin/false\n"
    )
    assert planned.group.endswith("kubeadm-sa-key-readers:x:105:kubeadm-kas,kubeadm-kcm\n")


def test_planning_again_changes_nothing() -> None:
    once = plan_users(PASSWD, GROUP)
    assert plan_users(once.passwd, once.group) == once


def test_what_was_added_can_be_taken_away() -> None:
    planned = plan_users(PASSWD, GROUP + "\n")
    assert (without_users(planned.passwd), without_users(planned.group)) == (PASSWD, GROUP + "\n")


def test_the_range_is_the_systems() -> None:
    planned = plan_users(PASSWD, GROUP, "SYS_UID_MIN 500\nSYS_GID_MIN\t600\n#SYS_UID_MAX 1\n")
    assert (planned.ids.users["kubeadm-etcd"], planned.ids.groups["kubeadm-etcd"]) == (500, 600)


@pytest.mark.parametrize(
    ("passwd", "group", "login_defs"),
    [
        pytest.param("root:x:0\n", GROUP, "", id="half an entry"),
        pytest.param("root:x:zero:0:::\n", GROUP, "", id="no number"),
        pytest.param(PASSWD, GROUP, "SYS_UID_MIN many\n", id="no limit"),
        pytest.param(PASSWD, GROUP, "SYS_UID_MIN 100\nSYS_UID_MAX 101\n", id="no room"),
        pytest.param(PASSWD + "kubeadm-etcd:x:5:0:::/bin/false\n", GROUP, "", id="out of range"),
        pytest.param(PASSWD + "kubeadm-etcd:x:500:0:::/bin/sh\n", GROUP, "", id="a shell"),
        pytest.param(PASSWD + "kubeadm-etcd:x:500:0:::/bin/false\n", GROUP, "", id="another group"),
        pytest.param(PASSWD, GROUP + "\nkubeadm-ks:x:500:somebody\n", "", id="other members"),
        pytest.param(PASSWD, GROUP + "\nkubeadm-ks:x:5:kubeadm-ks\n", "", id="group out of range"),
    ],
)
def test_what_is_not_as_expected_is_refused(passwd: str, group: str, login_defs: str) -> None:
    with pytest.raises(NotReady):
        plan_users(passwd, group, login_defs)
