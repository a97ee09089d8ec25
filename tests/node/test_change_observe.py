"""A cluster is read with few requests and no write; what is missing to read it is named."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from garboard.change.reads import ADOPT_READS
from garboard.change.snapshot import ClusterSnapshot, read_snapshot
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.host.root import inside
from garboard.kube import Forbidden
from garboard.node import change_observe
from garboard.node.change_observe import ObservedCluster, observe_cluster, saved_text
from garboard.phases.static_pods import ORDER
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.change.api_objects import NODES, PODS, RANGES, SECRET, SERVICES, PagedApi, stored_objects
from tests.support.change.snapshots import f1, f2
from tests.support.kube.api_server import serving
from tests.support.pki.fixtures import INPUTS
from tests.support.pki.nodes import full_node
from tools.harness.certificates import Certificates


@pytest.fixture
def api(certificates: Certificates) -> Iterator[PagedApi]:
    with serving(PagedApi(), certificates) as running:
        assert isinstance(running, PagedApi)
        yield running


@pytest.fixture
def admin(kubeconfig: Kubeconfig, tmp_path: Path) -> str:
    (tmp_path / "admin.conf").write_bytes(kubeconfig.to_bytes())
    return str(tmp_path / "admin.conf")


def observed(api: PagedApi, admin: str, snapshot: ClusterSnapshot) -> ObservedCluster:
    api.objects |= stored_objects(snapshot)
    return observe_cluster(admin)


def test_cluster_is_read_with_twelve_requests_and_not_changed(api: PagedApi, admin: str) -> None:
    found = observed(api, admin, f2())
    assert [each.name for each in found.snapshot.nodes] == ["cp1", "cp2", "cp3", "w1", "w2", "w3"]
    assert found.here == ""
    assert {method for method, _ in api.asked} == {"GET"}
    assert len(api.asked) == 12


def test_static_pods_are_there_as_the_api_shows_them(api: PagedApi, admin: str) -> None:
    found = observed(api, admin, f1())
    assert list(found.mirrors) == ["cp1"]
    assert found.mirrors["cp1"]["etcd"]["metadata"]["name"] == "etcd-cp1"  # type: ignore[index, call-overload]


def test_many_nodes_and_pods_come_in_pages(api: PagedApi, admin: str) -> None:
    workers = tuple(f"w{number:03}" for number in range(700))
    found = observed(api, admin, f1(workers=workers, pods=dict.fromkeys(workers, 2)))
    assert len(found.snapshot.nodes) == 701
    assert {each.pods.count for each in found.snapshot.workers if each.pods} == {2}
    lists = (NODES, PODS, SERVICES, RANGES)
    assert [sum(path == each for _, path in api.asked) for each in lists] == [2, 5, 1, 1]


@pytest.mark.parametrize(
    ("path", "right"),
    [
        (NODES, "list nodes --all-namespaces"),
        (PODS, "list pods --all-namespaces"),
        (RANGES, "list servicecidrs.networking.k8s.io --all-namespaces"),
        ("/api/v1/namespaces/kube-system/configmaps/kubeadm-config", "get configmaps/kubeadm-config -n kube-system"),
        ("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy", "get daemonsets.apps/kube-proxy -n kube-system"),
    ],
)
def test_missing_right_is_named_and_how_to_get_it(api: PagedApi, admin: str, path: str, right: str) -> None:
    api.refuse("GET", path, 403, "Forbidden", 'User "eve" cannot do that')
    with pytest.raises(Forbidden) as refused:
        observed(api, admin, f1())
    assert refused.value.message.startswith(f"the right to {right} is missing: ")
    assert "garboard change rbac" in str(refused.value.hint)


def test_older_cluster_without_service_ranges_is_read(api: PagedApi, admin: str) -> None:
    api.objects = {path: content for path, content in stored_objects(f1()).items() if path != RANGES}
    assert observe_cluster(admin, ADOPT_READS).snapshot.service_ranges == []


def test_cluster_out_of_reach_is_an_error(kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    path = tmp_path / "admin.conf"
    path.write_bytes(replace(kubeconfig, server="https://127.0.0.1:1").to_bytes())
    with pytest.raises(ClusterUnreachable):
        observe_cluster(str(path))


def write_node(root: Path, name: str, kubeconfig: Kubeconfig) -> None:
    """Make a control-plane node below a folder, and an admin.conf of both its authority and that of the API server."""
    pki, conf = full_node()
    files = {f"/etc/kubernetes/pki/{path}": data for path, data in pki.files.items()}
    files |= {f"/etc/kubernetes/{path}": data for path, data in conf.files.items()}
    made = f1(is_seen=True).nodes[0]
    assert made.manifests is not None
    files |= {
        f"/etc/kubernetes/manifests/{component}.yaml": text.encode() for component, text in made.manifests.items()
    }
    files["/var/lib/kubelet/kubeadm-flags.env"] = b'KUBELET_KUBEADM_ARGS="--v=2"\n'
    files["/var/lib/kubelet/instance-config.yaml"] = b'containerRuntimeEndpoint: "unix:///run/other.sock"\n'
    files["/admin.conf"] = replace(kubeconfig, ca=kubeconfig.ca + files["/etc/kubernetes/pki/ca.crt"]).to_bytes()
    for path, data in files.items():
        place = root / path.removeprefix("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


@pytest.fixture
def own_node(api: PagedApi, kubeconfig: Kubeconfig, tmp_path: Path) -> Path:
    """The root of a machine that is a control-plane node of the cluster behind the API server."""
    name = INPUTS.node_name
    write_node(tmp_path, name, kubeconfig)
    api.objects |= stored_objects(f1(control_planes=(name,)))
    return tmp_path


def test_files_of_the_own_node_are_read(own_node: Path) -> None:
    with inside(str(own_node)):
        found = observe_cluster("/admin.conf", paths=("/etc/kubernetes/pki", "/etc/audit.yaml"))
    assert found.here == INPUTS.node_name
    node = found.snapshot.node(found.here)
    assert node is not None
    assert node.manifests is not None
    assert sorted(node.manifests) == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert node.kubelet_flags == 'KUBELET_KUBEADM_ARGS="--v=2"\n'
    assert node.settings.cri_socket == "unix:///run/other.sock"
    assert node.host_paths is not None
    assert (node.host_paths["/etc/kubernetes/pki"], node.host_paths["/etc/audit.yaml"]) == ("folder", "absent")
    assert node.kubeconfigs is not None
    assert node.kubeconfigs["/etc/kubernetes/admin.conf"].startswith("https://")
    facts = {each.path: each for each in node.certificates or ()}
    assert INPUTS.node_name in facts["apiserver.crt"].sans
    assert facts["/etc/kubernetes/scheduler.conf"].subject == "CN=system:kube-scheduler"
    assert facts["etcd/server.crt"].not_after.endswith("Z")


def test_etcd_that_does_not_answer_is_noted_and_not_taken_for_empty(own_node: Path) -> None:
    with inside(str(own_node)):
        found = observe_cluster("/admin.conf")
    assert found.snapshot.members is None
    assert [note.partition(":")[0] for note in found.notes] == ["the members of etcd are not known"]


def test_worker_has_no_etcd_to_ask(own_node: Path) -> None:
    for path in (own_node / "etc/kubernetes/manifests").iterdir():
        path.unlink()
    with inside(str(own_node)):
        found = observe_cluster("/admin.conf")
    assert (found.here, found.notes) == (INPUTS.node_name, ())


def test_node_of_another_cluster_is_not_looked_at(api: PagedApi, own_node: Path, admin: str) -> None:
    with inside(str(own_node)):
        found = observe_cluster(admin.removeprefix(str(own_node)))
    assert found.here == ""


def test_keys_are_in_no_file_that_is_saved(own_node: Path) -> None:
    with inside(str(own_node)):
        text = saved_text(observe_cluster("/admin.conf").snapshot)
    assert "PRIVATE KEY" not in text
    assert "client-key-data" not in text
    assert SECRET not in text
    assert read_snapshot(text.encode(), source="saved.json").node(INPUTS.node_name) is not None


def test_values_that_may_be_secrets_are_hidden_in_what_is_saved() -> None:
    password = "hunter2hunter2"
    envs = [{"name": "HTTPS_PROXY", "value": f"http://me:{password}@proxy"}]
    made = f1(cluster={"apiServer": {"extraEnvs": envs}}, kubelet={"staticPodURLHeader": {"Authorization": [password]}})
    assert password in json.dumps(msgspec.to_builtins(made))
    found = read_snapshot(saved_text(made).encode(), source="saved.json")
    assert password not in json.dumps(msgspec.to_builtins(found))
    assert found.config_maps["kube-proxy"] == made.config_maps["kube-proxy"], "what has no secret stays as it is"


def test_worker_is_read_with_the_kubeconfig_of_its_kubelet(
    own_node: Path, api: PagedApi, kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    # The fake API server takes certificates of its own authority alone, which name no node.
    monkeypatch.setattr(change_observe, "own_name", lambda *_: INPUTS.node_name)
    for path in ("admin.conf", *(f"manifests/{name}.yaml" for name in ORDER)):
        (own_node / "etc/kubernetes" / path).unlink()
    (own_node / "etc/kubernetes/kubelet.conf").write_bytes(kubeconfig.to_bytes())
    api.objects[f"{NODES}/{INPUTS.node_name}"] = api.objects[NODES]["items"][0]
    with inside(str(own_node)):
        found = observe_cluster()
    assert (found.here, found.is_whole) == (INPUTS.node_name, False)
    assert [each.name for each in found.snapshot.nodes] == [INPUTS.node_name]
    assert found.snapshot.nodes[0].kubelet_flags == 'KUBELET_KUBEADM_ARGS="--v=2"\n'
    assert [note.partition(":")[0] for note in found.notes] == ["anything but this node"]
    (own,) = found.snapshot.nodes
    assert own.pods is not None
    assert own.pods.count == 8, "it may have to be drained"
    assert f"fieldSelector=spec.nodeName%3D{INPUTS.node_name}" in api.queries[-1]
    assert len(api.asked) == 4


def test_nobody_is_asked_without_a_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with inside(str(tmp_path)), pytest.raises(GarboardError) as refused:
        observe_cluster()
    assert refused.value.error_class == "no-kubeconfig"
