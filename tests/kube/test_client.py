"""Objects read, listed and written through real TLS on loopback."""

import dataclasses
import json
import socket

import pytest

from garboard.errors import ClusterUnreachable
from garboard.kube import (
    KubeClient,
    ObjectConflict,
    ObjectExists,
    ObjectMissing,
    ObjectRef,
    PatchFormat,
    RequestRefused,
    read_access,
)
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.api_server import FakeApi

MAPS = "/api/v1/namespaces/kube-system/configmaps"
REF = ObjectRef("ConfigMap", "kube-system", "x")
WIDGETS = "/apis/fleet.example/v1/namespaces/here/widgets"
WIDGET = ObjectRef("Widget", "here", "w", "fleet.example/v1")
KINDS = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "widgets", "kind": "Widget", "namespaced": True},
        {"name": "widgets/status", "kind": "Widget", "namespaced": True},
        {"name": "fleets", "kind": "Fleet", "namespaced": False},
    ],
}


def test_answer_that_is_no_status_is_told_by_its_code(api: FakeApi, kubeconfig: Kubeconfig) -> None:
    api.refusals["GET", f"{MAPS}/x"] = [(503, b"<html>")]
    access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
    with KubeClient(access, patience_s=0.0) as client, pytest.raises(RequestRefused, match="HTTP status 503"):
        client.find("ConfigMap", "kube-system", "x")


def test_objects_are_found_by_name_and_label(api: FakeApi, client: KubeClient) -> None:
    assert client.find("ConfigMap", "kube-system", "x") is None
    api.objects["/apis/rbac.authorization.k8s.io/v1/clusterroles/kubeadm%3Ax"] = {"kind": "ClusterRole"}
    assert client.find("ClusterRole", "", "kubeadm:x") == {"kind": "ClusterRole"}
    api.objects["/apis/apps/v1/namespaces/kube-system/deployments/x"] = {"kind": "Deployment"}
    assert client.labelled("Deployment", "kube-system", "k8s-app=kube-dns") == ({"kind": "Deployment"},)


def test_object_that_exists_is_not_created_again(api: FakeApi, client: KubeClient) -> None:
    client.create(REF, {"metadata": {"name": "x"}})
    with pytest.raises(ObjectExists, match="cannot create ConfigMap kube-system/x: it already exists"):
        client.create(REF, {"metadata": {"name": "x"}})
    assert api.queries == ["fieldManager=kubeadm", "fieldManager=kubeadm"]


def test_custom_resource_lives_where_discovery_says(api: FakeApi, client: KubeClient) -> None:
    api.objects["/apis/fleet.example/v1"] = KINDS
    client.create(WIDGET, {"metadata": {"name": "w"}}, manager="fleet")
    assert f"{WIDGETS}/w" in api.objects
    assert client.find("Widget", "here", "w", api_version="fleet.example/v1") == {"metadata": {"name": "w"}}
    assert client.find("Fleet", "", "f", api_version="fleet.example/v1") is None
    assert [path for _, path in api.asked] == [
        "/apis/fleet.example/v1", WIDGETS, f"{WIDGETS}/w", "/apis/fleet.example/v1/fleets/f"
    ]  # fmt: skip
    assert api.queries[1] == "fieldManager=fleet"


def test_kind_that_is_installed_later_is_found_then(api: FakeApi, client: KubeClient) -> None:
    assert client.find("Widget", "here", "w", api_version="fleet.example/v1") is None
    api.objects["/apis/fleet.example/v1"] = {"resources": []}
    with pytest.raises(ObjectMissing, match=r"no kind Widget in fleet\.example/v1"):
        client.require("Widget", "here", "w", api_version="fleet.example/v1")
    api.objects["/apis/fleet.example/v1"] = KINDS
    assert client.create(WIDGET, {"metadata": {"name": "w"}})


def test_kind_of_the_same_name_in_another_group_is_another_kind(api: FakeApi, client: KubeClient) -> None:
    api.objects["/apis/serving.example/v1"] = {
        "resources": [{"name": "services", "kind": "Service", "namespaced": True}]
    }
    client.create(ObjectRef("Service", "here", "s", "serving.example/v1"), {"metadata": {"name": "s"}})
    assert "/apis/serving.example/v1/namespaces/here/services/s" in api.objects


def test_status_is_patched_on_its_own(api: FakeApi, client: KubeClient) -> None:
    api.objects["/apis/fleet.example/v1"] = KINDS
    api.objects[f"{WIDGETS}/w/status"] = {"status": {}}
    client.patch(WIDGET, {"status": {"ready": True}}, PatchFormat.MERGE, subresource="status")
    assert api.objects[f"{WIDGETS}/w/status"] == {"status": {"ready": True}}
    assert api.content_types[-1] == "application/merge-patch+json"


def test_pages_are_joined(api: FakeApi, client: KubeClient) -> None:
    pages = [page("a", "b", more="token"), page("c")]
    api.refusals["GET", MAPS] = [(200, each) for each in pages]
    found = client.list_objects("ConfigMap", "kube-system", labels="a=b", page_size=2)
    assert [each["name"] for each in found] == ["a", "b", "c"]
    assert api.queries == ["labelSelector=a%3Db&limit=2", "labelSelector=a%3Db&limit=2&continue=token"]


def test_list_whose_pages_are_forgotten_is_read_as_a_whole(api: FakeApi, client: KubeClient) -> None:
    gone = b'{"kind": "Status", "reason": "Expired", "message": "too old"}'
    api.refusals["GET", MAPS] = [(200, page("a", more="token")), (410, gone), (200, page("a", "b"))]
    assert [each["name"] for each in client.selected("ConfigMap", "kube-system", "x=y")] == ["a", "b"]
    assert api.queries[-1] == "fieldSelector=x%3Dy"


def page(*names: str, more: str = "") -> bytes:
    return json.dumps({"metadata": {"continue": more}, "items": [{"name": name} for name in names]}).encode()


def test_only_the_version_that_is_known_is_deleted(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"metadata": {"resourceVersion": "8"}}
    api.refuse("DELETE", f"{MAPS}/x", 409, "Conflict", "the version is another")
    with pytest.raises(ObjectConflict, match="cannot delete ConfigMap kube-system/x"):
        client.delete(REF, resource_version="7")
    client.delete(REF)
    client.delete(REF)
    assert api.objects == {}


def test_server_of_another_authority_is_not_trusted(kubeconfig: Kubeconfig, api: FakeApi) -> None:
    system_only = dataclasses.replace(kubeconfig, ca=b"")
    access = read_access(system_only.to_bytes(), "admin.conf", lambda _path: None)
    with KubeClient(access) as client, pytest.raises(ClusterUnreachable, match="not trusted") as caught:
        client.create(REF, {"metadata": {"name": "x"}})
    assert caught.value.exit_code == 5
    assert api.asked == []


def test_server_that_is_not_there_is_unreachable_with_a_hint(kubeconfig: Kubeconfig) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        server = f"https://127.0.0.1:{held.getsockname()[1]}"
        access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None, server=server)
        with KubeClient(access) as client, pytest.raises(ClusterUnreachable, match="refused the connection") as caught:
            client.find("ConfigMap", "kube-system", "x")
    assert caught.value.hint


def test_server_that_says_nothing_is_given_up(kubeconfig: Kubeconfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None, server=server)
        with (
            KubeClient(access, timeout_s=0.2) as client,
            pytest.raises(ClusterUnreachable, match="did not answer in time"),
        ):
            client.find("ConfigMap", "kube-system", "x")
