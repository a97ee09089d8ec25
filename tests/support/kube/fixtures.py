"""Fixtures: a fake API server, and a kubeconfig and a client that lead to it."""

from collections.abc import Iterator

import pytest

from garboard.kube import KubeClient, read_access
from garboard.pki.kubeconfig import ClientCertificate, Kubeconfig
from tests.support.kube.api_server import FakeApi, serving
from tools.harness.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def api(certificates: Certificates) -> Iterator[FakeApi]:
    with serving(FakeApi(), certificates) as running:
        yield running


@pytest.fixture
def kubeconfig(api: FakeApi, certificates: Certificates) -> Kubeconfig:
    return Kubeconfig(
        cluster_name="kubernetes",
        server=f"https://127.0.0.1:{api.port}",
        user_name="admin",
        ca=certificates.ca.read_bytes(),
        credential=ClientCertificate(certificates.client.read_bytes(), certificates.client_key.read_bytes()),
    )


@pytest.fixture
def client(kubeconfig: Kubeconfig) -> Iterator[KubeClient]:
    with KubeClient(read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)) as opened:
        yield opened
