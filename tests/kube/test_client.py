"""Objects read and put through real TLS on loopback."""

import dataclasses
import socket
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import PutObject
from garboard.errors import ClusterUnreachable
from garboard.kube import Forbidden, KubeClient, ObjectConflict, ObjectInvalid, RequestRefused, read_access
from garboard.pki.kubeconfig import Kubeconfig
from tests.kube.api_server import FakeApi

MAPS = "/api/v1/namespaces/kube-system/configmaps"
SERVICES = "/api/v1/namespaces/kube-system/services"


def put(kind: str = "ConfigMap", *, keeps_other_data: bool = False, **more: Json) -> PutObject:
    content: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **more}
    return PutObject(
        api_version="v1",
        kind=kind,
        name="x",
        namespace="kube-system",
        content=content,
        keeps_other_data=keeps_other_data,
    )


def test_new_object_is_created_by_the_user_of_the_kubeconfig(api: FakeApi, client: KubeClient) -> None:
    client.put(put(data={"a": "1"}))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1"}
    assert api.asked == [("POST", MAPS)]
    assert api.users == ["client"]


def test_existing_object_is_replaced_without_being_read(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {"b": "2"}}
    client.put(put(data={"a": "1"}))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1"}
    assert api.asked == [("POST", MAPS), ("PUT", f"{MAPS}/x")]


def test_other_keys_are_kept_where_they_shall_be(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"metadata": {"name": "x", "resourceVersion": "7"}, "data": {"a": "0", "b": "2"}}
    api.refuse("PUT", f"{MAPS}/x", 409, "Conflict", "changed in between")
    client.put(put(data={"a": "1"}, keeps_other_data=True))
    assert api.objects[f"{MAPS}/x"]["data"] == {"a": "1", "b": "2"}
    assert api.objects[f"{MAPS}/x"]["metadata"]["resourceVersion"] == "7"


def test_a_conflict_that_does_not_end_is_told(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{MAPS}/x"] = {"data": {}}
    for _ in range(5):
        api.refuse("PUT", f"{MAPS}/x", 409, "Conflict", "changed in between")
    with pytest.raises(ObjectConflict, match="update ConfigMap kube-system/x: changed in between"):
        client.put(put(data={"a": "1"}, keeps_other_data=True))


def test_service_whose_address_is_its_own_is_updated(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{SERVICES}/x"] = {"spec": {}}
    api.refuse("POST", SERVICES, 422, "Invalid", "provided IP is already allocated")
    client.put(put("Service", spec={"clusterIP": "10.96.0.10"}))
    assert api.objects[f"{SERVICES}/x"]["spec"] == {"clusterIP": "10.96.0.10"}


@pytest.mark.parametrize("kind", ["Service", "ConfigMap"])
def test_what_is_invalid_is_told_in_the_words_of_the_server(api: FakeApi, client: KubeClient, kind: str) -> None:
    api.refuse("POST", SERVICES if kind == "Service" else MAPS, 422, "Invalid", "spec.x: Required value")
    with pytest.raises(ObjectInvalid, match=r"cannot create .* spec\.x: Required value"):
        client.put(put(kind))


def test_forbidden_hints_at_another_kubeconfig(api: FakeApi, client: KubeClient) -> None:
    api.refuse("POST", MAPS, 403, "Forbidden", "User cannot create")
    with pytest.raises(Forbidden) as caught:
        client.put(put())
    assert caught.value.error_class == "forbidden"
    assert "--kubeconfig" in (caught.value.hint or "")


def test_answer_that_is_no_status_is_told_by_its_code(api: FakeApi, client: KubeClient) -> None:
    api.refusals["GET", f"{MAPS}/x"] = [(503, b"<html>")]
    with pytest.raises(RequestRefused, match="HTTP status 503"):
        client.find("ConfigMap", "kube-system", "x")


def test_objects_are_found_by_name_and_label(api: FakeApi, client: KubeClient) -> None:
    assert client.find("ConfigMap", "kube-system", "x") is None
    api.objects["/apis/rbac.authorization.k8s.io/v1/clusterroles/kubeadm%3Ax"] = {"kind": "ClusterRole"}
    assert client.find("ClusterRole", "", "kubeadm:x") == {"kind": "ClusterRole"}
    api.objects["/apis/apps/v1/namespaces/kube-system/deployments/x"] = {"kind": "Deployment"}
    assert client.labelled("Deployment", "kube-system", "k8s-app=kube-dns") == ({"kind": "Deployment"},)


def test_server_of_another_authority_is_not_trusted(kubeconfig: Kubeconfig, api: FakeApi) -> None:
    system_only = dataclasses.replace(kubeconfig, ca=b"")
    access = read_access(system_only.to_bytes(), "admin.conf", lambda _path: None)
    with KubeClient(access) as client, pytest.raises(ClusterUnreachable, match="not trusted") as caught:
        client.put(put())
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
