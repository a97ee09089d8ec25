from pathlib import Path

import pytest

from tests.support.tunnel.server.tenant_setup import TenantSetup
from tools.harness.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tunnel-tls"))


@pytest.fixture
def front(tmp_path: Path) -> str:
    """A path for the front end's unix socket."""
    return str(tmp_path / "f.sock")


@pytest.fixture(scope="session")
def tenant_keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificates, Certificates]:
    a, b = (make_certificates(tmp_path_factory.mktemp(name), f"{name}.test") for name in ("a", "b"))
    return a, b


@pytest.fixture
def setup(tenant_keys: tuple[Certificates, Certificates], tmp_path: Path) -> TenantSetup:
    return TenantSetup(*tenant_keys, tmp_path)
