"""The record of a change in a real API server: read, moved, reported on, and the configuration put back."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from garboard.errors import ClusterUnreachable
from garboard.kube import Access, KubeClient, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.change_cluster import ChangeCluster
from garboard.phases.revision import TARGET, ChangeTarget, NodeReport, Revision
from tests.support.kube.real_server import TOKEN, real_api_server

pytestmark = pytest.mark.real
BEFORE = {"kubeadm-config": "clusterName: a\n", "kubelet-config": "maxPods: 1\n"}
AFTER = {**BEFORE, "kubeadm-config": "clusterName: b\n"}
KEYS = {"kubeadm-config": "ClusterConfiguration", "kubelet-config": "kubelet"}
STATED = ChangeTarget(revision=3, digest="d", state="reverting", parent=2, nodes=["cp1"], confirm_within_seconds=60)


@pytest.fixture(scope="module")
def server(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path_factory.mktemp("server")) as access:
        yield access


@pytest.fixture
def kube(server: Access) -> Iterator[KubeClient]:
    with KubeClient(server) as client:
        yield client


@pytest.fixture
def cluster(server: Access, tmp_path: Path) -> ChangeCluster:
    path = tmp_path / "admin.conf"
    path.write_text(kubeconfig(server.server))
    return ChangeCluster(str(path))


def kubeconfig(server: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def config_map(name: str) -> ObjectRef:
    return ObjectRef("ConfigMap", "kube-system", name)


def put(kube: KubeClient, name: str, content: Any) -> None:
    kube.delete(config_map(name))
    kube.create(config_map(name), content)


def record(kube: KubeClient, **texts: str) -> None:
    """Store the target, both revisions, and the ConfigMaps as they are now, with a key that is somebody else's."""
    put(kube, TARGET, STATED.as_object().content)
    for number, documents in ((2, BEFORE), (3, AFTER)):
        made = Revision(number=number, created="now", kubernetes_version="v1.37.1", documents=documents)
        put(kube, made.name, made.as_object().content)
    for name, text in {**AFTER, **texts}.items():
        put(kube, name, {"metadata": {"name": name}, "data": {KEYS[name]: text, "theirs": "x"}})


def stored(kube: KubeClient, name: str) -> Any:
    return kube.require("ConfigMap", "kube-system", name)["data"]


def test_configuration_of_before_is_put_back_and_nothing_else(kube: KubeClient, cluster: ChangeCluster) -> None:
    record(kube)
    untouched = kube.require("ConfigMap", "kube-system", "kubelet-config")
    for _ in range(2):
        assert cluster.restore_documents(STATED) == ()
        assert stored(kube, "kubeadm-config") == {"ClusterConfiguration": "clusterName: a\n", "theirs": "x"}
    assert kube.require("ConfigMap", "kube-system", "kubelet-config") == untouched


def test_configuration_that_somebody_has_edited_stays(kube: KubeClient, cluster: ChangeCluster) -> None:
    record(kube, **{"kubeadm-config": "clusterName: mine\n"})
    assert cluster.restore_documents(STATED) == ("kubeadm-config",)
    assert stored(kube, "kubeadm-config")["ClusterConfiguration"] == "clusterName: mine\n"


def test_of_two_who_move_the_target_one_wins(kube: KubeClient, cluster: ChangeCluster) -> None:
    record(kube)
    first = cluster.target()
    second = cluster.target()
    assert first is not None
    assert second is not None
    assert (first.target, first.version) == (STATED, second.version)
    moved = ChangeTarget(revision=3, digest="d", state="reverted")
    assert cluster.replace(first, moved)
    assert not cluster.replace(second, STATED)
    found = cluster.target()
    assert found is not None
    assert found.target == moved
    kube.delete(config_map(TARGET))
    assert not cluster.replace(found, STATED)
    assert cluster.target() is None


def test_reports_are_those_about_this_very_target(kube: KubeClient, cluster: ChangeCluster) -> None:
    report = NodeReport(revision=3, digest="d", result="done", at="now")
    for name, text in (("cp1", str(report)), ("cp2", "2:d:done:now"), ("cp3", "nonsense")):
        kube.delete(ObjectRef("Node", "", name))
        kube.create(
            ObjectRef("Node", "", name), {"metadata": {"name": name, "annotations": {"garboard.dev/change": text}}}
        )
    assert cluster.reports(STATED) == {"cp1": report}
    assert cluster.control_planes_left(STATED) == (), "it is no control plane"
    label: Any = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    kube.patch(ObjectRef("Node", "", "cp1"), label)
    assert cluster.control_planes_left(STATED) == ("cp1",)
    kube.patch(ObjectRef("Node", "", "cp1"), {"metadata": {"annotations": {"garboard.dev/change": "3:d:reverted:now"}}})
    assert cluster.control_planes_left(STATED) == ()


def test_server_that_is_away_is_told_soon(tmp_path: Path) -> None:
    (tmp_path / "admin.conf").write_text(kubeconfig("https://127.0.0.1:1"))
    with pytest.raises(ClusterUnreachable):
        ChangeCluster(str(tmp_path / "admin.conf")).target()


UNITS = ["armed.json", "garboard-change-confirm.service", "garboard-change-confirm.timer"]


@pytest.mark.parametrize(
    ("scene", "status", "file", "state", "run", "cluster_name", "said"),
    [
        pytest.param("nobody", 13, "former", "reverted", "reverted", "a", "reverted", id="nobody confirms it"),
        pytest.param("confirm", 0, "new", "committed", "confirmed", "b", "confirmed", id="it is confirmed"),
        pytest.param("killed", 13, "former", "reverted", "reverted", "a", "reverted", id="its watcher is killed"),
        pytest.param("edit", 14, "mine", "reverted", "reverted", "a", "failed", id="a file is edited"),
    ],
)
def test_node_keeps_its_part_or_takes_it_back(
    kube: KubeClient, server: Access, tmp_path: Path, scene: str, status: int, file: str, state: str, run: str,
    cluster_name: str, said: str,
) -> None:  # fmt: skip
    """The commands themselves, on a machine whose folders are covered: armed, watched, disarmed, and told."""
    record(kube)
    node: Any = {"metadata": {"name": "cp1", "labels": {"node-role.kubernetes.io/control-plane": ""}}}
    kube.delete(ObjectRef("Node", "", "cp1"))
    kube.create(ObjectRef("Node", "", "cp1"), node)
    (tmp_path / "admin.conf").write_text(kubeconfig(server.server))
    words = ["unshare", "--mount", sys.executable, "-m", "tests.support.node.confirming_node", scene]
    ended = subprocess.run(
        [*words, tmp_path / "admin.conf"], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert (found["status"], found["file"], found["state"], found["runs"]) == (status, file, state, [run])
    assert (found["armed"], found["left"]) == (UNITS, [])
    assert "enable garboard-change-confirm.timer" in found["log"]
    assert "disable --now garboard-change-confirm.timer" in found["log"]
    assert stored(kube, "kubeadm-config")["ClusterConfiguration"] == f"clusterName: {cluster_name}\n"
    told: Any = kube.require("Node", "", "cp1")["metadata"]
    assert told["annotations"]["garboard.dev/change"].startswith(f"3:d:{said}:")
