"""Every check of init, join and a control plane that joins: what it finds, and under which name."""

from dataclasses import replace

import pytest

from garboard.errors import BadUsage
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.component import ApiServer, Arg, ExternalEtcd
from garboard.model.lifecycle import FileDiscovery, JoinConfiguration, JoinControlPlane, TokenDiscovery
from garboard.model.minors import facts_of
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.model.version import KubernetesVersion
from garboard.phases.preflight import (
    ObservedRuntime,
    PreflightFinding,
    classify,
    control_plane_checks,
    join_checks,
    run_checks,
)
from tests.support.phases.preflight.inspectors import FILES, KERNEL, MemoryInspector

SOCKET = "unix:///run/containerd/containerd.sock"
CLUSTER = ClusterConfiguration(kubernetes_version="v1.37.1")
ENDPOINT = ApiEndpoint(advertise_address="192.0.2.10")
NODE = NodeRegistration(name="node-1", cri_socket=SOCKET)
V1_MOUNTS = b"tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
V1_GROUPS = b"#subsys_name hierarchy num enabled\n" + b"".join(
    f"{name} 1 1 1\n".encode() for name in ("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids")
)
V1_FILES = {"/proc/mounts": V1_MOUNTS, "/proc/cgroups": V1_GROUPS}


def found(
    inspector: MemoryInspector, cluster: ClusterConfiguration = CLUSTER, *, is_joining: bool = False
) -> list[PreflightFinding]:
    return list(run_checks(control_plane_checks(cluster, ENDPOINT, NODE, is_joining=is_joining), inspector))


def found_by_join(inspector: MemoryInspector, config: JoinConfiguration) -> list[PreflightFinding]:
    return list(run_checks(join_checks(config, facts_of(KubernetesVersion(1, 37, 1))), inspector))


def names(findings: list[PreflightFinding]) -> list[str]:
    return [each.check for each in findings]


def worker(endpoint: str = "192.0.2.10:6443") -> JoinConfiguration:
    discovery = TokenDiscovery(token="abcdef.0123456789abcdef", api_server_endpoint=endpoint)
    return JoinConfiguration(discovery=discovery, node_registration=NODE)


def test_a_good_machine_passes_everything() -> None:
    assert found(MemoryInspector()) == []
    assert found_by_join(MemoryInspector(), worker()) == []


