"""The two tenants that the tests of tenancy share."""

from pathlib import Path

import pytest

from tests.rpc.certificates import Certificates, make_certificates
from tests.tunnel.server.worlds import World


@pytest.fixture(scope="session")
def tenant_keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificates, Certificates]:
    a, b = (make_certificates(tmp_path_factory.mktemp(name), f"{name}.test") for name in ("a", "b"))
    return a, b


@pytest.fixture
def world(tenant_keys: tuple[Certificates, Certificates], tmp_path: Path) -> World:
    return World(*tenant_keys, tmp_path)
