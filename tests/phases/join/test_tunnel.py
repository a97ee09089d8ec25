"""A worker that joins through a tunnel: what is checked first, and the plan of its agent."""

from dataclasses import replace
from ipaddress import ip_address, ip_interface

import pytest

from garboard.documents import read_yaml
from garboard.engine import AwaitGate, ControlLink, ControlService, ControlUnitFile, Plan, WriteFile, plan_as_json
from garboard.errors import NotReady
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.component import ApiServer, Arg
from garboard.model.node import NodeRegistration
from garboard.model.tunnel import JoinTunnel
from garboard.phases import plan_workflow, select
from garboard.phases.gates import TunnelOpen
from garboard.phases.join import JOIN
from garboard.phases.join.cluster import find_cluster, kube_proxy_server
from garboard.phases.join.tunnel import ObservedTunnel, agent_of, tunnel_checks, tunnel_warnings
from garboard.phases.preflight import run_checks
from garboard.pki.bootstrap_kubeconfig import FILE_NAME
from garboard.pki.kubeconfig import BearerToken, Kubeconfig
from garboard.pki.names import AltNames
from garboard.pki.tunnel_credentials import AgentCredentials
from tests.support.phases.join.clusters import FACTS, MemoryCluster, MemoryConnector, context_of, load_join
from tests.support.phases.join.clusters import JOIN as JOIN_TEXT
from tests.support.phases.machines import MemoryMachine
from tests.support.phases.preflight.inspectors import MemoryInspector

BIND = "10.255.0.1"
TUNNEL = JoinTunnel(server="k.example", credentials_dir="/root/tunnel")
NODE = NodeRegistration(name="node-2", cri_socket="unix:///run/c.sock")
CLUSTER = ClusterConfiguration(api_server=ApiServer(extra_args=(Arg("advertise-address", BIND),)))
OBSERVED = ObservedTunnel(
    agent=agent_of(TUNNEL, CLUSTER, NODE, "192.0.2.20"),
    agent_form="unit",
    credentials=AgentCredentials(ca=b"CA", certificate=b"CERT", key=b"KEY", paths=("a", "b", "c")),
    api_names=AltNames(("api.example.com",), (ip_address(BIND),)),
    interfaces=(("lo", ip_interface("127.0.0.1/8")), ("eth0", ip_interface("192.0.2.20/24"))),
    program="/usr/bin/garboard",
    advertised=BIND,
)
STATIC_POD = replace(OBSERVED, agent_form="static-pod")
UNIT_FILE = "/etc/systemd/system/konnectivity-agent.service"
MANIFEST = "/etc/kubernetes/manifests/konnectivity-agent.yaml"
PKI = "/etc/kubernetes/konnectivity"


def planned(tunnel: ObservedTunnel = OBSERVED, machine: MemoryMachine | None = None) -> Plan:
    context = context_of(MemoryCluster.made(), machine or MemoryMachine(services=set()), JOIN_TEXT, is_whole=True)
    return plan_workflow(select(JOIN), replace(context, tunnel=tunnel))


def found(tunnel: ObservedTunnel, cluster: ClusterConfiguration = CLUSTER, **machine: object) -> dict[str, str]:
    inspector = MemoryInspector(**machine)  # type: ignore[arg-type]
    return {each.check: each.text for each in run_checks(tunnel_checks(tunnel, cluster, NODE), inspector)}


def test_agent_listens_where_the_api_server_advertises() -> None:
    agent = agent_of(TUNNEL, CLUSTER, NODE, "192.0.2.20")
    assert (agent.api_url, agent.server_host, agent.server_port) == (f"https://{BIND}:6443", "k.example", 8132)
    assert (agent.agent_id, agent.identifiers) == ("node-2", "host=node-2&ipv4=192.0.2.20")


