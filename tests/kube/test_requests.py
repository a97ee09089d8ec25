"""Requests and answers as values."""

import pytest

from garboard.documents import Json
from garboard.kube import ApiRequest, ObjectConflict, ObjectMissing, ObjectRef, PatchFormat, RequestRefused, ServerBusy
from garboard.kube.requests import (
    create_object,
    delete_object,
    discover,
    list_objects,
    next_page,
    patch_object,
    replace_object,
)
from garboard.kube.resources import KnownResources, Resource

PODS = Resource("Pod", "v1", "pods")
REVIEWS = KnownResources().require("TokenReview")
POD = ObjectRef("Pod", "kube-system", "etcd-a")
PATH = "/api/v1/namespaces/kube-system/pods"


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        pytest.param(create_object(PODS, POD, {}), f"POST {PATH}?fieldManager=kubeadm", id="create"),
        pytest.param(
            create_object(PODS, POD, {}, subresource="eviction"),
            f"POST {PATH}/etcd-a/eviction?fieldManager=kubeadm",
            id="evict",
        ),
        pytest.param(
            create_object(REVIEWS, ObjectRef("TokenReview", "", ""), {}, manager="me"),
            "POST /apis/authentication.k8s.io/v1/tokenreviews?fieldManager=me",
            id="review",
        ),
        pytest.param(
            replace_object(PODS, POD, {}, manager="fleet", subresource="status"),
            f"PUT {PATH}/etcd-a/status?fieldManager=fleet",
            id="status",
        ),
        pytest.param(
            patch_object(PODS, POD, {}, PatchFormat.APPLY, manager="me", forces=True),
            f"PATCH {PATH}/etcd-a?fieldManager=me&force=true",
            id="server-side apply",
        ),
        pytest.param(delete_object(PODS, POD), f"DELETE {PATH}/etcd-a", id="delete"),
        pytest.param(list_objects(PODS, page_size=7), "GET /api/v1/pods?limit=7", id="list everywhere"),
        pytest.param(
            list_objects(PODS, "a b", labels="x=y", fields="spec.nodeName=n", page_size=7),
            "GET /api/v1/namespaces/a%20b/pods?labelSelector=x%3Dy&fieldSelector=spec.nodeName%3Dn&limit=7",
            id="list some",
        ),
        pytest.param(discover("v1"), "GET /api/v1", id="kinds of the core group"),
        pytest.param(discover("apps/v1"), "GET /apis/apps/v1", id="kinds of a group"),
    ],
)
def test_request_has_the_path_and_the_query_of_its_object(request_: ApiRequest, line: str) -> None:
    assert f"{request_.method} {request_.target}" == line


def test_review_is_no_object_that_could_be_looked_for() -> None:
    review = create_object(REVIEWS, ObjectRef("TokenReview", "", ""), {})
    assert (review.object_path, review.what) == ("", "create TokenReview")
    assert create_object(PODS, POD, {}).object_path == f"{PATH}/etcd-a"


def test_only_who_has_something_to_say_names_its_type() -> None:
    assert "Content-Type" not in discover("v1").headers("")
    applied = patch_object(PODS, POD, {"a": 1}, PatchFormat.APPLY)
    assert applied.headers("")["Content-Type"] == "application/apply-patch+yaml"
    assert applied.body == b'{"a": 1}'
    assert applied.headers("secret")["Authorization"] == "Bearer secret"


def test_version_that_has_to_be_there_is_a_precondition() -> None:
    assert delete_object(PODS, POD, resource_version="7").content == {"preconditions": {"resourceVersion": "7"}}
    assert delete_object(PODS, POD).body is None


def test_last_page_has_no_next_one() -> None:
    first = list_objects(PODS)
    more: dict[str, Json] = {"metadata": {"continue": "token"}, "items": []}
    second = next_page(first, more)
    assert second is not None
    assert second.query["continue"] == "token"
    assert next_page(second, {"metadata": {}, "items": []}) is None


@pytest.mark.parametrize(
    ("status", "data", "error"),
    [
        pytest.param(409, b'{"kind": "Status", "reason": "Conflict"}', ObjectConflict, id="by its reason"),
        pytest.param(404, b"404 page not found", ObjectMissing, id="by its code"),
        pytest.param(200, b"[]", RequestRefused, id="no object"),
        pytest.param(501, b"", RequestRefused, id="nothing"),
        pytest.param(500, b"", ServerBusy, id="nothing for now"),
    ],
)
def test_answer_that_is_a_failure_is_raised_with_what_was_tried(
    status: int, data: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error, match="cannot create Pod kube-system/etcd-a: ") as caught:
        create_object(PODS, POD, {}).read(status, data)
    assert type(caught.value) is error


def test_content_stays_out_of_the_repr() -> None:
    assert "secret" not in repr(create_object(PODS, POD, {"data": "secret"}))
