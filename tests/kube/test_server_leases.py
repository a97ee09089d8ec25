"""Leases and token reviews as objects of an API server on loopback."""

from collections.abc import Callable

import pytest

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.kube import Access, in_cluster_access, read_access
from garboard.kube.server_leases import ApiLeaseBook, read_lease
from garboard.kube.tokens import read_review
from garboard.pki.kubeconfig import Kubeconfig
from garboard.tunnel.leases import own_lease
from garboard.tunnel.server.tokens import TokenReview
from tests.kube.api_server import FakeApi

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NAME = f"{LEASES}/konnectivity-proxy-server-s1"


@pytest.fixture
def access(kubeconfig: Kubeconfig) -> Callable[[], Access]:
    return lambda: read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)


def test_lease_is_created_then_renewed_and_keeps_when_it_began(api: FakeApi, access: Callable[[], Access]) -> None:
    book = ApiLeaseBook(access, "kube-system", "k8s-app=x", {"k8s-app": "x"})
    book.hold(own_lease("s1", 1_000_000.5))
    assert api.objects[NAME]["metadata"]["labels"] == {"k8s-app": "x"}
    assert api.objects[NAME]["spec"] == {
        "holderIdentity": "s1",
        "leaseDurationSeconds": 30,
        "acquireTime": "1970-01-12T13:46:40.500000Z",
        "renewTime": "1970-01-12T13:46:40.500000Z",
    }
    book.hold(own_lease("s1", 1_000_015.0))
    assert api.objects[NAME]["spec"]["acquireTime"] == "1970-01-12T13:46:40.500000Z"
    [found] = book.all()
    assert found.renewed_at == 1_000_015.0
    assert found.is_valid(1_000_044.0)


def test_lease_of_another_hand_is_read() -> None:
    assert read_lease({}).is_valid(0.0) is False
    found = read_lease({"metadata": {"name": "x"}, "spec": {"renewTime": "no time", "leaseDurationSeconds": 3}})
    assert (found.renewed_at, found.duration_s) == (None, 3.0)


def test_answer_of_a_token_review_is_read() -> None:
    status: Json = {"authenticated": True, "user": {"username": "u"}, "audiences": ["a", "b"]}
    assert read_review({"status": status}) == TokenReview(is_authenticated=True, username="u", audiences=("a", "b"))
    assert read_review({"status": {"error": "no"}}) == TokenReview(error="no")
    assert read_review({"status": {"authenticated": "true"}}) == TokenReview()
    assert read_review({}) == TokenReview()


def test_pod_gets_to_its_api_server_by_its_service_account() -> None:
    files = {
        "/var/run/secrets/kubernetes.io/serviceaccount/token": b"t0ken\n",
        "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt": b"pem",
    }
    found = in_cluster_access({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, files.get)
    assert (found.server, found.host, found.token, found.ca) == ("https://[fd00::1]:443", "fd00::1", "t0ken", b"pem")
    with pytest.raises(BadDocument, match="no pod"):
        in_cluster_access({}, files.get)
