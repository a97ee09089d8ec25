"""A fake API server, and a kubeconfig and a client that lead to it; and real ones of every supported minor."""

from collections.abc import Iterator

import pytest

from garboard.kube import Access
from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.kube.fixtures import api, certificates, client, kubeconfig
from tests.support.kube.real_server import real_api_server

__all__ = ["access", "api", "certificates", "client", "kubeconfig"]


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def access(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Access]:
    with real_api_server(binaries, str(request.param), tmp_path_factory.mktemp("server")) as running:
        yield running
