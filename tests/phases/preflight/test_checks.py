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
    Finding,
    PreflightFailed,
    RuntimeSeen,
    control_plane_checks,
    examine,
    join_checks,
    judge,
)
from tests.phases.preflight.exams import FILES, KERNEL, MemoryExam

SOCKET = "unix:///run/containerd/containerd.sock"
CLUSTER = ClusterConfiguration(kubernetes_version="v1.37.1")
ENDPOINT = ApiEndpoint(advertise_address="192.0.2.10")
NODE = NodeRegistration(name="node-1", cri_socket=SOCKET)
V1_MOUNTS = b"tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
V1_GROUPS = b"#subsys_name hierarchy num enabled\n" + b"".join(
    f"{name} 1 1 1\n".encode() for name in ("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids")
)
V1_FILES = {"/proc/mounts": V1_MOUNTS, "/proc/cgroups": V1_GROUPS}


def found(exam: MemoryExam, cluster: ClusterConfiguration = CLUSTER, *, is_joining: bool = False) -> list[Finding]:
    return list(examine(control_plane_checks(cluster, ENDPOINT, NODE, is_joining=is_joining), exam))


def found_by_join(exam: MemoryExam, config: JoinConfiguration) -> list[Finding]:
    return list(examine(join_checks(config, facts_of(KubernetesVersion(1, 37, 1))), exam))


def names(findings: list[Finding]) -> list[str]:
    return [each.check for each in findings]


def worker(endpoint: str = "192.0.2.10:6443") -> JoinConfiguration:
    discovery = TokenDiscovery(token="abcdef.0123456789abcdef", api_server_endpoint=endpoint)
    return JoinConfiguration(discovery=discovery, node_registration=NODE)


def test_a_good_machine_passes_everything() -> None:
    assert found(MemoryExam()) == []
    assert found_by_join(MemoryExam(), worker()) == []


