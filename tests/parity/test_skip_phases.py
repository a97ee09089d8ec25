"""Which names `--skip-phases` takes, and what must be skipped together: by kubeadm and by us."""

from pathlib import Path

import pytest

from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import CONFIG_PATH, CONFIGURATIONS, Configuration

pytestmark = pytest.mark.real
CONFIGURATION = Configuration(CONFIGURATIONS / "defaults.yaml", "encryptionAlgorithm: ECDSA-P256\n")
REFUSALS = ("invalid phase name", "unresolved dependencies")

SKIPS = [
    pytest.param("preflight", id="one"),
    pytest.param("preflight,addon", id="a parent"),
    pytest.param("preflight,addon/coredns", id="a child"),
    pytest.param("preflight,certs/all", id="all"),
    pytest.param("preflight,upload-certs", id="one that another needs"),
    pytest.param("preflight,upload-certs,bootstrap-token,show-join-command", id="one with what needs it"),
    pytest.param("nope", id="unknown"),
    pytest.param("bootstraptoken", id="alias"),
    pytest.param("Preflight", id="capital letter"),
    pytest.param("coredns", id="child without its parent"),
    pytest.param("etcd/local/x", id="too deep"),
    pytest.param("control-plane/", id="slash at the end"),
]


@pytest.mark.parametrize("skip", SKIPS)
def test_same_names_are_taken(kubeadm: Kubeadm, tmp_path: Path, skip: str) -> None:
    machine = CONFIGURATION.machine(tmp_path, kubeadm.version)
    line = ("init", "--dry-run", "--config", CONFIG_PATH, "--skip-phases", skip)
    theirs, ours = machine.run(kubeadm.program, *line), machine.run_garboard(*line)
    assert (ours.returncode == 0) == (theirs.returncode == 0), (ours.stderr, theirs.stderr)
    for words in REFUSALS:
        assert (words in ours.stderr) == (words in theirs.stderr), (ours.stderr, theirs.stderr)
