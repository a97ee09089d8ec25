"""A cluster of real members, at the version of etcd that each supported minor of Kubernetes uses."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.etcd.cluster import EtcdCluster, etcd_cluster
from tools.harness.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


MakeCluster = Callable[..., AbstractContextManager[EtcdCluster]]


@pytest.fixture(params=SUPPORTED_VERSIONS, ids=str)
def make_cluster(
    request: pytest.FixtureRequest, binaries: Binaries, certificates: Certificates, tmp_path: Path
) -> MakeCluster:
    return partial(etcd_cluster, binaries.locate_for("etcd", str(request.param)), certificates, tmp_path)


@pytest.fixture
def alone(make_cluster: MakeCluster) -> Iterator[EtcdCluster]:
    with make_cluster("a") as running:
        yield running


@pytest.fixture
def three(make_cluster: MakeCluster) -> Iterator[EtcdCluster]:
    with make_cluster("a", "b", "c") as running:
        yield running