@pytest.mark.parametrize(
    ("exam", "name", "told", "is_error"),
    [
        pytest.param(MemoryExam(cpus=1), "NumCPU", "1 CPUs", True, id="cpu"),
        pytest.param(MemoryExam(memory=1699), "Mem", "1699 MB", True, id="memory"),
        pytest.param(MemoryExam(taken={("", 6443)}), "Port-6443", "port 6443 is in use", True, id="api port"),
        pytest.param(MemoryExam(taken={("", 10259)}), "Port-10259", "in use", True, id="scheduler port"),
        pytest.param(MemoryExam(taken={("", 10257)}), "Port-10257", "in use", True, id="manager port"),
        pytest.param(MemoryExam(taken={("", 10250)}), "Port-10250", "in use", True, id="kubelet port"),
        pytest.param(MemoryExam(taken={("", 2380)}), "Port-2380", "in use", True, id="etcd port"),
        pytest.param(
            MemoryExam(files={**FILES, "/etc/kubernetes/manifests/etcd.yaml": b""}),
            "FileAvailable--etc-kubernetes-manifests-etcd.yaml",
            "exists already",
            True,
            id="manifest",
        ),
        pytest.param(
            MemoryExam(folders={"/var/lib/etcd": ["wal"]}), "DirAvailable--var-lib-etcd", "not empty", True, id="data"
        ),
        pytest.param(
            MemoryExam(files={**FILES, "/proc/sys/net/ipv4/ip_forward": b"0\n"}),
            "FileContent--proc-sys-net-ipv4-ip_forward",
            "not set to 1",
            True,
            id="forwarding",
        ),
        pytest.param(MemoryExam(programs={"cp", "mount"}), "FileExisting-losetup", "not on PATH", True, id="program"),
        pytest.param(MemoryExam(seen=RuntimeSeen("no CNI yet")), "CRI", "no CNI yet", True, id="runtime"),
        pytest.param(
            MemoryExam(seen=RuntimeSeen("", False)), "ContainerRuntimeVersion", "kubelets of 1.38", False, id="driver"
        ),
        pytest.param(
            MemoryExam(files={**FILES, "/proc/swaps": b"Filename\n/dev/vda2\n"}), "Swap", "swap is on", False, id="swap"
        ),
        pytest.param(MemoryExam(names=set()), "Hostname", "does not resolve: Name or", False, id="host name"),
        pytest.param(MemoryExam(kubelet="v1.33.9"), "KubeletVersion", "1.34 at least", True, id="old kubelet"),
        pytest.param(MemoryExam(kubelet="v1.38.0-rc.1"), "KubeletVersion", "newer than the control", True, id="newer"),
        pytest.param(MemoryExam(services={}), "Service-kubelet", "no service kubelet", False, id="no service"),
        pytest.param(
            MemoryExam(services={"kubelet": "disabled"}), "Service-kubelet", "systemctl enable", False, id="disabled"
        ),
        pytest.param(
            MemoryExam(services={"kubelet": "enabled", "firewalld": "active"}),
            "Firewalld",
            "ports 6443, 10250",
            False,
            id="firewall",
        ),
        pytest.param(MemoryExam(release="4.19.0"), "SystemVerification", "4.19.0 is not supported", True, id="kernel"),
        pytest.param(
            MemoryExam(kernel={**KERNEL, "CONFIG_MEMCG": "n"}), "SystemVerification", "CONFIG_MEMCG", True, id="setting"
        ),
        pytest.param(MemoryExam(kernel=None), "SystemVerification", "cannot be read", True, id="no settings"),
        pytest.param(
            MemoryExam(files={**FILES, **V1_FILES}, folders={"/sys/fs/cgroup/memory": ["x"]}),
            "SystemVerification",
            "cgroup v1",
            True,
            id="cgroup v1",
        ),
        pytest.param(
            MemoryExam(variables={"HTTPS_PROXY": "http://u:p@proxy:3128", "NO_PROXY": "10.0.0.0/8"}),
            "HTTPProxy",
            "http://proxy:3128",
            False,
            id="proxy without its password",
        ),
        pytest.param(
            MemoryExam(variables={"https_proxy": "proxy:3128", "NO_PROXY": "192.0.2.10"}),
            "HTTPProxyCIDR",
            "10.96.0.0/12",
            False,
            id="proxy to services",
        ),
    ],
)  # fmt: skip
def test_each_fault_is_found_by_kubeadms_name(exam: MemoryExam, name: str, told: str, is_error: bool) -> None:
    first, *others = found(exam)
    assert (first.check, first.is_error) == (name, is_error)
    assert told in first.text
    assert set(names(others)) <= {name}
    assert "p@" not in first.text


def test_runtime_that_is_not_there_is_told_by_both_checks() -> None:
    assert names(found(MemoryExam(seen=None))) == ["CRI", "ContainerRuntimeVersion"]


def test_machine_without_kubelet_is_told_by_both_checks() -> None:
    assert names(found(MemoryExam(kubelet=None))) == ["SystemVerification", "KubeletVersion"]


def test_machine_without_service_manager_is_only_warned_about() -> None:
    findings = found(MemoryExam(manager=False))
    assert names(findings) == ["Firewalld", "Service-kubelet"]
    assert not any(each.is_error for each in findings)


@pytest.mark.parametrize(("version", "is_found"), [("v1.36.4", True), ("v1.37.1", False)])
def test_ports_are_tried_where_the_minor_tries_them(version: str, is_found: bool) -> None:
    """Somebody listens on the loopback at etcd's port: kubeadm 1.36 sees it, 1.37 asks only the node's own address."""
    exam = MemoryExam(taken={("127.0.0.1", 2379)}, kubelet="v1.36.4")
    assert (names(found(exam, replace(CLUSTER, kubernetes_version=version))) == ["Port-2379"]) is is_found


