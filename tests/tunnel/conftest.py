from pathlib import Path

import pytest

from tests.rpc.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tunnel-tls"))


@pytest.fixture
def front(tmp_path: Path) -> str:
    """A path for the front end's unix socket."""
    return str(tmp_path / "f.sock")
