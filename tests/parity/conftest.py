"""The real kubeadm at every supported version."""

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.parity.kubeadm import Kubeadm
from tools.harness.answers import Answers


@pytest.fixture(params=SUPPORTED_VERSIONS, ids=str)
def kubeadm(request: pytest.FixtureRequest, binaries: Binaries, answers: Answers) -> Kubeadm:
    version = str(request.param)
    return Kubeadm(binaries.locate("kubeadm", version), version, answers)
