"""A fake API server, and a kubeconfig that leads to it."""

from pathlib import Path

import pytest

from garboard.pki.kubeconfig import Kubeconfig
from tests.support.kube.fixtures import api, certificates, kubeconfig

__all__ = ["api", "certificates", "kubeconfig"]


@pytest.fixture
def admin(kubeconfig: Kubeconfig, tmp_path: Path) -> list[str]:
    """The flags that name the kubeconfig."""
    (tmp_path / "admin.conf").write_bytes(kubeconfig.to_bytes())
    return ["--kubeconfig", str(tmp_path / "admin.conf")]
