"""Waiting for a Lease, holding it and losing it, on a clock that the test sets."""

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from garboard.errors import ClusterUnreachable
from garboard.kube import (
    Access,
    ClusterLeases,
    KubeClient,
    LeaseClaim,
    LeaseFailed,
    LeaseLost,
    LeasePayload,
    read_access,
)
from garboard.kube.lease_holding import FRESH_S
from garboard.pki.kubeconfig import Kubeconfig
from garboard.retry import Clock
from tests.support.kube.api_server import FakeApi

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/garboard-control-plane"
CLAIM = LeaseClaim(
    name="garboard-control-plane",
    namespace="kube-system",
    holder="cp-2",
    payload=LeasePayload("etcd-member", "https://cp-2:2380"),
)
HELD: dict[str, Any] = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": "garboard-control-plane",
        "namespace": "kube-system",
        "resourceVersion": "7",
        "annotations": {"garboard.dev/lease-payloads": "etcd-member:https://cp-1:2380"},
    },
    "spec": {"holderIdentity": "cp-1", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
}


class Waiting:
    """The Leases of the fake API server, and what happens whenever somebody waits for one."""

    def __init__(self, access: Access) -> None:
        self.elapsed_s = 0.0
        self.reported: list[str] = []
        self.meanwhile: Callable[[float], None] = lambda _elapsed_s: None
        self.is_away = False
        self._access = access
        clock = Clock(now_s=lambda: self.elapsed_s, sleep=self._sleep)
        self.leases = ClusterLeases(self._connect, self.reported.append, clock)

    def _connect(self) -> KubeClient:
        if self.is_away:
            raise ClusterUnreachable("away")
        return KubeClient(self._access, patience_s=0.0)

    def _sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds
        self.meanwhile(self.elapsed_s)


@pytest.fixture
def access(kubeconfig: Kubeconfig) -> Access:
    return read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)


@pytest.fixture
def waiting(access: Access) -> Waiting:
    return Waiting(access)


def test_free_lease_is_written_as_clusters_in_the_field_hold_it(api: FakeApi, waiting: Waiting) -> None:
    with waiting.leases:
        assert waiting.leases.acquire(CLAIM, timeout_s=5) == 0
        found = dict(api.objects[PATH])
        renewed = found["spec"].pop("renewTime")
        waiting.leases.release(CLAIM)
        assert api.objects == {}
    assert renewed.endswith("Z")
    assert found == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "garboard-control-plane",
            "namespace": "kube-system",
            "annotations": {"garboard.dev/lease-payloads": "etcd-member:https://cp-2:2380"},
        },
        "spec": {"holderIdentity": "cp-2", "leaseDurationSeconds": 15, "leaseTransitions": 0},
    }
    assert waiting.reported == []


def test_waiting_ends_in_time_with_the_holder_named(api: FakeApi, waiting: Waiting) -> None:
    def renew(elapsed_s: float) -> None:
        api.objects[PATH] = {**HELD, "spec": {**HELD["spec"], "renewTime": str(elapsed_s)}}

    renew(0.0)
    waiting.meanwhile = renew
    with pytest.raises(
        LeaseFailed, match=r"kube-system/garboard-control-plane did not .* within 70 s.* held by cp-1"
    ) as caught:
        waiting.leases.acquire(CLAIM, timeout_s=70)
    assert caught.value.error_class == "lease"
    assert waiting.elapsed_s == 70
    line = "waiting: cp-1 holds Lease kube-system/garboard-control-plane"
    assert waiting.reported == [f"[lease] {line}", f"[lease] still {line}", f"[lease] still {line}"]


def test_lease_of_a_holder_that_died_is_taken_over_with_what_it_left(api: FakeApi, waiting: Waiting) -> None:
    api.objects[PATH] = HELD
    with waiting.leases:
        assert waiting.leases.acquire(CLAIM, timeout_s=60) == 1
        assert waiting.leases.left_behind("etcd-member") == ("https://cp-1:2380",)
        metadata = api.objects[PATH]["metadata"]
        assert metadata["annotations"] == {
            "garboard.dev/lease-payloads": "etcd-member:https://cp-1:2380,etcd-member:https://cp-2:2380"
        }
        assert metadata["resourceVersion"] == "7"
    assert 15 < waiting.elapsed_s < 17
    assert waiting.reported[-1] == "[lease] cp-1 has not renewed it for 15 s: it is free"


