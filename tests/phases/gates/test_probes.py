"""Where each gate is probed, by the files of the node, and what counts as open."""

import pytest

from garboard.engine import Gate
from garboard.errors import NotReady
from garboard.model.node import Timeouts
from garboard.phases.gates import (
    Answer,
    ComponentHealthy,
    EtcdHealthy,
    KubeletBootstrapped,
    KubeletHealthy,
    NodeRegistered,
    control_plane_gates,
)
from garboard.pki.kubeconfig import BearerToken, ClientCertificate, Kubeconfig
from tests.support.phases.gates.views import MemoryNodeView, manifest

KUBELET = "/var/lib/kubelet/config.yaml"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"


def component(name: str) -> ComponentHealthy:
    return ComponentHealthy(component=name, timeout_s=4)


@pytest.mark.parametrize(
    ("config", "url"),
    [
        pytest.param(b"{}", "http://127.0.0.1:10248/healthz", id="defaults"),
        pytest.param(
            b"{healthzBindAddress: '::1', healthzPort: 10000}", "http://[::1]:10000/healthz", id="as patches left it"
        ),
    ],
)
def test_kubelet_is_asked_where_its_file_says(config: bytes, url: str) -> None:
    view = MemoryNodeView(files={KUBELET: config})
    probe = KubeletHealthy(timeout_s=4).probe(view)
    assert probe() == f"{url}: Connection refused"
    view.web[url] = Answer(200, "ok")
    assert probe() is None


def test_kubelet_that_tells_no_health_is_not_waited_for() -> None:
    assert KubeletHealthy(timeout_s=4).probe(MemoryNodeView(files={KUBELET: b"healthzPort: 0"}))() is None


@pytest.mark.parametrize(
    ("name", "flags", "url"),
    [
        pytest.param(
            "kube-controller-manager", ("--bind-address=127.0.0.1",), "https://127.0.0.1:10257/healthz", id="manager"
        ),
        pytest.param("kube-scheduler", (), "https://127.0.0.1:10259/livez", id="scheduler without flags"),
        pytest.param(
            "kube-scheduler",
            ("--bind-address=::1", "--secure-port=1", "--secure-port=2"),
            "https://[::1]:2/livez",
            id="moved by extraArgs, the last counts",
        ),
    ],
)
def test_component_is_asked_where_its_manifest_says(name: str, flags: tuple[str, ...], url: str) -> None:
    view = MemoryNodeView(files=manifest(name, *flags))
    probe = component(name).probe(view)
    assert probe() == f"{url}: Connection refused"
    view.web[url] = Answer(200, "ok")
    assert probe() is None


def test_api_server_is_asked_as_a_user_whom_it_knows() -> None:
    url = "https://192.0.2.10:6443/livez"
    view = MemoryNodeView(files=manifest("kube-apiserver", "--advertise-address=192.0.2.10", "--secure-port=6443"))
    view.web[url] = Answer(200, "ok")
    probe = component("kube-apiserver").probe(view)
    assert probe() == f"{url}: Connection refused"
    view.api[url] = Answer(500, "[+]ping ok\n[-]etcd failed: reason withheld\n")
    assert probe() == f"{url} answers 500: [-]etcd failed: reason withheld"
    view.api[url] = Answer(200, "ok")
    assert probe() is None


def test_a_manifest_that_is_not_there_is_nothing_to_wait_for() -> None:
    with pytest.raises(NotReady, match=r"there is no /etc/kubernetes/manifests/kube-scheduler\.yaml"):
        component("kube-scheduler").probe(MemoryNodeView())


def test_node_counts_once_the_kubelet_has_labelled_it() -> None:
    view = MemoryNodeView()
    probe = NodeRegistered(node_name="cp1", timeout_s=4).probe(view)
    assert probe() == "there is no such Node"
    view.objects["Node/cp1"] = {"metadata": {}}
    assert probe() == "the Node has no label kubernetes.io/hostname yet"
    view.objects["Node/cp1"] = {"metadata": {"labels": {"kubernetes.io/hostname": "cp1"}}}
    assert probe() is None


def kubeconfig(credential: ClientCertificate | BearerToken) -> bytes:
    return Kubeconfig(
        cluster_name="kubernetes", server="https://x:1", user_name="u", ca=b"ca", credential=credential
    ).to_bytes()


def test_kubelet_has_its_own_certificate_once_its_kubeconfig_leads_to_one() -> None:
    view = MemoryNodeView()
    probe = KubeletBootstrapped(node_name="w1", timeout_s=4).probe(view)
    assert probe() == f"there is no {KUBELET_CONF}"
    view.files[KUBELET_CONF] = b"{apiVers"
    assert probe() is not None
    view.files[KUBELET_CONF] = kubeconfig(BearerToken("secret"))
    assert probe() == f"{KUBELET_CONF} holds no certificate"
    view.files[KUBELET_CONF] = kubeconfig(ClientCertificate(b"pem", b"key"))
    assert probe() is None


def test_every_gate_says_what_it_looks_at_and_holds_no_secret() -> None:
    gates: list[Gate] = [*control_plane_gates(Timeouts()), KubeletHealthy(timeout_s=1)]
    assert [gate.name for gate in gates] == [
        "a healthy kube-apiserver",
        "a healthy kube-controller-manager",
        "a healthy kube-scheduler",
        "a healthy kubelet",
    ]
    assert [gate.timeout_s for gate in gates] == [240, 240, 240, 1]
    assert [gate.describe()["path"] for gate in gates] == ["/livez", "/healthz", "/livez", "/healthz"]


def test_etcd_that_cannot_decide_is_named_with_who_is_down() -> None:
    gate = EtcdHealthy(timeout_s=2)
    view = MemoryNodeView(etcd="b does not answer")
    assert gate.probe(view)() == "b does not answer"
    view.etcd = ""
    assert gate.probe(view)() is None
    failure = gate.failure("b does not answer", gate.evidence(view))
    assert (failure.exit_code, failure.error_class) == (5, "etcd-unreachable")
    assert failure.message == "etcd has no majority of healthy members after 2 s: b does not answer"
