from dataclasses import replace

import pytest

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.manifests.kubelet import (
    config_file,
    config_source,
    flags_file,
    instance_config_file,
    kubelet_arguments,
    kubelet_files,
    with_resolv_conf,
)
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import Arg
from garboard.model.node import NodeRegistration, Taint
from tests.support.manifests.nodes import HOST

NODE = NodeRegistration(name="node-1", cri_socket="unix:///run/c.sock")
CLUSTER = ClusterConfiguration()
WITHOUT_INSTANCE_CONFIG = ClusterConfiguration(
    kubernetes_version="v1.36.4", feature_gates={"NodeLocalCRISocket": False}
)


def flags(registration: NodeRegistration, cluster: ClusterConfiguration = CLUSTER, *, is_worker: bool = False) -> str:
    kind = "JoinConfiguration" if is_worker else "InitConfiguration"
    found = kubelet_arguments(cluster, registration, HOST, kind=kind, registers_taints=is_worker)
    return flags_file(found).content.decode()


@pytest.mark.parametrize(
    ("registration", "text"),
    [
        pytest.param(NODE, "", id="nothing to say"),
        pytest.param(replace(NODE, name="other"), "--hostname-override=other", id="another name"),
        pytest.param(
            replace(NODE, kubelet_extra_args=(Arg("v", "4"), Arg("hostname-override", "x"))),
            "--v=4 --hostname-override=x",
            id="the user's own name",
        ),
        pytest.param(
            replace(NODE, kubelet_extra_args=(Arg("node-labels", 'a="b"'),)), '--node-labels=a=\\"b\\"', id="quotes"
        ),
    ],
)
def test_flags_are_quoted_as_go_quotes_them(registration: NodeRegistration, text: str) -> None:
    assert flags(registration) == f'KUBELET_KUBEADM_ARGS="{text}"\n'


def test_only_a_worker_registers_its_taints() -> None:
    taints = (Taint(key="a", value="b", effect="NoExecute"), Taint(key="c", effect="NoSchedule"))
    tainted = replace(NODE, taints=taints)
    assert (
        flags(tainted, is_worker=True) == 'KUBELET_KUBEADM_ARGS="--register-with-taints=a=b:NoExecute,c:NoSchedule"\n'
    )
    assert flags(tainted) == 'KUBELET_KUBEADM_ARGS=""\n'


def test_the_socket_is_a_flag_where_there_is_no_instance_config() -> None:
    assert "--container-runtime-endpoint=unix:///run/c.sock" in flags(NODE, WITHOUT_INSTANCE_CONFIG)
    files = kubelet_files({}, WITHOUT_INSTANCE_CONFIG, NODE, HOST, kind="InitConfiguration", registers_taints=False)
    assert [file.path for file in files] == ["/var/lib/kubelet/kubeadm-flags.env", "/var/lib/kubelet/config.yaml"]


def test_what_is_the_nodes_own_goes_over_patches() -> None:
    def patcher(target: str, document: Json, /) -> Json:
        return {"maxPods": 5, "containerRuntimeEndpoint": "unix:///patched.sock", "target": target}

    file = config_file({"maxPods": 1}, CLUSTER, NODE, HOST, patcher)
    assert file.content == (b"containerRuntimeEndpoint: unix:///run/c.sock\nmaxPods: 5\ntarget: kubeletconfiguration\n")
    assert instance_config_file(NODE).content == b'containerRuntimeEndpoint: "unix:///run/c.sock"\n'


def test_a_patch_that_leaves_no_map_is_refused() -> None:
    with pytest.raises(BadDocument):
        config_file({}, CLUSTER, NODE, HOST, lambda _target, _document: [])


def test_the_resolver_of_systemd_is_passed_by() -> None:
    resolved = replace(HOST, is_systemd_resolved_active=True)
    assert with_resolv_conf({}, resolved) == {"resolvConf": "/run/systemd/resolve/resolv.conf"}
    assert with_resolv_conf({"resolvConf": ""}, resolved) == {"resolvConf": ""}
    assert with_resolv_conf({}, HOST) == {}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (("containerRuntimeEndpoint",), "nodeRegistration.criSocket"),
        (("maxPods",), "maxPods"),
        (("clusterDNS", 0), "networking.serviceSubnet"),
        (("authentication", "x509", "clientCAFile"), "certificatesDir"),
        (("authentication", "webhook", "enabled"), "authentication.webhook.enabled"),
        (("tlsCipherSuites", 1), "tlsCipherSuites"),
        (("resolvConf",), "systemd-resolved is active"),
        (("healthzPort",), "None"),
    ],
)
def test_a_field_tells_what_decides_it(path: tuple[str | int, ...], source: str) -> None:
    given: dict[str, Json] = {
        "maxPods": 5, "authentication": {"webhook": {"enabled": False}}, "tlsCipherSuites": ["a", "b"]
    }  # fmt: skip
    assert str(config_source(path, given, "InitConfiguration")) == source