def test_holder_forgets_its_own_kind_alone(api: FakeApi, waiting: Waiting) -> None:
    both = "etcd-member:https://cp-1:2380,coordinator:cp-1/20261118T1000"
    api.objects[PATH] = {**HELD, "metadata": {**HELD["metadata"], "annotations": {"garboard.dev/lease-payloads": both}}}
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=60)
        assert waiting.leases.left_behind("coordinator") == ("cp-1/20261118T1000",)
        waiting.leases.forget_left_behind("etcd-member")
        assert waiting.leases.left_behind("etcd-member") == ()
        waiting.leases.release(CLAIM)
    lease = api.objects[PATH]
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["metadata"]["annotations"] == {"garboard.dev/lease-payloads": "coordinator:cp-1/20261118T1000"}


def test_process_that_did_not_acquire_the_lease_forgets_nothing(api: FakeApi, waiting: Waiting) -> None:
    api.objects[PATH] = HELD
    waiting.leases.release(dataclasses.replace(CLAIM, holder="cp-1"))
    lease = api.objects[PATH]
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["metadata"]["annotations"] == HELD["metadata"]["annotations"]


FORMER = PATH.replace("garboard-control-plane", "garboard-etcd-join")
RENAMED = dataclasses.replace(CLAIM, former_name="garboard-etcd-join")


def former(holder: str, renewed: str = "2026-01-01T00:00:00.000000Z") -> dict[str, Any]:
    annotations = {"garboard.dev/etcd-peer-urls": "https://cp-1:2380"}
    metadata = {"name": "garboard-etcd-join", "namespace": "kube-system", "resourceVersion": "3"}
    spec = {**HELD["spec"], "holderIdentity": holder, "renewTime": renewed}
    return {**HELD, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def test_join_of_an_earlier_release_is_waited_for(api: FakeApi, waiting: Waiting) -> None:
    def renew(elapsed_s: float) -> None:
        if elapsed_s < 40:
            api.objects[FORMER] = former("cp-1", str(elapsed_s))
        else:
            api.objects.pop(FORMER, None)

    renew(0.0)
    waiting.meanwhile = renew
    with waiting.leases:
        waiting.leases.acquire(RENAMED, timeout_s=60)
        assert waiting.elapsed_s == 40


@pytest.mark.parametrize("holder", ["", "cp-1", "cp-2"], ids=["given up", "dead", "our own"])
def test_what_an_earlier_release_left_is_taken_along(api: FakeApi, waiting: Waiting, holder: str) -> None:
    api.objects[FORMER] = former(holder)
    with waiting.leases:
        waiting.leases.acquire(RENAMED, timeout_s=60)
        assert waiting.leases.left_behind("etcd-member") == ("https://cp-1:2380",)
        assert FORMER not in api.objects
        payloads = api.objects[PATH]["metadata"]["annotations"]["garboard.dev/lease-payloads"]
        assert payloads == "etcd-member:https://cp-1:2380,etcd-member:https://cp-2:2380"
    assert (waiting.elapsed_s > 15) == (holder == "cp-1")


def test_api_server_that_stays_away_is_the_reason(kubeconfig: Kubeconfig) -> None:
    access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None, server="https://127.0.0.1:9")
    waiting = Waiting(access)
    with pytest.raises(ClusterUnreachable):
        waiting.leases.acquire(CLAIM, timeout_s=3)
    assert len(waiting.reported) == 1
    assert waiting.reported[0].startswith("[lease] trying again: ")


def test_holder_that_asked_for_longer_is_waited_for_as_long(api: FakeApi, waiting: Waiting) -> None:
    api.objects[PATH] = {**HELD, "spec": {**HELD["spec"], "leaseDurationSeconds": 600}}
    with pytest.raises(LeaseFailed):
        waiting.leases.acquire(CLAIM, timeout_s=500)
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=700)
    assert 1100 < waiting.elapsed_s < 1102


