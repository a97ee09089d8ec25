"""The client at a real API server: custom resources, subresources, patches, pages and preconditions."""

from collections.abc import Iterator
from typing import Any

import pytest

from garboard.kube import Access, KubeClient, ObjectConflict, ObjectMissing, ObjectRef, PatchFormat
from garboard.net.https import ProxiedHttps
from garboard.retry import Pauses, wait_until

pytestmark = pytest.mark.real
CRD = "apiextensions.k8s.io/v1"
API_VERSION = "fleet.example/v1"
WIDGET = ObjectRef("Widget", "default", "w", API_VERSION)


@pytest.fixture
def cluster(access: Access) -> Iterator[KubeClient]:
    with KubeClient(access) as opened:
        yield opened


@pytest.fixture
def widgets(cluster: KubeClient) -> Iterator[KubeClient]:
    """A cluster with a custom resource that has a status of its own."""
    ref = ObjectRef("CustomResourceDefinition", "", "widgets.fleet.example", CRD)
    fields = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": fields, "status": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": "fleet.example", "scope": "Namespaced", "names": names, "versions": [version]}
    cluster.create(ref, {"apiVersion": CRD, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": spec})  # type: ignore[dict-item]
    assert wait_until(lambda: is_served(cluster), timeout_s=30, pauses=Pauses.every(0.1)) is None
    yield cluster
    cluster.delete(ref)
    assert wait_until(lambda: is_gone(cluster, ref), timeout_s=30, pauses=Pauses.every(0.1)) is None


def is_served(cluster: KubeClient) -> str | None:
    try:
        cluster.list_objects("Widget", api_version=API_VERSION)
    except ObjectMissing as error:  # established a moment before it is served
        return error.message
    return None


def is_gone(cluster: KubeClient, ref: ObjectRef) -> str | None:
    return "it is there" if cluster.find(ref.kind, "", ref.name, api_version=CRD) else None


def widget(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, **fields}


def managers(found: Any) -> set[str]:
    return {each["manager"] for each in found["metadata"]["managedFields"]}


def test_custom_resource_is_found_by_discovery_and_its_status_is_patched_apart(widgets: KubeClient) -> None:
    made: Any = widgets.create(WIDGET, widget(spec={"size": 1}, status={"ready": True}), manager="fleet")
    assert "status" not in made, "only the subresource sets it"
    patched: Any = widgets.patch(WIDGET, {"status": {"ready": True}}, PatchFormat.MERGE, subresource="status")
    assert (patched["spec"], patched["status"]) == ({"size": 1}, {"ready": True})
    assert managers(patched) == {"fleet", "kubeadm"}
    patched = widgets.patch(WIDGET, [{"op": "replace", "path": "/spec/size", "value": 2}], PatchFormat.JSON)
    assert patched["spec"] == {"size": 2}
    assert [each["metadata"]["name"] for each in widgets.list_objects("Widget", api_version=API_VERSION)] == ["w"]  # type: ignore[index, call-overload]


def test_applied_field_belongs_to_its_manager_until_another_forces_it(widgets: KubeClient) -> None:
    widgets.patch(WIDGET, widget(spec={"size": 1}), PatchFormat.APPLY, manager="one")
    with pytest.raises(ObjectConflict, match="one"):
        widgets.patch(WIDGET, widget(spec={"size": 2}), PatchFormat.APPLY, manager="two")
    taken: Any = widgets.patch(WIDGET, widget(spec={"size": 2}), PatchFormat.APPLY, manager="two", forces=True)
    assert taken["spec"] == {"size": 2}


def test_object_that_was_changed_since_is_neither_replaced_nor_deleted(cluster: KubeClient) -> None:
    ref = ObjectRef("ConfigMap", "default", "changing")
    first: Any = cluster.create(ref, {"metadata": {"name": "changing"}, "data": {"a": "1"}})
    version = first["metadata"]["resourceVersion"]
    cluster.patch(ref, {"data": {"a": "2"}})
    with pytest.raises(ObjectConflict):
        cluster.replace(ref, {**first, "data": {"a": "3"}})
    with pytest.raises(ObjectConflict):
        cluster.delete(ref, resource_version=version)
    cluster.delete(ref)
    assert cluster.find("ConfigMap", "default", "changing") is None


def test_list_is_whole_however_small_its_pages_are(cluster: KubeClient) -> None:
    for number in range(7):
        name = f"page-{number}"
        metadata: Any = {"name": name, "labels": {"of": "pages"}}
        cluster.create(ObjectRef("ConfigMap", "default", name), {"metadata": metadata})
    found: Any = cluster.list_objects("ConfigMap", "default", labels="of=pages", page_size=3)
    assert [each["metadata"]["name"] for each in found] == [f"page-{number}" for number in range(7)]
    found = cluster.list_objects("ConfigMap", fields="metadata.name=page-3", page_size=1)
    assert [each["metadata"]["name"] for each in found] == ["page-3"]


def test_pod_is_evicted_through_its_subresource(cluster: KubeClient) -> None:
    account: Any = {"metadata": {"name": "default"}}
    cluster.create(ObjectRef("ServiceAccount", "default", "default"), account)
    ref = ObjectRef("Pod", "default", "p")
    spec: Any = {"containers": [{"name": "c", "image": "i"}]}
    cluster.create(ref, {"metadata": {"name": "p"}, "spec": spec})
    eviction: Any = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"}}
    cluster.create(ref, eviction, subresource="eviction")
    found: Any = cluster.find("Pod", "default", "p")
    assert found is None or found["metadata"]["deletionTimestamp"]


def test_connection_is_kept_between_requests(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    """Session tickets arrive unasked after the handshake, and must not look like the end of the connection."""
    opened: list[str] = []
    connect = ProxiedHttps.connect

    def counted(connection: ProxiedHttps) -> None:
        opened.append(connection.host)
        connect(connection)

    monkeypatch.setattr(ProxiedHttps, "connect", counted)
    with KubeClient(access) as client:
        for _ in range(20):
            client.find("ConfigMap", "kube-system", "x")
    assert len(opened) == 1