def test_bind_address_of_extra_args_is_tried_by_1_37() -> None:
    cluster = replace(CLUSTER, api_server=ApiServer(extra_args=(Arg("bind-address", "192.0.2.99"),)))
    assert found(MemoryExam(taken={("192.0.2.10", 6443)}), cluster) == []
    assert names(found(MemoryExam(taken={("192.0.2.99", 6443)}), cluster)) == ["Port-6443"]


def test_dual_stack_wants_both_forwardings() -> None:
    cluster = replace(CLUSTER, networking=Networking(pod_subnet="10.244.0.0/16,2001:db8::/56"))
    exam = MemoryExam(files={**FILES, "/proc/sys/net/ipv6/conf/default/forwarding": b"0"})
    assert names(found(exam, cluster)) == ["FileContent--proc-sys-net-ipv6-conf-default-forwarding"]


def test_external_etcd_is_asked_for_its_version_and_its_files_are_looked_for() -> None:
    etcd = ExternalEtcd(endpoints=("https://a:2379",), ca_file="/a", cert_file="/b", key_file="/c")
    cluster = replace(CLUSTER, etcd=etcd)
    exam = MemoryExam(etcd="3.5.9", taken={("", 2379)}, folders={"/var/lib/etcd": ["x"]})
    assert names(found(exam, cluster)) == ["ExternalEtcdVersion", *["ExternalEtcdClientCertificates"] * 3]


def test_joining_control_plane_is_not_asked_twice_what_every_node_is_asked() -> None:
    exam = MemoryExam(seen=None, taken={("", 10250), ("", 6443)})
    assert names(found(exam, is_joining=True)) == ["Port-6443"]


def test_join_looks_for_what_another_cluster_left() -> None:
    files = {f"/etc/kubernetes/{name}": b"" for name in ("kubelet.conf", "bootstrap-kubelet.conf", "pki/ca.crt")}
    exam = MemoryExam(files={**FILES, **files})
    prefix = "FileAvailable--etc-kubernetes-"
    assert names(found_by_join(exam, worker())) == [
        f"{prefix}kubelet.conf", f"{prefix}bootstrap-kubelet.conf", f"{prefix}pki-ca.crt"
    ]  # fmt: skip
    control_plane = replace(worker(), control_plane=JoinControlPlane())
    assert f"{prefix}pki-ca.crt" not in names(found_by_join(exam, control_plane))


def test_join_asks_for_forwarding_only_where_the_endpoint_is_an_address() -> None:
    exam = MemoryExam(files={**FILES, "/proc/sys/net/ipv4/ip_forward": b"0"})
    assert names(found_by_join(exam, worker())) == ["FileContent--proc-sys-net-ipv4-ip_forward"]
    assert found_by_join(exam, worker("api.example.com:6443")) == []
    assert found_by_join(exam, replace(worker(), discovery=FileDiscovery(kube_config_path="x"))) == []


def test_ignored_errors_become_warnings_whatever_the_case() -> None:
    findings = [Finding("Port-6443", "in use"), Finding("Swap", "on", is_error=False), Finding("CRI", "gone")]
    verdict = judge(findings, ["port-6443"])
    assert names(list(verdict.errors)) == ["CRI"]
    assert names(list(verdict.warnings)) == ["Port-6443", "Swap"]
    assert judge(findings, ["ALL"]).errors == ()


def test_all_stands_alone() -> None:
    with pytest.raises(BadUsage, match="all must not be combined"):
        judge([], ["all", "Swap"])


def test_refusal_tells_everything_at_once_and_how_to_go_on() -> None:
    verdict = judge([Finding("CRI", "gone"), Finding("Port-1", "in use"), Finding("CRI", "twice")], [])
    with pytest.raises(PreflightFailed) as failed:
        verdict.refuse()
    assert failed.value.exit_code == 4
    assert "\n  [CRI] gone\n  [Port-1] in use\n  [CRI] twice" in failed.value.message
    assert failed.value.hint is not None
    assert failed.value.hint.endswith("--ignore-preflight-errors=CRI,Port-1")
