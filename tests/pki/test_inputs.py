from pathlib import Path

import pytest

from garboard.config import ConfigFile, FixedFacts, ReadOptions
from garboard.errors import InvalidValue
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.lifecycle import InitConfiguration
from garboard.model.node import ApiEndpoint
from garboard.pki.inputs import inputs_of
from tests.support.parity.cases import Case, by_name
from tests.support.parity.kubeadm import Kubeadm
from tools.harness.answers import Answers


@by_name
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_inputs_are_read_from_a_configuration(tmp_path: Path, version: KubernetesVersion, case: Case) -> None:
    # The same documents and inputs that are compared with kubeadm in tests/parity.
    case.write(Kubeadm(Path("unused"), str(version), Answers(tmp_path)), tmp_path)
    data = (tmp_path / "kubeadm.yaml").read_bytes()
    file = ConfigFile.read(
        data, file="kubeadm.yaml", host=FixedFacts(), options=ReadOptions(detects_cri=False), version=version
    )
    assert inputs_of(file.init().config) == case.inputs


@pytest.mark.parametrize(
    "configuration",
    [
        InitConfiguration(),
        InitConfiguration(
            local_api_endpoint=ApiEndpoint(advertise_address="192.0.2.1"),
            cluster=ClusterConfiguration(networking=Networking(service_subnet="x")),
        ),
    ],
    ids=["no address", "no subnet"],
)
def test_configuration_that_was_not_completed_is_refused(configuration: InitConfiguration) -> None:
    with pytest.raises(InvalidValue, match=r"advertiseAddress|serviceSubnet"):
        inputs_of(configuration)