@pytest.mark.parametrize(
    ("inspector", "name", "told", "is_error"),
    [
        pytest.param(MemoryInspector(cpus=1), "NumCPU", "1 CPUs", True, id="cpu"),
        pytest.param(MemoryInspector(memory=1699), "Mem", "1699 MB", True, id="memory"),
        pytest.param(MemoryInspector(taken={("", 6443)}), "Port-6443", "port 6443 is in use", True, id="api port"),
        pytest.param(MemoryInspector(taken={("", 10259)}), "Port-10259", "in use", True, id="scheduler port"),
        pytest.param(MemoryInspector(taken={("", 10257)}), "Port-10257", "in use", True, id="manager port"),
        pytest.param(MemoryInspector(taken={("", 10250)}), "Port-10250", "in use", True, id="kubelet port"),
        pytest.param(MemoryInspector(taken={("", 2380)}), "Port-2380", "in use", True, id="etcd port"),
        pytest.param(
            MemoryInspector(files={**FILES, "/etc/kubernetes/manifests/etcd.yaml": b""}),
            "FileAvailable--etc-kubernetes-manifests-etcd.yaml",
            "exists already",
            True,
            id="manifest",
        ),
        pytest.param(
            MemoryInspector(folders={"/var/lib/etcd": ["wal"]}), "DirAvailable--var-lib-etcd", "not empty", True,
            id="data",
        ),
        pytest.param(
            MemoryInspector(files={**FILES, "/proc/sys/net/ipv4/ip_forward": b"0\n"}),
            "FileContent--proc-sys-net-ipv4-ip_forward",
            "not set to 1",
            True,
            id="forwarding",
        ),
        pytest.param(
            MemoryInspector(programs={"cp", "mount"}), "FileExisting-losetup", "not on PATH", True, id="program"
        ),
        pytest.param(MemoryInspector(seen=ObservedRuntime("no CNI yet")), "CRI", "no CNI yet", True, id="runtime"),
        pytest.param(
            MemoryInspector(seen=ObservedRuntime("", False)), "ContainerRuntimeVersion", "kubelets of 1.38", False,
            id="driver",
        ),
        pytest.param(
            MemoryInspector(files={**FILES, "/proc/swaps": b"Filename\n/dev/vda2\n"}), "Swap", "swap is on", False,
            id="swap",
        ),
        pytest.param(MemoryInspector(names=set()), "Hostname", "does not resolve: Name or", False, id="host name"),
        pytest.param(MemoryInspector(kubelet="v1.33.9"), "KubeletVersion", "1.34 at least", True, id="old kubelet"),
        pytest.param(
            MemoryInspector(kubelet="v1.38.0-rc.1"), "KubeletVersion", "newer than the control", True, id="newer"
        ),
        pytest.param(MemoryInspector(services={}), "Service-kubelet", "no service kubelet", False, id="no service"),
        pytest.param(
            MemoryInspector(services={"kubelet": "disabled"}), "Service-kubelet", "systemctl enable", False,
            id="disabled",
        ),
        pytest.param(
            MemoryInspector(services={"kubelet": "enabled", "firewalld": "active"}),
            "Firewalld",
            "ports 6443, 10250",
            False,
            id="firewall",
        ),
        pytest.param(
            MemoryInspector(release="4.19.0"), "SystemVerification", "4.19.0 is not supported", True, id="kernel"
        ),
        pytest.param(
            MemoryInspector(kernel={**KERNEL, "CONFIG_MEMCG": "n"}), "SystemVerification", "CONFIG_MEMCG", True,
            id="setting",
        ),
        pytest.param(MemoryInspector(kernel=None), "SystemVerification", "cannot be read", True, id="no settings"),
        pytest.param(
            MemoryInspector(files={**FILES, **V1_FILES}, folders={"/sys/fs/cgroup/memory": ["x"]}),
            "SystemVerification",
            "cgroup v1",
            True,
            id="cgroup v1",
        ),
        pytest.param(
            MemoryInspector(variables={"HTTPS_PROXY": "http://u:p@proxy:3128", "NO_PROXY": "10.0.0.0/8"}),
            "HTTPProxy",
            "http://proxy:3128",
            False,
            id="proxy without its password",
        ),
        pytest.param(
            MemoryInspector(variables={"https_proxy": "proxy:3128", "NO_PROXY": "192.0.2.10"}),
            "HTTPProxyCIDR",
            "10.96.0.0/12",
            False,
            id="proxy to services",
        ),
    ],
)  # fmt: skip
def test_each_fault_is_found_by_kubeadms_name(inspector: MemoryInspector, name: str, told: str, is_error: bool) -> None:
    first, *others = found(inspector)
    assert (first.check, first.is_error) == (name, is_error)
    assert told in first.text
    assert set(names(others)) <= {name}
    assert "p@" not in first.text


def test_runtime_that_is_not_there_is_told_by_both_checks() -> None:
    assert names(found(MemoryInspector(seen=None))) == ["CRI", "ContainerRuntimeVersion"]


def test_machine_without_kubelet_is_told_by_both_checks() -> None:
    assert names(found(MemoryInspector(kubelet=None))) == ["SystemVerification", "KubeletVersion"]


def test_machine_without_service_manager_is_only_warned_about() -> None:
    findings = found(MemoryInspector(manager=False))
    assert names(findings) == ["Firewalld", "Service-kubelet"]
    assert not any(each.is_error for each in findings)


