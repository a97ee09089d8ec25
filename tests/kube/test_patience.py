"""What the client repeats, when, and what it looks at before: on a clock that the test sets."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from garboard.documents import Json
from garboard.errors import ClusterUnreachable
from garboard.kube import (
    ApiRequest,
    ConnectionBroken,
    KubeClient,
    ObjectConflict,
    ObjectExists,
    ObjectRef,
    PatchFormat,
    RequestRefused,
    ServerBusy,
    read_access,
)
from garboard.kube.requests import read_retry_after
from garboard.pki.kubeconfig import Kubeconfig
from garboard.retry import Clock
from tests.support.kube.api_server import FakeApi

MAPS = "/api/v1/namespaces/kube-system/configmaps"
PATH = f"{MAPS}/x"
REF = ObjectRef("ConfigMap", "kube-system", "x")
CONTENT: dict[str, Any] = {"metadata": {"name": "x"}, "data": {"key": "value"}}
POST = ApiRequest(method="POST", path=MAPS, what="ask", content=CONTENT)
LEADER_CHANGED = "etcdserver: leader changed"


@dataclass
class Waiting:
    """A client, what it reported, and how long it waited each time; `meanwhile` happens during the first wait."""

    client: KubeClient
    pauses: list[float] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == 1:
            self.meanwhile()


@pytest.fixture(name="waiting")
def fixture_waiting(kubeconfig: Kubeconfig) -> Iterator[Waiting]:
    access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
    found: list[Waiting] = []
    clock = Clock(now_s=lambda: sum(found[0].pauses) if found else 0.0, sleep=lambda seconds: found[0].sleep(seconds))
    with KubeClient(access, report=lambda line: found[0].reported.append(line), clock=clock) as client:
        found.append(Waiting(client))
        yield found[0]


def refuse(api: FakeApi, method: str, path: str, *codes: int, message: str = "busy") -> None:
    for code in codes:
        api.refuse(method, path, code, "", message)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_read_outlasts_a_server_that_is_busy(api: FakeApi, waiting: Waiting, code: int) -> None:
    api.objects[PATH] = CONTENT
    refuse(api, "GET", PATH, code, code, code)
    assert waiting.client.find("ConfigMap", "kube-system", "x") == CONTENT
    assert waiting.pauses == [0.25, 0.5, 1.0]
    assert waiting.reported == ["trying again: cannot get ConfigMap x: busy"]


@pytest.mark.parametrize("code", [400, 403, 404, 409, 410, 422, 501])
def test_answer_that_will_not_change_is_not_asked_for_again(api: FakeApi, waiting: Waiting, code: int) -> None:
    refuse(api, "GET", PATH, code)
    with pytest.raises(RequestRefused):
        waiting.client.require("ConfigMap", "kube-system", "x")
    assert waiting.pauses == []


def test_change_of_leader_is_waited_out_whatever_the_status(api: FakeApi, waiting: Waiting) -> None:
    api.refuse("GET", PATH, 400, "BadRequest", LEADER_CHANGED)
    assert waiting.client.find("ConfigMap", "kube-system", "x") is None
    assert waiting.pauses == [0.25]


def test_server_says_when_to_come_back(api: FakeApi, waiting: Waiting) -> None:
    api.retry_after = "7"
    refuse(api, "POST", MAPS, 429)
    waiting.client.create(REF, CONTENT)
    assert waiting.pauses == [7.0]


def test_seconds_in_the_status_count_where_there_is_no_header(api: FakeApi, waiting: Waiting) -> None:
    status = {"kind": "Status", "reason": "ServerTimeout", "message": "m", "details": {"retryAfterSeconds": 3}}
    api.refusals["GET", PATH] = [(500, json.dumps(status).encode())]
    waiting.client.find("ConfigMap", "kube-system", "x")
    assert waiting.pauses == [3.0]


def test_server_that_wants_more_time_than_there_is_is_given_up_at_once(api: FakeApi, waiting: Waiting) -> None:
    api.retry_after = "3600"
    refuse(api, "GET", PATH, 503)
    with pytest.raises(ServerBusy):
        waiting.client.find("ConfigMap", "kube-system", "x")
    assert waiting.pauses == []


def test_server_that_stays_busy_is_given_up_in_time(api: FakeApi, waiting: Waiting) -> None:
    refuse(api, "GET", PATH, *[503] * 100)
    with pytest.raises(ClusterUnreachable, match="cannot get ConfigMap x: busy") as caught:
        waiting.client.find("ConfigMap", "kube-system", "x")
    assert (caught.value.exit_code, caught.value.error_class) == (5, "api-failed")
    assert 50 < sum(waiting.pauses) <= 60
    assert max(waiting.pauses) == 5.0


def test_budget_that_an_eviction_would_exceed_is_an_answer(api: FakeApi, waiting: Waiting) -> None:
    details = {"causes": [{"reason": "DisruptionBudget"}]}
    status = {"kind": "Status", "reason": "TooManyRequests", "message": "m", "details": details}
    path = "/api/v1/namespaces/here/pods/p/eviction"
    api.refusals["POST", path] = [(429, json.dumps(status).encode())]
    with pytest.raises(RequestRefused):
        waiting.client.create(ObjectRef("Pod", "here", "p"), {}, subresource="eviction")
    assert waiting.pauses == []


@pytest.mark.parametrize(
    ("method", "change"),
    [
        pytest.param("PUT", lambda client: client.replace(REF, CONTENT), id="replace"),
        pytest.param("PATCH", lambda client: client.patch(REF, {"data": {"key": "value"}}), id="patch"),
        pytest.param("GET", lambda client: client.find("ConfigMap", "kube-system", "x"), id="read"),
    ],
)
@pytest.mark.parametrize("fault", ["unheard", "unanswered"])
def test_what_is_the_same_twice_is_simply_repeated(
    api: FakeApi, waiting: Waiting, method: str, change: Callable[[KubeClient], object], fault: Any
) -> None:
    api.objects[PATH] = CONTENT
    api.fail(method, PATH, fault)
    change(waiting.client)
    assert api.objects[PATH] == CONTENT
    assert {each for each, _ in api.asked} == {method}
    assert waiting.pauses == [0.25]


def test_object_whose_creation_was_not_heard_is_created(api: FakeApi, waiting: Waiting) -> None:
    api.fail("POST", MAPS, "unheard", "unheard")
    assert waiting.client.create(REF, CONTENT) == CONTENT
    assert api.asked == [("GET", PATH), ("GET", PATH), ("POST", MAPS)]


def test_object_whose_creation_was_not_answered_is_found_and_not_created_twice(api: FakeApi, waiting: Waiting) -> None:
    api.fail("POST", MAPS, "unanswered")
    assert waiting.client.create(REF, CONTENT) == CONTENT
    assert api.asked == [("POST", MAPS), ("GET", PATH)]


def test_object_whose_creation_takes_too_long_is_found(api: FakeApi, kubeconfig: Kubeconfig) -> None:
    access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
    api.fail("POST", MAPS, "silent")
    with KubeClient(access, timeout_s=0.5) as client:
        assert client.create(REF, CONTENT) == CONTENT
    assert api.asked == [("POST", MAPS), ("GET", PATH)]


@pytest.mark.parametrize("code", [500, 504])
def test_creation_that_timed_out_in_the_server_is_looked_at_first(api: FakeApi, waiting: Waiting, code: int) -> None:
    refuse(api, "POST", MAPS, code, message="etcdserver: request timed out")
    waiting.meanwhile = lambda: api.objects.update({PATH: {**CONTENT, "kind": "ConfigMap"}})  # it came through
    assert waiting.client.create(REF, CONTENT)["kind"] == "ConfigMap"
    assert api.asked == [("POST", MAPS), ("GET", PATH)]


def test_object_that_somebody_else_created_meanwhile_is_theirs(api: FakeApi, waiting: Waiting) -> None:
    refuse(api, "POST", MAPS, 503)
    waiting.meanwhile = lambda: api.objects.update({PATH: {**CONTENT, "data": {"key": "theirs"}}})
    with pytest.raises(ObjectExists):
        waiting.client.create(REF, CONTENT)
    assert api.objects[PATH]["data"] == {"key": "theirs"}


def test_creation_that_comes_through_after_the_look_is_still_ours(api: FakeApi, waiting: Waiting) -> None:
    refuse(api, "POST", MAPS, 500)
    api.refusals["GET", PATH] = [(404, b'{"kind": "Status", "reason": "NotFound"}')]
    waiting.meanwhile = lambda: api.objects.update({PATH: CONTENT})
    assert waiting.client.create(REF, CONTENT) == CONTENT
    assert api.asked == [("POST", MAPS), ("GET", PATH), ("POST", MAPS), ("GET", PATH)]


def test_too_many_requests_prove_that_nothing_was_done(api: FakeApi, waiting: Waiting) -> None:
    refuse(api, "POST", MAPS, 429)
    waiting.client.create(REF, CONTENT)
    assert api.asked == [("POST", MAPS), ("POST", MAPS)]


def test_change_of_a_version_that_was_made_is_no_conflict(api: FakeApi, waiting: Waiting) -> None:
    versioned: Json = {"metadata": {"name": "x", "resourceVersion": "7"}, "data": {"key": "value"}}
    api.fail("PUT", PATH, "unanswered")
    waiting.meanwhile = lambda: api.objects[PATH]["metadata"].update(resourceVersion="8")
    assert waiting.client.replace(REF, versioned)["metadata"] == {"name": "x", "resourceVersion": "8"}
    assert api.asked == [("PUT", PATH), ("GET", PATH)]


def test_notes_of_the_server_do_not_hide_that_a_change_was_made(api: FakeApi, waiting: Waiting) -> None:
    """A client that changes what it has read sends the notes of the server back, which then writes others."""
    noted: Json = {"name": "x", "resourceVersion": "7", "generation": 1, "managedFields": [{"time": "1"}]}
    api.fail("PUT", PATH, "unanswered")
    waiting.meanwhile = lambda: api.objects[PATH]["metadata"].update(
        resourceVersion="8", generation=2, managedFields=[{"time": "2"}]
    )
    waiting.client.replace(REF, {"metadata": noted, "data": {"key": "value"}})
    assert api.asked == [("PUT", PATH), ("GET", PATH)]


def test_change_of_a_version_that_another_client_changed_is_a_conflict(api: FakeApi, waiting: Waiting) -> None:
    versioned: Json = {"metadata": {"name": "x", "resourceVersion": "7"}, "data": {"key": "value"}}
    api.objects[PATH] = {"metadata": {"name": "x", "resourceVersion": "8"}, "data": {"key": "theirs"}}
    refuse(api, "PUT", PATH, 503)
    api.refuse("PUT", PATH, 409, "Conflict", "changed")
    with pytest.raises(ObjectConflict):
        waiting.client.replace(REF, versioned)


@pytest.mark.parametrize("fault", ["unheard", "unanswered"])
def test_deletion_whose_answer_was_lost_happens_once(api: FakeApi, waiting: Waiting, fault: Any) -> None:
    api.objects[PATH] = CONTENT
    api.fail("DELETE", PATH, fault)
    waiting.client.delete(REF, resource_version="7")
    assert api.objects == {}
    assert [method for method, _ in api.asked].count("DELETE") == 1


def test_object_that_is_being_deleted_is_not_deleted_again(api: FakeApi, waiting: Waiting) -> None:
    api.objects[PATH] = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    api.fail("DELETE", PATH, "unheard")
    waiting.client.delete(REF)
    assert api.asked == [("GET", PATH)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda client: client.send(POST), id="post of unknown meaning"),
        pytest.param(lambda client: client.create(REF, CONTENT, subresource="eviction"), id="subresource"),
        pytest.param(lambda client: client.patch(REF, [], PatchFormat.JSON), id="JSON patch"),
    ],
)
def test_change_that_cannot_be_looked_at_is_not_repeated(
    api: FakeApi, waiting: Waiting, change: Callable[[KubeClient], object]
) -> None:
    for method, path in (("POST", MAPS), ("POST", f"{PATH}/eviction"), ("PATCH", PATH)):
        api.fail(method, path, "unheard")
    api.objects[PATH] = CONTENT
    with pytest.raises(ConnectionBroken):
        change(waiting.client)
    assert (waiting.pauses, api.asked) == ([], [])


def test_connection_that_was_ended_while_idle_is_opened_again_without_a_word(api: FakeApi, waiting: Waiting) -> None:
    """Found before anything is sent: even what must not be sent twice is sent."""
    api.objects[PATH] = CONTENT
    waiting.client.find("ConfigMap", "kube-system", "x")
    api.hang_up()
    waiting.client.send(replace(POST, content={"metadata": {"name": "y"}}))
    assert f"{MAPS}/y" in api.objects
    assert (waiting.pauses, waiting.reported) == ([], [])


def test_connection_is_kept_between_requests(api: FakeApi, waiting: Waiting) -> None:
    for _ in range(5):
        waiting.client.find("ConfigMap", "kube-system", "x")
    assert len(api.connections) == 1


def test_idle_connection_that_ends_under_a_request_costs_no_patience(api: FakeApi, kubeconfig: Kubeconfig) -> None:
    access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
    with KubeClient(access, patience_s=0.0) as client:
        client.find("ConfigMap", "kube-system", "x")
        api.fail("GET", "/livez", "unheard")
        assert client.get_text("/livez")[0] == 404
        api.fail("POST", MAPS, "unanswered")
        assert client.create(REF, CONTENT) == CONTENT
        api.fail("GET", PATH, "unheard", "unheard")
        with pytest.raises(ConnectionBroken):
            client.find("ConfigMap", "kube-system", "x")


def test_health_is_told_as_it_is(api: FakeApi, waiting: Waiting) -> None:
    refuse(api, "GET", "/livez", 500)
    assert waiting.client.get_text("/livez")[0] == 500
    assert waiting.pauses == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("5", 5.0, id="seconds"),
        pytest.param("Mon, 16 Nov 2026 12:00:09 GMT", 9.0, id="a moment"),
        pytest.param("Mon, 16 Nov 2026 11:00:00 GMT", 0.0, id="a moment that has passed"),
        pytest.param("soon", None, id="nonsense"),
        pytest.param(None, None, id="no header"),
    ],
)
def test_retry_after_is_read(text: str | None, seconds: float | None) -> None:
    assert read_retry_after(text, datetime(2026, 11, 16, 12, tzinfo=UTC)) == seconds