def test_flag_and_port_of_the_api_server_count_and_several_servers_are_named() -> None:
    args = (Arg("advertise-address", BIND), Arg("secure-port", "7443"))
    tunnel = replace(TUNNEL, server="a:1,fd00::1", bind_address="10.254.0.1")
    agent = agent_of(tunnel, ClusterConfiguration(api_server=ApiServer(extra_args=args)), NODE, "fd00::20")
    assert agent.api_url == "https://10.254.0.1:7443"
    assert agent.server_host == "a:1,[fd00::1]:8132"
    assert agent.identifiers == "host=node-2&ipv6=fd00::20"


def test_cluster_that_does_not_say_where_agents_listen_is_refused() -> None:
    with pytest.raises(NotReady) as caught:
        agent_of(TUNNEL, ClusterConfiguration(), NODE, "")
    assert caught.value.error_class == "no-bind-address"
    assert "--tunnel-bind-address" in (caught.value.hint or "")


def test_machine_that_is_ready_has_no_findings() -> None:
    assert found(OBSERVED) == {}
    assert found(STATIC_POD, images={STATIC_POD.agent.image}) == {}


def test_certificate_without_the_agents_address_is_told_with_its_names() -> None:
    told = found(replace(OBSERVED, api_names=AltNames(("api.example.com",), (ip_address("192.0.2.1"),))))
    assert "valid for api.example.com, 192.0.2.1, and not for the agent's address 10.255.0.1" in told["TunnelCertSANs"]
    assert "apiServer.certSANs" in told["TunnelCertSANs"]


@pytest.mark.parametrize(
    ("cluster", "interface", "said"),
    [
        pytest.param(
            Networking(service_subnet="10.255.0.0/16"), "192.0.2.20/24", "the network of services", id="Services"
        ),
        pytest.param(Networking(pod_subnet="10.254.0.0/15"), "192.0.2.20/24", "the network of pods", id="pods"),
        pytest.param(Networking(), "10.1.2.3/8", "10.0.0.0/8, the network of eth0", id="the node"),
        pytest.param(Networking(), "10.255.0.1/24", "10.255.0.0/24, the network of eth0", id="an address of the node"),
    ],
)
def test_address_that_others_use_is_told(cluster: Networking, interface: str, said: str) -> None:
    tunnel = replace(OBSERVED, interfaces=(("eth0", ip_interface(interface)),))
    assert said in found(tunnel, replace(CLUSTER, networking=cluster))["TunnelAddress"]


@pytest.mark.parametrize("link", ["konnectivity0", "lo"])
def test_address_that_an_earlier_join_left_is_no_overlap(link: str) -> None:
    assert found(replace(OBSERVED, interfaces=((link, ip_interface(f"{BIND}/32")),))) == {}


def test_unit_needs_systemd_and_the_program() -> None:
    assert "--tunnel-as static-pod" in found(replace(OBSERVED, reads_unit_files=False))["TunnelUnit"]
    assert "garboard tunnel zipapp" in found(replace(OBSERVED, program=""))["TunnelUnit"]


def test_static_pod_needs_its_image_and_nothing_of_the_unit() -> None:
    told = found(replace(STATIC_POD, program="", reads_unit_files=False))
    assert set(told) == {"TunnelImage"}
    assert "garboard image" in told["TunnelImage"]


def test_proxy_in_the_way_to_the_agent_is_a_warning() -> None:
    assert BIND in found(OBSERVED, variables={"HTTPS_PROXY": "http://proxy.example:3128"})["HTTPProxy"]


def test_what_does_not_lead_to_agents_is_a_warning() -> None:
    assert list(tunnel_warnings(replace(OBSERVED, kube_proxy_server=f"https://{BIND}:6443"))) == []
    texts = [
        each.text for each in tunnel_warnings(replace(OBSERVED, advertised="", kube_proxy_server="https://x:6443"))
    ]
    assert "pods of this node are not led to its agent at 10.255.0.1" in texts[0]
    assert "ConfigMap kube-system/kube-proxy to https://10.255.0.1:6443" in texts[1]


