"""To which versions a cluster can go, and how that is told."""

import json

import pytest

from garboard.documents import Json
from garboard.engine import Note
from garboard.errors import NotReady
from garboard.model import KubernetesVersion
from garboard.phases.upgrade.available import AvailableUpgrade, UpgradeReport, available, candidates
from tests.support.phases.upgraded_nodes import MemoryObjects, upgraded_node


@pytest.mark.parametrize(
    ("cluster", "found"),
    [
        pytest.param("v1.36.2", ["v1.36.4", "v1.37.1"], id="a patch and a minor"),
        pytest.param("v1.36.4", ["v1.37.1"], id="a minor"),
        pytest.param("v1.36.9", ["v1.37.1"], id="newer than what is known of its minor"),
        pytest.param("v1.37.0", ["v1.37.1"], id="a patch"),
        pytest.param("v1.37.1", [], id="the newest"),
    ],
)
def test_candidates_are_the_releases_that_are_known(cluster: str, found: list[str]) -> None:
    assert [str(version) for _, version in candidates(KubernetesVersion.parse(cluster))] == found


def pod(component: str, node: str, image: str) -> dict[str, Json]:
    return {
        "metadata": {"name": f"{component}-{node}", "labels": {"component": component, "tier": "control-plane"}},
        "spec": {"nodeName": node, "containers": [{"name": component, "image": image}]},
    }


def upgrades() -> tuple[AvailableUpgrade, ...]:
    context = upgraded_node()
    objects = context.objects
    assert isinstance(objects, MemoryObjects)
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        objects.objects["Pod", component] = pod(component, "node-1", f"registry.k8s.io/{component}:v1.36.4")
    objects.objects["Pod", "etcd"] = pod("etcd", "node-1", "registry.k8s.io/etcd:3.6.8-0")
    return available(context, objects, (("stable version", KubernetesVersion.parse("v1.37.1")),))


TEXT = """\
[upgrade/versions] Cluster version: 1.36.4

Components that must be upgraded manually after you have upgraded the control plane with 'garboard upgrade apply':
COMPONENT   NODE     CURRENT   TARGET
kubelet     node-1   v1.36.4   v1.37.1

Upgrade to the latest stable version:

COMPONENT                 NODE     CURRENT   TARGET
kube-apiserver            node-1   v1.36.4   v1.37.1
kube-controller-manager   node-1   v1.36.4   v1.37.1
kube-scheduler            node-1   v1.36.4   v1.37.1
kube-proxy                         v1.36.4   v1.37.1
CoreDNS                            v1.14.2   v1.14.6
etcd                      node-1   3.6.8-0   3.7.0-0

You can now apply the upgrade by executing the following command:

	garboard upgrade apply v1.37.1

_____________________________________________________________________

"""


def test_text_has_the_tables_of_kubeadm() -> None:
    report = UpgradeReport("v1.36.4", upgrades(), restarts=("etcd",))
    assert report.as_text().startswith(TEXT)
    assert "Nothing stops an upgrade to v1.37.1. On this node it restarts etcd;" in report.as_text()
    assert "kubelet.config.k8s.io     v1beta1           v1beta1             no\n" in report.as_text()


def test_what_stops_an_upgrade_is_told_with_its_hint() -> None:
    error = NotReady("2 live differences", hint="choose", error_class="unexplained-difference")
    report = UpgradeReport("v1.36.4", upgrades(), (Note("slow disk", is_warning=True), Note("kept")), (error,))
    text = report.as_text()
    assert "An upgrade to v1.37.1 would stop before anything is changed:\n" in text
    assert "  [unexplained-difference] 2 live differences\n  hint: choose\n" in text
    assert "  warning: slow disk\n" in text
    assert "kept" not in text
    assert report.as_json()["findings"] == [
        {"text": "2 live differences", "class": "unexplained-difference", "isError": True},
        {"text": "slow disk", "isError": False},
    ]


def test_json_is_the_document_of_kubeadm_with_findings_beside() -> None:
    document = json.loads(json.dumps(UpgradeReport("v1.36.4", upgrades()).as_json()))
    assert (document["kind"], document["apiVersion"]) == ("UpgradePlan", "output.kubeadm.k8s.io/v1alpha3")
    (upgrade,) = document["availableUpgrades"]
    assert upgrade["components"][0] == {
        "name": "kubelet",
        "currentVersion": "v1.36.4",
        "newVersion": "v1.37.1",
        "nodeName": "node-1",
    }
    assert document["configVersions"][0] == {
        "group": "kubeproxy.config.k8s.io",
        "currentVersion": "v1alpha1",
        "preferredVersion": "v1alpha1",
        "manualUpgradeRequired": False,
    }


def test_the_newest_cluster_has_nothing_to_go_to() -> None:
    report = UpgradeReport("v1.37.1", ())
    assert "There is nothing to upgrade to: v1.37.1 is the newest version known here.\n" in report.as_text()
    assert report.as_json()["availableUpgrades"] == []
