from pathlib import Path

import pytest

from tools.harness.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def socket_path(tmp_path: Path) -> str:
    """A path for a unix socket, short enough for the kernel's 107 bytes."""
    return str(tmp_path / "s.sock")