@pytest.mark.parametrize(("version", "is_found"), [("v1.36.4", True), ("v1.37.1", False)])
def test_ports_are_tried_where_the_minor_tries_them(version: str, is_found: bool) -> None:
    """Somebody listens on the loopback at etcd's port: kubeadm 1.36 sees it, 1.37 asks only the node's own address."""
    inspector = MemoryInspector(taken={("127.0.0.1", 2379)}, kubelet="v1.36.4")
    assert (names(found(inspector, replace(CLUSTER, kubernetes_version=version))) == ["Port-2379"]) is is_found


def test_bind_address_of_extra_args_is_tried_by_1_37() -> None:
    cluster = replace(CLUSTER, api_server=ApiServer(extra_args=(Arg("bind-address", "192.0.2.99"),)))
    assert found(MemoryInspector(taken={("192.0.2.10", 6443)}), cluster) == []
    assert names(found(MemoryInspector(taken={("192.0.2.99", 6443)}), cluster)) == ["Port-6443"]


def test_dual_stack_wants_both_forwardings() -> None:
    cluster = replace(CLUSTER, networking=Networking(pod_subnet="10.244.0.0/16,2001:db8::/56"))
    inspector = MemoryInspector(files={**FILES, "/proc/sys/net/ipv6/conf/default/forwarding": b"0"})
    assert names(found(inspector, cluster)) == ["FileContent--proc-sys-net-ipv6-conf-default-forwarding"]


def test_external_etcd_is_asked_for_its_version_and_its_files_are_looked_for() -> None:
    etcd = ExternalEtcd(endpoints=("https://a:2379",), ca_file="/a", cert_file="/b", key_file="/c")
    cluster = replace(CLUSTER, etcd=etcd)
    inspector = MemoryInspector(etcd="3.5.9", taken={("", 2379)}, folders={"/var/lib/etcd": ["x"]})
    assert names(found(inspector, cluster)) == ["ExternalEtcdVersion", *["ExternalEtcdClientCertificates"] * 3]


def test_joining_control_plane_is_not_asked_twice_what_every_node_is_asked() -> None:
    inspector = MemoryInspector(seen=None, taken={("", 10250), ("", 6443)})
    assert names(found(inspector, is_joining=True)) == ["Port-6443"]


def test_join_looks_for_what_another_cluster_left() -> None:
    files = {f"/etc/kubernetes/{name}": b"" for name in ("kubelet.conf", "bootstrap-kubelet.conf", "pki/ca.crt")}
    inspector = MemoryInspector(files={**FILES, **files})
    prefix = "FileAvailable--etc-kubernetes-"
    assert names(found_by_join(inspector, worker())) == [
        f"{prefix}kubelet.conf", f"{prefix}bootstrap-kubelet.conf", f"{prefix}pki-ca.crt"
    ]  # fmt: skip
    control_plane = replace(worker(), control_plane=JoinControlPlane())
    assert f"{prefix}pki-ca.crt" not in names(found_by_join(inspector, control_plane))


def test_join_asks_for_forwarding_only_where_the_endpoint_is_an_address() -> None:
    inspector = MemoryInspector(files={**FILES, "/proc/sys/net/ipv4/ip_forward": b"0"})
    assert names(found_by_join(inspector, worker())) == ["FileContent--proc-sys-net-ipv4-ip_forward"]
    assert found_by_join(inspector, worker("api.example.com:6443")) == []
    assert found_by_join(inspector, replace(worker(), discovery=FileDiscovery(kube_config_path="x"))) == []


def test_ignored_errors_become_warnings_whatever_the_case() -> None:
    findings = [
        PreflightFinding("Port-6443", "in use"),
        PreflightFinding("Swap", "on", is_error=False),
        PreflightFinding("CRI", "gone"),
    ]
    verdict = classify(findings, ["port-6443"])
    assert names(list(verdict.errors)) == ["CRI"]
    assert names(list(verdict.warnings)) == ["Port-6443", "Swap"]
    assert classify(findings, ["ALL"]).errors == ()


def test_all_stands_alone() -> None:
    with pytest.raises(BadUsage, match="all must not be combined"):
        classify([], ["all", "Swap"])
