"""Credentials that no run makes; the commands around them are compared with kubeadm's in tests/parity."""

from datetime import timedelta
from pathlib import Path

import pytest

from garboard.config import FixedFacts, ReadOptions, ResolvedVersion, init_from_flags
from garboard.errors import GarboardError
from garboard.model import DEFAULT_VERSION
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import InitConfiguration
from garboard.node.credentials import KubeconfigUser, user_kubeconfig, write_signing_requests
from tests.support.node.reporters import MemoryReporter


@pytest.fixture
def configuration() -> InitConfiguration:
    init = InitConfiguration(cluster=ClusterConfiguration(encryption_algorithm="ECDSA-P256"))
    version = ResolvedVersion(str(DEFAULT_VERSION))
    return init_from_flags(init, version, FixedFacts(), ReadOptions(detects_cri=False)).config


def test_requests_are_written_once_and_told_by_name(configuration: InitConfiguration, tmp_path: Path) -> None:
    reporter, pki, conf = MemoryReporter(), tmp_path / "pki", tmp_path / "conf"
    write_signing_requests(configuration, str(pki), str(conf), reporter)
    assert reporter.shown[0] == f"generating keys and CSRs in {pki}\n"
    assert {f"  {path.stem}\n" for path in pki.glob("*.csr")} <= set(reporter.shown)
    assert (conf / "admin.conf.csr").exists()
    key = (pki / "apiserver.key").read_bytes()
    with pytest.raises(GarboardError, match="exist"):
        write_signing_requests(configuration, str(pki), str(conf), reporter)
    assert (pki / "apiserver.key").read_bytes() == key


def test_kubeconfig_needs_the_authority_of_the_cluster(configuration: InitConfiguration, tmp_path: Path) -> None:
    user = KubeconfigUser(name="alice", validity=timedelta(hours=1))
    with pytest.raises(GarboardError, match=r"ca\.crt and ca\.key must both be there") as raised:
        user_kubeconfig(configuration, str(tmp_path), user)
    assert raised.value.error_class == "bad-authority"