def test_kube_proxy_is_looked_up_in_its_config_map() -> None:
    cluster = MemoryCluster.made()
    joined = find_cluster(load_join(JOIN_TEXT), MemoryConnector(cluster), FACTS, downloads=False)
    assert kube_proxy_server(joined, MemoryConnector(cluster)) == ""
    config = Kubeconfig(
        cluster_name="c", server="https://lb:6443", user_name="u", ca=b"ca", credential=BearerToken("t")
    )
    cluster.put("kube-proxy", **{"kubeconfig.conf": config.to_bytes().decode()})
    assert kube_proxy_server(joined, MemoryConnector(cluster)) == "https://lb:6443"
    refusing = MemoryConnector(cluster, when_user=lambda _name: NotReady("no", error_class="forbidden"))
    assert kube_proxy_server(joined, refusing) == ""


def test_unit_is_there_and_open_before_the_kubelet_gets_its_files() -> None:
    steps = planned().steps
    assert [step.phase for step in steps[:7]] == ["tunnel"] * 7
    paths = [step.action.path for step in steps[:3] if isinstance(step.action, WriteFile)]
    assert paths == [f"{PKI}/ca.crt", f"{PKI}/agent.crt", f"{PKI}/agent.key"]
    actions = [step.action for step in steps[3:7]]
    assert actions[0] == ControlLink(address=BIND, link="konnectivity0", verb="add")
    assert isinstance(actions[1], WriteFile)
    assert actions[1].path == UNIT_FILE
    assert b"ExecStart=/usr/bin/garboard tunnel agent --proxy-server-host=k.example" in actions[1].content
    assert actions[2] == ControlUnitFile(service="konnectivity-agent", verb="enable")
    assert actions[3] == AwaitGate(gate=TunnelOpen(server=f"https://{BIND}:6443", timeout_s=60))


def test_static_pod_is_there_before_the_kubelet_and_waited_for_after_it() -> None:
    actions = [step.action for step in planned(STATIC_POD).steps]
    manifest = next(each for each in actions if isinstance(each, WriteFile) and each.path == MANIFEST)
    gate = next(each for each in actions if isinstance(each, AwaitGate) and isinstance(each.gate, TunnelOpen))
    start = next(each for each in actions if isinstance(each, ControlService) and each.verb == "start")
    assert actions.index(manifest) < actions.index(start) < actions.index(gate)
    assert manifest.mode == 0o600
    assert not any(isinstance(each, ControlUnitFile) for each in actions)


@pytest.mark.parametrize("tunnel", [OBSERVED, STATIC_POD], ids=["unit", "static pod"])
def test_bootstrap_kubeconfig_names_the_agents_address(tunnel: ObservedTunnel) -> None:
    path = f"/etc/kubernetes/{FILE_NAME}"
    writes = [step.action for step in planned(tunnel).steps if isinstance(step.action, WriteFile)]
    (kubeconfig,) = [read_yaml(each.content, source=path) for each in writes if each.path == path]
    assert isinstance(kubeconfig, dict)
    assert f"'server': 'https://{BIND}:6443'" in str(kubeconfig["clusters"])


def test_key_is_secret_and_not_shown() -> None:
    plan = planned()
    (key,) = [s.action for s in plan.steps if isinstance(s.action, WriteFile) and s.action.path == f"{PKI}/agent.key"]
    assert (key.mode, key.folder_mode, key.is_secret) == (0o600, 0o700, True)
    shown = plan_as_json(plan)
    assert "'KEY'" not in str(shown)
    assert "'CERT'" in str(shown)


def test_what_is_there_already_gets_no_step() -> None:
    files = {f"{PKI}/ca.crt": b"CA", f"{PKI}/agent.crt": b"CERT", f"{PKI}/agent.key": b"KEY"}
    plan = planned(machine=MemoryMachine(files=dict(files), services=set()))
    assert not [s for s in plan.steps if isinstance(s.action, WriteFile) and s.action.path in files]
    assert f"{PKI}/agent.key is as it should be" in [each.text for each in plan.notes]


def test_join_without_a_tunnel_has_no_such_step() -> None:
    context = context_of(MemoryCluster.made(), MemoryMachine(services=set()), JOIN_TEXT)
    assert "tunnel" not in {step.phase for step in plan_workflow(select(JOIN), context).steps}
