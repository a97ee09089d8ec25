"""When an init makes a cluster, and when it changes one that lives on the node already."""

from pathlib import Path

import pytest

from garboard.config import GivenFlags
from garboard.host.node_machine import NodeMachine
from garboard.host.root import inside
from garboard.node.init import INIT_WORKFLOW, InitInput, load_init
from garboard.node.workflow import LocalNode, WorkflowRequest
from tests.support.node.reporters import MemoryReporter

CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: 192.0.2.10}}
nodeRegistration: {{name: node-1, criSocket: unix:///run/none.sock}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
etcd: {etcd}
"""
LOCAL, ELSEWHERE = "{local: {dataDir: /data/etcd}}", "{external: {endpoints: [https://192.0.2.3:2379]}}"


@pytest.mark.parametrize(
    ("etcd", "has_data", "only", "cluster"),
    [
        pytest.param(LOCAL, False, None, "made", id="a new node"),
        pytest.param(LOCAL, True, None, "local", id="again on a control plane: its objects have a state before"),
        pytest.param(LOCAL, False, "addon", "local", id="a single phase"),
        pytest.param(ELSEWHERE, False, None, "local", id="etcd elsewhere may hold a cluster"),
    ],
)
def test_objects_have_pre_images_unless_the_run_makes_the_cluster(
    etcd: str, has_data: bool, only: str | None, cluster: str, tmp_path: Path
) -> None:
    (tmp_path / "kubeadm.yaml").write_text(CONFIG.format(etcd=etcd))
    if has_data:
        (tmp_path / "data/etcd/member/snap").mkdir(parents=True)
    flags = GivenFlags({"config": "/kubeadm.yaml"})
    with inside(str(tmp_path)):
        given = InitInput(load_init(flags), frozenset())
        node = LocalNode(NodeMachine(None), MemoryReporter())
        assert INIT_WORKFLOW.policy(given, WorkflowRequest(flags, only=only), node).cluster == cluster
