"""A cluster that garboard began, joined by kubeadm: a control plane and a worker."""

import pytest

from garboard.model import SUPPORTED_VERSIONS
from tests.support.lab.clusters import await_nodes
from tools.harness.joining import CONFIG, begun_cluster
from tools.harness.lab import RUN

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_kubeadm_joins_what_garboard_began(version: object, garboard_in_node: tuple[str, ...]) -> None:
    name = f"t{RUN}-mixed"
    with begun_cluster(
        name, str(version), garboard_in_node, control_planes=2, workers=1, init=garboard_in_node
    ) as cluster:
        for node in ("cp2", "worker1"):
            cluster.prepare(node)
            cluster.lab.exec(node, "kubeadm", "join", "--config", CONFIG)
        await_nodes(cluster.lab, "cp1", "cp2", "worker1")
        assert cluster.members() == {"cp1": False, "cp2": False}
