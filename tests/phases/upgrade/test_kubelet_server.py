"""The kubelet of a control-plane node goes to its own API server (KEP-4471), unless the cluster stores otherwise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from garboard.config import FixedFacts, resolve_version
from garboard.documents import Json, read_yaml
from garboard.engine import AwaitGate, ControlService, Plan, PutObject, Step, WriteFile, plan_as_text
from garboard.model.paths import KUBELET_CONF
from garboard.phases import Phase, plan_workflow, select
from garboard.phases.gates import KubeletHealthy
from garboard.phases.node.uploads import plan_kubeadm_config
from garboard.phases.upgrade.cluster import read_upgraded
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.tree import APPLY, NODE
from garboard.pki.kubeconfig import read_kubeconfig
from tests.support.phases.machines import MemoryMachine
from tests.support.phases.upgraded_nodes import TARGET, MemoryObjects, kubelet_conf, upgraded_node

ENDPOINT = "lb.example:6443"
SHARED, LOCAL = f"https://{ENDPOINT}", "https://192.0.2.10:6443"
# In the shape that 1.36 stores; the gate came with the cluster from an older minor.
STORED = f"""\
apiServer: {{}}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controlPlaneEndpoint: {ENDPOINT}
controllerManager: {{}}
dns: {{}}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
GATES\
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.36.4
networking:
  dnsDomain: cluster.local
  serviceSubnet: 10.96.0.0/12
proxy: {{}}
scheduler: {{}}
"""
KUBELET_CONFIGURATION = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def config_map(**data: str) -> dict[str, Json]:
    return {"data": dict(data)}


def node_of(server: str, gate: str = "", *, has_services: bool = True, is_first: bool = False) -> UpgradeContext:
    """Return a control plane whose kubelet uses that server, in a cluster that stores the gate, if one is given."""
    gates = f"featureGates:\n  ControlPlaneKubeletLocalMode: {gate}\n" if gate else ""
    objects = MemoryObjects(
        {
            ("ConfigMap", "kubeadm-config"): config_map(ClusterConfiguration=STORED.replace("GATES", gates)),
            ("ConfigMap", "kubelet-config"): config_map(kubelet=KUBELET_CONFIGURATION),
        }
    )
    context = upgraded_node(f"controlPlaneEndpoint: {ENDPOINT}\n", is_first=is_first)
    assert isinstance(context.machine, MemoryMachine)
    context.machine.files[KUBELET_CONF] = kubelet_conf(server)
    context.machine.services = {"kubelet"} if has_services else None
    upgraded = read_upgraded(
        objects, FixedFacts(host="node-1"), resolve_version(TARGET), context.local_api_endpoint, is_worker=False
    )
    return replace(context, cluster=upgraded.target, upgraded=upgraded)


def planned(context: UpgradeContext, tree: Sequence[Phase[UpgradeContext]] = NODE) -> Plan:
    return plan_workflow(select(tree, only="kubeconfig"), context)


@pytest.mark.parametrize("tree", [APPLY, NODE], ids=["apply", "node"])
@pytest.mark.parametrize("gate", ["", "true"], ids=["no gate is stored", "the gate is on"])
def test_kubelet_of_the_shared_endpoint_is_moved_to_its_own_api_server(
    gate: str, tree: Sequence[Phase[UpgradeContext]]
) -> None:
    context = node_of(SHARED, gate, is_first=tree is APPLY)
    write, restart, wait = planned(context, tree).steps
    assert isinstance(write.action, WriteFile)
    assert (write.action.path, write.action.mode, write.action.is_secret) == (KUBELET_CONF, 0o600, True)
    found = read_kubeconfig(write.action.content, KUBELET_CONF)
    former = read_kubeconfig(kubelet_conf(SHARED), KUBELET_CONF)
    assert found.server == LOCAL
    assert (found.user, found.ca) == (former.user, former.ca), "nothing but the server changes"
    assert restart.action == ControlService(service="kubelet", verb="restart", is_needed=False)
    assert isinstance(wait.action, AwaitGate)
    assert isinstance(wait.action.gate, KubeletHealthy)


def test_plan_shows_the_file_the_restart_and_their_causes() -> None:
    shown = plan_as_text(planned(node_of(SHARED)))
    assert f"write {KUBELET_CONF}" in shown
    assert "the kubelet of a control-plane node uses the API server beside it" in shown
    assert "# it reads kubelet.conf when it starts" in shown
    assert "# it was restarted" in shown


@pytest.mark.parametrize(
    ("server", "gate", "told"),
    [
        pytest.param(SHARED, "false", "ControlPlaneKubeletLocalMode is off", id="the stored gate is off"),
        pytest.param(LOCAL, "", f"uses {LOCAL}, and keeps it", id="it is local already"),
        pytest.param(LOCAL, "false", "ControlPlaneKubeletLocalMode is off", id="it is local although the gate is off"),
        pytest.param("https://192.0.2.9:6443", "", "192.0.2.9:6443, and keeps it", id="somebody chose another server"),
    ],
)
def test_kubelet_keeps_its_server(server: str, gate: str, told: str) -> None:
    plan = planned(node_of(server, gate))
    assert plan.steps == ()
    (note,) = plan.notes
    assert told in note.text
    assert not note.is_warning


def test_machine_without_a_service_manager_gets_the_file_alone() -> None:
    (write,) = planned(node_of(SHARED, has_services=False)).steps
    assert isinstance(write.action, WriteFile)


@pytest.mark.parametrize("gate", ["", "true", "false"])
def test_kubelet_of_a_worker_keeps_the_shared_endpoint(gate: str) -> None:
    worker = replace(node_of(SHARED, gate), manifests={})
    assert planned(worker) == Plan()


@pytest.mark.parametrize("gate", ["false", "true"])
def test_gate_is_stored_again_so_that_the_next_upgrade_finds_it(gate: str) -> None:
    steps = [each for each in plan_kubeadm_config(node_of(SHARED, gate, is_first=True)) if isinstance(each, Step)]
    (put,) = (each.action for each in steps if isinstance(each.action, PutObject) and each.action.kind == "ConfigMap")
    content: Any = put.content
    stored: Any = read_yaml(content["data"]["ClusterConfiguration"], source="")
    assert stored["featureGates"] == {"ControlPlaneKubeletLocalMode": gate == "true"}
    assert stored["kubernetesVersion"] == TARGET
