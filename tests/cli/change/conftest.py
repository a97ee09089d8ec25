"""A fake API server that pages lists, and a kubeconfig that leads to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.pki.kubeconfig import Kubeconfig
from tests.support.change.api_objects import PagedApi
from tests.support.kube.api_server import serving
from tests.support.kube.fixtures import certificates, kubeconfig
from tools.harness.certificates import Certificates

__all__ = ["certificates", "kubeconfig"]


@pytest.fixture
def api(certificates: Certificates) -> Iterator[PagedApi]:
    with serving(PagedApi(), certificates) as running:
        assert isinstance(running, PagedApi)
        yield running


@pytest.fixture
def admin(kubeconfig: Kubeconfig, tmp_path: Path) -> list[str]:
    """The flags that name the kubeconfig."""
    (tmp_path / "admin.conf").write_bytes(kubeconfig.to_bytes())
    return ["--kubeconfig", str(tmp_path / "admin.conf")]