def given_to(api: FakeApi, holder: str, transitions: int) -> None:
    found = api.objects[PATH]
    spec = {**found["spec"], "holderIdentity": holder, "leaseTransitions": transitions}
    api.objects[PATH] = {**found, "spec": spec}


@pytest.mark.parametrize(
    ("holder", "transitions", "told"),
    [
        pytest.param("cp-3", 1, r"held by cp-3 \(token 1, ours was 0\)", id="another"),
        pytest.param("cp-2", 2, r"held by cp-2 \(token 2, ours was 0\)", id="the same one again, after another"),
        pytest.param("", 1, "held by nobody", id="another one that gave it up"),
    ],
)
def test_lease_is_lost_once_another_holder_was_seen(
    api: FakeApi, waiting: Waiting, holder: str, transitions: int, told: str
) -> None:
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        waiting.leases.confirm()
        given_to(api, holder, transitions)
        after = dict(api.objects[PATH])
        waiting.elapsed_s += 3
        with pytest.raises(LeaseLost, match=told):
            waiting.leases.confirm()
        with pytest.raises(LeaseLost, match=told):
            waiting.leases.check()
    assert api.objects[PATH] == after


def test_lease_that_somebody_deleted_is_lost(api: FakeApi, waiting: Waiting) -> None:
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        del api.objects[PATH]
        with pytest.raises(LeaseLost, match="it was deleted"):
            waiting.leases.confirm()
    assert api.objects == {}


def test_api_server_that_is_away_does_not_lose_the_lease(api: FakeApi, waiting: Waiting) -> None:
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        waiting.is_away = True
        with pytest.raises(ClusterUnreachable):
            waiting.leases.confirm()
        assert waiting.elapsed_s >= 60
        waiting.leases.check()
        waiting.is_away = False
        waiting.leases.confirm()


def test_renewals_in_vain_lose_no_lease_and_go_on_once_the_api_server_is_back(
    api: FakeApi, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.kube.lease_holding.RENEWALS", 15_000)
    is_away, is_back, attempts = threading.Event(), threading.Event(), threading.Semaphore(0)

    def connect() -> KubeClient:
        if is_away.is_set() and not is_back.is_set():
            attempts.release()
            raise ClusterUnreachable("away")
        return KubeClient(access, patience_s=0.0)

    def renewed() -> str:
        return str(api.objects[PATH]["spec"]["renewTime"])

    with ClusterLeases(connect, lambda _line: None) as leases:
        leases.acquire(CLAIM, timeout_s=5)
        is_away.set()
        for _ in range(3):
            assert attempts.acquire(timeout=30)
        leases.check()
        before = renewed()
        is_back.set()
        give_up_at = time.monotonic() + 30
        while renewed() == before:
            assert time.monotonic() < give_up_at, "it was not renewed again"
            time.sleep(0.001)
        leases.check()


def test_what_is_confirmed_is_believed_for_a_moment_and_then_renewed(api: FakeApi, waiting: Waiting) -> None:
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        waiting.leases.confirm()
        renewed = api.objects[PATH]["spec"]["renewTime"]
        waiting.elapsed_s += FRESH_S
        waiting.leases.confirm()
        assert api.objects[PATH]["spec"]["renewTime"] == renewed
        waiting.elapsed_s += 0.1
        waiting.leases.confirm()
        assert api.objects[PATH]["spec"]["renewTime"] != renewed


def test_lease_lasts_longer_and_then_as_usual_again(api: FakeApi, waiting: Waiting) -> None:
    longer = dataclasses.replace(CLAIM, duration_s=600.0)
    with waiting.leases:
        tokens = {waiting.leases.acquire(CLAIM, timeout_s=5), waiting.leases.acquire(longer, timeout_s=5)}
        assert api.objects[PATH]["spec"]["leaseDurationSeconds"] == 600
        waiting.elapsed_s += 3
        waiting.leases.confirm()
        assert api.objects[PATH]["spec"]["leaseDurationSeconds"] == 600
        tokens.add(waiting.leases.acquire(CLAIM, timeout_s=5))
        assert api.objects[PATH]["spec"]["leaseDurationSeconds"] == 15
        assert tokens == {0}


def test_lease_that_was_lost_is_not_made_longer(api: FakeApi, waiting: Waiting) -> None:
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        given_to(api, "cp-3", 1)
        with pytest.raises(LeaseLost):
            waiting.leases.acquire(dataclasses.replace(CLAIM, duration_s=600.0), timeout_s=5)


def test_run_that_stops_gives_the_lease_up_at_once_with_what_it_leaves(api: FakeApi, waiting: Waiting) -> None:
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
    assert api.objects[PATH]["spec"]["holderIdentity"] == ""
    with waiting.leases:
        payload = LeasePayload("etcd-member", "https://cp-3:2380")
        assert waiting.leases.acquire(dataclasses.replace(CLAIM, holder="cp-3", payload=payload), 5) == 1
        assert waiting.leases.left_behind("etcd-member") == ("https://cp-2:2380",)
    assert waiting.elapsed_s == 0


@pytest.mark.parametrize("is_cleared", [True, False])
def test_what_an_earlier_holder_left_stays_in_the_lease_until_it_is_cleared_away(
    api: FakeApi, waiting: Waiting, is_cleared: bool
) -> None:
    api.objects[PATH] = HELD
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=60)
        if is_cleared:
            waiting.leases.forget_left_behind("etcd-member")
        waiting.leases.release(CLAIM)
    if is_cleared:
        assert api.objects == {}
    else:
        metadata = api.objects[PATH]["metadata"]
        assert metadata["annotations"] == {"garboard.dev/lease-payloads": "etcd-member:https://cp-1:2380"}


