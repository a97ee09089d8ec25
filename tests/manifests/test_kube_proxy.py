import pytest

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.manifests.kube_proxy import control_plane_url, daemon_set
from garboard.model.cluster import ClusterConfiguration
from garboard.model.node import ApiEndpoint


@pytest.mark.parametrize(
    ("shared", "address", "url"),
    [
        ("", "192.0.2.1", "https://192.0.2.1:7443"),
        ("", "fd00::1", "https://[fd00::1]:7443"),
        ("lb.example.com", "192.0.2.1", "https://lb.example.com:7443"),
        ("lb.example.com:6443", "192.0.2.1", "https://lb.example.com:6443"),
        ("[fd00::99]:443", "192.0.2.1", "https://[fd00::99]:443"),
    ],
)
def test_kube_proxy_goes_to_the_shared_endpoint_if_there_is_one(shared: str, address: str, url: str) -> None:
    endpoint = ApiEndpoint(advertise_address=address, bind_port=7443)
    assert control_plane_url(ClusterConfiguration(control_plane_endpoint=shared), endpoint) == url


def test_a_patch_may_not_take_the_container_away() -> None:
    def patcher(_target: str, document: Json, /) -> Json:
        document["spec"]["template"]["spec"]["containers"] = []  # type: ignore[index,call-overload]
        return document

    with pytest.raises(BadDocument):
        daemon_set(ClusterConfiguration(), {"HTTP_PROXY": "x"}, patcher)
