"""Where each gate is looked at, by the files of the node, and what counts as open."""

import pytest

from garboard.documents import write_yaml
from garboard.errors import NotReady
from garboard.model.node import Timeouts
from garboard.phases.waiting import (
    Answer,
    ApiServerReady,
    ComponentHealthy,
    KubeletBootstrapped,
    KubeletHealthy,
    NodeGate,
    NodeRegistered,
    control_plane_gates,
    look_at,
)
from garboard.pki.kubeconfig import BearerToken, ClientCertificate, Kubeconfig
from tests.phases.waiting.worlds import MemoryWorld

KUBELET = "/var/lib/kubelet/config.yaml"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"


def manifest(component: str, *flags: str) -> dict[str, bytes]:
    pod = {"spec": {"containers": [{"command": ["sidecar"]}, {"command": [component, *flags]}]}}
    return {f"/etc/kubernetes/manifests/{component}.yaml": write_yaml(pod).encode()}  # type: ignore[arg-type]


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
    world = MemoryWorld(files={KUBELET: config})
    look = look_at(KubeletHealthy(timeout_s=4), world)
    assert look() == f"{url}: Connection refused"
    world.web[url] = Answer(200, "ok")
    assert look() is None


def test_kubelet_that_tells_no_health_is_not_waited_for() -> None:
    assert look_at(KubeletHealthy(timeout_s=4), MemoryWorld(files={KUBELET: b"healthzPort: 0"}))() is None


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
    world = MemoryWorld(files=manifest(name, *flags))
    look = look_at(component(name), world)
    assert look() == f"{url}: Connection refused"
    world.web[url] = Answer(200, "ok")
    assert look() is None


def test_api_server_is_asked_as_a_user_whom_it_knows() -> None:
    url = "https://192.0.2.10:6443/livez"
    world = MemoryWorld(files=manifest("kube-apiserver", "--advertise-address=192.0.2.10", "--secure-port=6443"))
    world.web[url] = Answer(200, "ok")
    look = look_at(component("kube-apiserver"), world)
    assert look() == f"{url}: Connection refused"
    world.api[url] = Answer(500, "[+]ping ok\n[-]etcd failed: reason withheld\n")
    assert look() == f"{url} answers 500: [-]etcd failed: reason withheld"
    world.api[url] = Answer(200, "ok")
    assert look() is None


def test_a_manifest_that_is_not_there_is_nothing_to_wait_for() -> None:
    with pytest.raises(NotReady, match=r"there is no /etc/kubernetes/manifests/kube-scheduler\.yaml"):
        look_at(component("kube-scheduler"), MemoryWorld())


def test_api_server_is_ready_when_it_says_so() -> None:
    world = MemoryWorld(api={"https://192.0.2.10:6443/readyz": Answer(200, "ok")})
    assert look_at(ApiServerReady(server="https://192.0.2.10:6443", timeout_s=1), world)() is None


def test_node_counts_once_the_kubelet_has_labelled_it() -> None:
    world = MemoryWorld()
    look = look_at(NodeRegistered(node_name="cp1", timeout_s=4), world)
    assert look() == "there is no such Node"
    world.objects["Node/cp1"] = {"metadata": {}}
    assert look() == "the Node has no label kubernetes.io/hostname yet"
    world.objects["Node/cp1"] = {"metadata": {"labels": {"kubernetes.io/hostname": "cp1"}}}
    assert look() is None


def kubeconfig(credential: ClientCertificate | BearerToken) -> bytes:
    return Kubeconfig(
        cluster_name="kubernetes", server="https://x:1", user_name="u", ca=b"ca", credential=credential
    ).to_bytes()


def test_kubelet_has_its_own_certificate_once_its_kubeconfig_leads_to_one() -> None:
    world = MemoryWorld()
    look = look_at(KubeletBootstrapped(node_name="w1", timeout_s=4), world)
    assert look() == f"there is no {KUBELET_CONF}"
    world.files[KUBELET_CONF] = b"{apiVers"
    assert look() is not None
    world.files[KUBELET_CONF] = kubeconfig(BearerToken("secret"))
    assert look() == f"{KUBELET_CONF} holds no certificate"
    world.files[KUBELET_CONF] = kubeconfig(ClientCertificate(b"pem", b"key"))
    assert look() is None


def test_every_gate_says_what_it_looks_at_and_holds_no_secret() -> None:
    gates: list[NodeGate] = [*control_plane_gates(Timeouts()), KubeletHealthy(timeout_s=1)]
    assert [gate.name for gate in gates] == [
        "a healthy kube-apiserver",
        "a healthy kube-controller-manager",
        "a healthy kube-scheduler",
        "a healthy kubelet",
    ]
    assert [gate.timeout_s for gate in gates] == [240, 240, 240, 1]
    assert [gate.describe()["path"] for gate in gates] == ["/livez", "/healthz", "/livez", "/healthz"]