@pytest.mark.parametrize("code", [429, 500, 503, 504])
@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("POST", PATH.rpartition("/")[0])])
def test_waiting_outlasts_an_api_server_that_is_busy(
    api: FakeApi, waiting: Waiting, method: str, path: str, code: int
) -> None:
    for _ in range(20):
        api.refuse(method, path, code, "", "etcdserver: leader changed")
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=60)
        assert api.objects[PATH]["spec"]["holderIdentity"] == "cp-2"
    assert waiting.elapsed_s == 10
    assert len(waiting.reported) == 1
    assert "leader changed" in waiting.reported[0]


def test_lease_whose_creation_was_not_answered_is_ours(api: FakeApi, waiting: Waiting) -> None:
    api.fail("POST", PATH.rpartition("/")[0], "unanswered")
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        assert api.objects[PATH]["spec"]["holderIdentity"] == "cp-2"


def test_api_server_that_stays_busy_is_the_reason(api: FakeApi, waiting: Waiting) -> None:
    for _ in range(100):
        api.refuse("GET", PATH, 503, "", "the server is on its way out")
    with pytest.raises(ClusterUnreachable, match="on its way out"):
        waiting.leases.acquire(CLAIM, timeout_s=3)


def test_release_that_failed_is_tried_again_with_what_an_earlier_holder_left(api: FakeApi, waiting: Waiting) -> None:
    api.objects[PATH] = HELD
    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=60)
        waiting.is_away = True
        with pytest.raises(ClusterUnreachable):
            waiting.leases.release(CLAIM)
        waiting.is_away = False
        waiting.leases.release(CLAIM)
    lease = api.objects[PATH]
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["metadata"]["annotations"] == {"garboard.dev/lease-payloads": "etcd-member:https://cp-1:2380"}


def test_release_outlasts_an_api_server_that_is_away_for_a_moment(api: FakeApi, waiting: Waiting) -> None:
    def come_back(elapsed_s: float) -> None:
        waiting.is_away = elapsed_s < 20

    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        waiting.is_away = True
        waiting.meanwhile = come_back
        waiting.leases.release(CLAIM)
        assert waiting.elapsed_s == 20
    assert api.objects == {}


def test_release_leaves_a_lease_alone_that_ran_out_meanwhile(api: FakeApi, waiting: Waiting) -> None:
    def taken_over(elapsed_s: float) -> None:
        waiting.is_away = elapsed_s < 20
        given_to(api, "cp-3", 1)

    with waiting.leases:
        waiting.leases.acquire(CLAIM, timeout_s=5)
        waiting.is_away = True
        waiting.meanwhile = taken_over
        waiting.leases.release(CLAIM)
    assert api.objects[PATH]["spec"]["holderIdentity"] == "cp-3"
