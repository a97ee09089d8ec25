"""Leases and token reviews as objects of an API server on loopback."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from garboard.cli.tunnel.api_server import ApiLeaseStore, ApiTokenReviewer, access_from, read_lease, read_review
from garboard.documents import Json
from garboard.kube import Access, Forbidden
from garboard.pki.kubeconfig import ClientCertificate, Kubeconfig
from garboard.tunnel.leases import own_lease
from garboard.tunnel.server.tokens import TokenReview
from tests.support.kube.api_server import FakeApi, serving
from tools.harness.certificates import Certificates, make_certificates

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NAME = f"{LEASES}/konnectivity-proxy-server-s1"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


@pytest.fixture
def api(certificates: Certificates) -> Iterator[FakeApi]:
    with serving(FakeApi(), certificates) as running:
        yield running


@pytest.fixture
def access(api: FakeApi, certificates: Certificates, tmp_path: Path) -> Callable[[], Access]:
    kubeconfig = Kubeconfig(
        cluster_name="kubernetes",
        server=f"https://127.0.0.1:{api.port}",
        user_name="konnectivity",
        ca=certificates.ca.read_bytes(),
        credential=ClientCertificate(certificates.client.read_bytes(), certificates.client_key.read_bytes()),
    )
    (tmp_path / "server.conf").write_bytes(kubeconfig.to_bytes())
    return access_from(tmp_path / "server.conf")


def test_lease_is_created_then_renewed_and_keeps_when_it_began(api: FakeApi, access: Callable[[], Access]) -> None:
    store = ApiLeaseStore(access, "kube-system", "k8s-app=x", {"k8s-app": "x"})
    store.hold(own_lease("s1", 1_000_000.5))
    assert api.objects[NAME]["metadata"]["labels"] == {"k8s-app": "x"}
    assert api.objects[NAME]["spec"] == {
        "holderIdentity": "s1",
        "leaseDurationSeconds": 30,
        "acquireTime": "1970-01-12T13:46:40.500000Z",
        "renewTime": "1970-01-12T13:46:40.500000Z",
    }
    store.hold(own_lease("s1", 1_000_015.0))
    assert api.objects[NAME]["spec"]["acquireTime"] == "1970-01-12T13:46:40.500000Z"
    [found] = store.all()
    assert found.renewed_at == 1_000_015.0
    assert found.is_valid(1_000_044.0)


def test_leases_are_listed_by_pages_and_written_under_our_name(api: FakeApi, access: Callable[[], Access]) -> None:
    store = ApiLeaseStore(access, "kube-system", "k8s-app=x", {"k8s-app": "x"})
    store.hold(own_lease("s1", 1.0))
    store.hold(own_lease("s1", 2.0))
    assert [each.name for each in store.all()] == ["konnectivity-proxy-server-s1"]
    assert api.asked == [("GET", NAME), ("POST", LEASES), ("GET", NAME), ("PUT", NAME), ("GET", LEASES)]
    assert api.queries[1] == api.queries[3] == "fieldManager=garboard"
    assert api.queries[4] == "labelSelector=k8s-app%3Dx&limit=500"


def test_lease_that_has_gone_or_was_renewed_is_left(api: FakeApi, access: Callable[[], Access]) -> None:
    store = ApiLeaseStore(access, "kube-system", "k8s-app=x")
    store.delete(own_lease("s1", 1.0))
    store.hold(own_lease("s1", 1.0))
    api.refuse("DELETE", NAME, 409, "Conflict", "it has another version")
    store.delete(own_lease("s1", 1.0))
    assert NAME in api.objects
    store.delete(own_lease("s1", 1.0))
    assert api.objects == {}


def test_token_is_reviewed_by_the_api_server(api: FakeApi, access: Callable[[], Access]) -> None:
    status = {"authenticated": True, "user": {"username": "agent"}, "audiences": ["tunnel"]}
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    api.refusals["POST", reviews] = [(201, json.dumps({"kind": "TokenReview", "status": status}).encode())]
    found = ApiTokenReviewer(access).review("secret", "tunnel")
    assert found == TokenReview(is_authenticated=True, username="agent", audiences=("tunnel",))
    api.refuse("POST", reviews, 403, "Forbidden", "no")
    with pytest.raises(Forbidden, match="cannot create TokenReview") as raised:
        ApiTokenReviewer(access).review("secret", "tunnel")
    assert "secret" not in repr(raised.value)


def test_lease_that_lacks_fields_is_read() -> None:
    assert read_lease({}).is_valid(0.0) is False
    found = read_lease({"metadata": {"name": "x"}, "spec": {"renewTime": "no time", "leaseDurationSeconds": 3}})
    assert (found.renewed_at, found.duration_s) == (None, 3.0)


def test_answer_of_a_token_review_is_read() -> None:
    status: Json = {"authenticated": True, "user": {"username": "u"}, "audiences": ["a", "b"]}
    assert read_review({"status": status}) == TokenReview(is_authenticated=True, username="u", audiences=("a", "b"))
    assert read_review({"status": {"error": "no"}}) == TokenReview(error="no")
    assert read_review({"status": {"authenticated": "true"}}) == TokenReview()
    assert read_review({}) == TokenReview()
