"""Phases with flags in place of a file, and beside one: kubeadm's command lines, word for word, given to both."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.parity.comparing import differences
from tests.support.parity.credentials import without_chance
from tests.support.parity.kubeadm import Kubeadm
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
CONFIG = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: VERSION\n"
AT_VERSION = "--kubernetes-version=VERSION"

LINES = [
    pytest.param(
        [
            (f"control-plane all {AT_VERSION} --apiserver-extra-args z=1,a=2 --apiserver-extra-args a=3 "
            "--controller-manager-extra-args v=4 --scheduler-extra-args v=5 --apiserver-advertise-address 192.0.2.77 "
            "--apiserver-bind-port 7443 --control-plane-endpoint lb.example --service-cidr 10.0.0.0/16 "
            "--pod-network-cidr 10.1.0.0/16 --image-repository my.example/repo --cert-dir /etc/kubernetes/mine")
        ],
        id="control plane",
    ),
    pytest.param([f"control-plane scheduler {AT_VERSION} --patches /patches"], id="patches"),
    pytest.param([f"control-plane scheduler {AT_VERSION} --patches /nowhere"], id="no such patches"),
    pytest.param(
        [
            (f"certs all {AT_VERSION} --cert-dir /etc/kubernetes/mine --apiserver-cert-extra-sans A.example,192.0.2.1 "
            "--apiserver-cert-extra-sans b.example --service-cidr 10.0.0.0/16,fd00::/112 --service-dns-domain x.local "
            "--control-plane-endpoint lb.example:8443"),
            (f"kubeconfig all {AT_VERSION} --cert-dir /etc/kubernetes/mine --kubeconfig-dir /etc/kubernetes/conf "
            "--node-name Other --control-plane-endpoint lb.example:8443"),
        ],
        id="certificates and kubeconfigs elsewhere",
    ),
    pytest.param([f"certs ca {AT_VERSION}", f"certs apiserver {AT_VERSION}"], id="one certificate after the other"),
    pytest.param([f"certs apiserver {AT_VERSION}"], id="a certificate without its authority"),
    pytest.param([f"certs sa {AT_VERSION}"], id="service account keys alone"),
    pytest.param([f"kubeconfig admin {AT_VERSION}"], id="a kubeconfig without an authority"),
    pytest.param(["etcd local --config /kubeadm.yaml --cert-dir /x"], id="a flag that a file makes pointless"),
    pytest.param(["certs ca --config /kubeadm.yaml", "kubeconfig kubelet --config /kubeadm.yaml --node-name Other"],
                 id="the name of the node beside a file"),
    pytest.param(["kubelet-start --config /kubeadm.yaml --node-name other"], id="another name for the kubelet"),
    pytest.param(["kubelet-start --config /kubeadm.yaml --cri-socket unix:///x.sock"], id="a socket beside a file"),
    pytest.param([f"certs ca {AT_VERSION} --nope"], id="unknown flag"),
    pytest.param(["certs nope"], id="unknown phase"),
    pytest.param([f"certs apiserver {AT_VERSION} --apiserver-advertise-address nope"], id="no address"),
    pytest.param([f"control-plane all {AT_VERSION} --apiserver-advertise-address fe80::1"], id="link-local address"),
    pytest.param([f"control-plane apiserver {AT_VERSION} --apiserver-bind-port 0x1bb -v=1"], id="hexadecimal port"),
    pytest.param([f"control-plane apiserver {AT_VERSION} --apiserver-bind-port 010"], id="octal port"),
    pytest.param([f"control-plane apiserver {AT_VERSION} --apiserver-bind-port 0"], id="port 0"),
    pytest.param([f"control-plane scheduler {AT_VERSION}+a_b"], id="a build that is none"),
    pytest.param(["certs ca --kubernetes-version v1.20.0"], id="a version that is too old"),
    pytest.param(["certs ca --kubernetes-version nope"], id="no version"),
    pytest.param([f"control-plane apiserver {AT_VERSION} --feature-gates Nope=true"], id="unknown gate"),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lines", LINES)
def test_command_lines_do_what_they_do_with_kubeadm(kubeadm: Kubeadm, tmp_path: Path, lines: list[str]) -> None:
    statuses, files = [], []
    for name in ("theirs", "ours"):
        machine = Machine.make(tmp_path / name)
        run = partial(machine.run, kubeadm.program) if name == "theirs" else machine.run_garboard
        machine.put("/kubeadm.yaml", CONFIG.replace("VERSION", kubeadm.version))
        machine.put("/patches/kube-scheduler.yaml", "metadata: {annotations: {who: me}}\n")
        done = [run("init", "phase", *_words(line, kubeadm.version)) for line in lines]
        assert not any("Traceback" in each.stderr for each in done)
        statuses.append([each.returncode == 0 for each in done])
        files.append(without_chance(machine.files("/etc", "/var")))
    theirs, ours = statuses
    assert ours == theirs
    assert differences(files[1], files[0]) == ""


def _words(line: str, version: str) -> list[str]:
    return line.replace("VERSION", version).split()
