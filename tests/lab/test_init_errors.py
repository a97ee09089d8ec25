"""Causes that an error must name, injected one after the other into one bare machine, which is left as it was."""

from collections.abc import Iterator

import pytest

from tests.support.lab import first_node
from tests.support.lab.first_node import CONFIG, put_config
from tests.support.lab.node_tree import node_tree, unexplained
from tools.harness.lab import RUN, LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

DOCUMENTS = first_node.DOCUMENTS.replace("VERSION", "v1.37.1")
QUICK = "timeouts: {kubeletHealthCheck: 12s, controlPlaneComponentHealthCheck: 40s, kubernetesAPICall: 12s}\n"
DIAGNOSTICS = "/tmp/why"


@pytest.fixture(scope="module")
def machine() -> Iterator[LabUnderTest]:
    lab = LabUnderTest(f"t{RUN}-errors")
    lab.lab("up", "--by", "none", "--control-planes", "1", "--workers", "0")
    yield lab
    lab.lab("down")


def changed(old: str, new: str) -> str:
    assert old in DOCUMENTS
    return DOCUMENTS.replace(old, new, 1)


def timely(text: str) -> str:
    return text.replace("localAPIEndpoint", f"{QUICK}localAPIEndpoint", 1)


def refused(lab: LabUnderTest, documents: str, *flags: str, status: int) -> str:
    """Run init, which must fail and leave nothing; return what it said."""
    put_config(lab, documents)
    before = node_tree(lab, "cp1")
    ended = lab.exec("cp1", "garboard", "init", "--config", CONFIG, *flags, check=False)
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    assert unexplained(before, node_tree(lab, "cp1"), (DIAGNOSTICS,)) == []
    assert lab.exec("cp1", "systemctl", "is-active", "kubelet", check=False).stdout != "active\n"
    return ended.stderr


def test_port_in_use(machine: LabUnderTest) -> None:
    listen = "import socket, time; s = socket.create_server(('', 6443)); print('up', flush=True); time.sleep(60)"
    machine.exec("cp1", "sh", "-c", f'nohup python3 -c "{listen}" >/tmp/up 2>&1 & echo $! >/tmp/pid')
    machine.exec("cp1", "sh", "-c", "until grep -q up /tmp/up; do sleep 0.1; done")
    try:
        said = refused(machine, DOCUMENTS, status=4)
    finally:
        machine.exec("cp1", "sh", "-c", "kill $(cat /tmp/pid)")
    assert "[Port-6443] port 6443 is in use" in said
    assert "--ignore-preflight-errors=Port-6443" in said


def test_wrong_runtime_socket(machine: LabUnderTest) -> None:
    socket = "criSocket: unix:///run/nowhere.sock, ignorePreflightErrors"
    said = refused(machine, changed("ignorePreflightErrors", socket), status=4)
    assert "[CRI] the container runtime does not answer" in said
    assert "/run/nowhere.sock" in said


def test_kubelet_that_crashes(machine: LabUnderTest) -> None:
    flag = "kubeletExtraArgs: [{name: no-such-flag, value: x}], ignorePreflightErrors"
    said = refused(machine, timely(changed("ignorePreflightErrors", flag)), "--undo-on-failure", status=1)
    assert "in vain for a healthy kubelet" in said
    assert "no-such-flag" in said
    assert "journalctl -xeu kubelet" in said


def test_api_server_with_a_bad_flag(machine: LabUnderTest) -> None:
    flag = "apiServer: {extraArgs: [{name: no-such-flag, value: x}]}\nkubernetesVersion"
    documents = timely(changed("kubernetesVersion", flag))
    said = refused(machine, documents, "--undo-on-failure", "--diagnostics", DIAGNOSTICS, status=1)
    assert "in vain for a healthy kube-apiserver" in said
    assert "unknown flag: --no-such-flag" in said
    assert "crictl logs" in said
    bundle = machine.exec(
        "cp1", "sh", "-c", f"cd {DIAGNOSTICS} && find . -type f | sort && cat $(find . -type f)"
    ).stdout
    for name in ("./error.txt", "./plan.json", "./kubelet.log", "./files/etc-kubernetes-manifests-kube-apiserver.yaml"):
        assert name in bundle
    assert "containers/kube-apiserver-" in bundle
    for secret in ("PRIVATE KEY", "abcdef.0123456789abcdef", "client-key-data"):
        assert secret not in bundle
    assert machine.exec("cp1", "stat", "-c", "%a", DIAGNOSTICS).stdout == "700\n"


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("nowhere.example.com:6443", "DNS: nowhere.example.com does not resolve"),
        ("10.89.0.250:6443", "endpoint: nobody answers at 10.89.0.250:6443: "),
    ],
    ids=["no such name", "nobody there"],
)
def test_shared_endpoint_that_cannot_be_reached(machine: LabUnderTest, endpoint: str, told: str) -> None:
    """Only without local mode does the kubelet of the first node need the shared endpoint."""
    shared = f"featureGates: {{ControlPlaneKubeletLocalMode: false}}\ncontrolPlaneEndpoint: {endpoint}"
    documents = timely(changed("controlPlaneEndpoint: control-plane.lab:6443", shared))
    said = refused(machine, documents, "--undo-on-failure", status=1)
    assert "in vain for Node cp1 in the cluster" in said
    assert told in said
    assert "kubelet: its service is active, its health: ok" in said
    assert "kube-apiserver: container" in said
