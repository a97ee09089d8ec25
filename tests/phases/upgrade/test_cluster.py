"""What is read of a cluster before it is upgraded."""

from garboard.documents import Json
from garboard.phases.upgrade.cluster import _image


def test_image_of_an_api_server_is_that_of_its_own_container() -> None:
    beside: Json = {"name": "audit", "image": "audit:1"}
    own: Json = {"name": "kube-apiserver", "image": "kube-apiserver:v1.37.1"}
    pod: dict[str, Json] = {"spec": {"nodeName": "cp1", "containers": [beside, own]}}
    assert _image(pod, "kube-apiserver") == ("cp1", "kube-apiserver:v1.37.1")
