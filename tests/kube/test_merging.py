"""What is completed from the cluster before it is written: lists that are united, owners that get their uid."""

import pytest

from garboard.documents import Json
from garboard.engine import PatchObject, PutObject
from garboard.kube import KubeClient, ObjectConflict, ObjectMissing
from tests.kube.api_server import FakeApi

NODE = "/api/v1/nodes/n1"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
OURS: Json = {"key": "ours", "effect": "NoSchedule"}
THEIRS: Json = {"key": "theirs", "effect": "NoExecute"}


def taint() -> PatchObject:
    content: Json = {"spec": {"taints": [OURS]}}
    return PatchObject(api_version="v1", kind="Node", name="n1", content=content, united=(("spec", "taints"),))


def node(*taints: Json) -> dict[str, Json]:
    return {"metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {"taints": [*taints]}}


@pytest.mark.parametrize("held", [(), (THEIRS,), (OURS,), (THEIRS, OURS)])
def test_united_list_has_what_is_asked_and_what_was_there(
    api: FakeApi, client: KubeClient, held: tuple[Json, ...]
) -> None:
    api.objects[NODE] = node(*held)
    client.patch(taint())
    spec = api.objects[NODE]["spec"]
    assert spec["taints"] == [OURS, *([THEIRS] if THEIRS in held else [])]


def test_a_change_in_between_is_looked_at_again(api: FakeApi, client: KubeClient) -> None:
    api.objects[NODE] = node(THEIRS)
    api.refuse("PATCH", NODE, 409, "Conflict", "changed in between")
    client.patch(taint())
    assert api.objects[NODE]["spec"]["taints"] == [OURS, THEIRS]


def test_a_conflict_that_does_not_end_is_told(api: FakeApi, client: KubeClient) -> None:
    api.objects[NODE] = node()
    for _ in range(5):
        api.refuse("PATCH", NODE, 409, "Conflict", "changed in between")
    with pytest.raises(ObjectConflict):
        client.patch(taint())


def owned() -> PutObject:
    reference: Json = {"kind": "Secret", "name": "token", "uid": ""}
    content: Json = {"metadata": {"name": "x", "ownerReferences": [reference]}}
    return PutObject(api_version="v1", kind="Secret", name="x", namespace="kube-system", content=content)


def test_owner_gives_its_uid(api: FakeApi, client: KubeClient) -> None:
    api.objects[f"{SECRETS}/token"] = {"metadata": {"name": "token", "uid": "abc"}}
    client.put(owned())
    assert api.objects[f"{SECRETS}/x"]["metadata"]["ownerReferences"][0]["uid"] == "abc"


def test_owner_that_is_not_there_is_refused(api: FakeApi, client: KubeClient) -> None:
    with pytest.raises(ObjectMissing, match="get Secret token"):
        client.put(owned())
