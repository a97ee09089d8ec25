"""The certificate that a server shows is seen, also where that server wants one of its clients."""

import ssl

import pytest

from garboard.errors import GarboardError
from garboard.node.node_view import served_certificate
from tests.support.kube.api_server import FakeApi
from tools.harness.certificates import Certificates


def test_it_is_the_one_in_the_file(api: FakeApi, certificates: Certificates) -> None:
    wanted = ssl.PEM_cert_to_DER_cert(certificates.server.read_text())
    assert served_certificate("127.0.0.1", api.port) == wanted
    assert api.asked == []


def test_a_server_that_is_not_there_is_told_with_its_place() -> None:
    with pytest.raises(GarboardError, match=r"127\.0\.0\.1 port 1: "):
        served_certificate("127.0.0.1", 1)
