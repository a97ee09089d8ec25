"""What an upgrade reads of the node that it runs on: its name, its API server, and the socket of its runtime."""

from collections.abc import Mapping

import pytest

from garboard.errors import BadDocument, InvalidValue, NotReady
from garboard.manifests.kubelet import CONFIG_FILE, FLAGS_FILE, INSTANCE_CONFIG_FILE
from garboard.model.node import ApiEndpoint
from garboard.model.paths import KUBELET_CONF, manifest_path
from garboard.phases.upgrade.context import ThisNode, observe_this_node
from garboard.pki import KUBECONFIGS
from garboard.pki.credentials import kubeconfig_file
from tests.support.phases.machines import MemoryMachine
from tests.support.phases.upgraded_nodes import kubelet_conf, loaded, manifests_of
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, issue_tree

SPEC = next(each for each in KUBECONFIGS if each.file_name == "kubelet.conf")
OWN = kubeconfig_file(SPEC, INPUTS, issue_tree()["ca"], KEYS, NOW).data.decode()
LISTENING = ("unix:///run/first.sock", "unix:///run/second.sock")
INSTANCE = {INSTANCE_CONFIG_FILE: "containerRuntimeEndpoint: unix:///run/instance.sock\n"}
FLAG = {FLAGS_FILE: 'KUBELET_KUBEADM_ARGS="--v=2 --container-runtime-endpoint=unix:///run/flag.sock"\n'}
CONFIG = {CONFIG_FILE: "containerRuntimeEndpoint: unix:///run/config.sock\n"}
SILENT = {FLAGS_FILE: 'KUBELET_KUBEADM_ARGS="--v=2"\n', CONFIG_FILE: 'containerRuntimeEndpoint: ""\n'}


def observed(files: Mapping[str, str], *sockets: str) -> ThisNode:
    texts = {KUBELET_CONF: OWN, **files}
    return observe_this_node(MemoryMachine({path: text.encode() for path, text in texts.items()}), sockets)


@pytest.mark.parametrize(
    ("files", "socket"),
    [
        pytest.param({**INSTANCE, **FLAG, **CONFIG}, "unix:///run/instance.sock", id="setting of the node"),
        pytest.param({**FLAG, **CONFIG}, "unix:///run/flag.sock", id="flag of the kubelet"),
        pytest.param(CONFIG, "unix:///run/config.sock", id="configuration of the kubelet"),
        pytest.param(SILENT, LISTENING[0], id="nothing is set, and two listen"),
        pytest.param({}, LISTENING[0], id="no file, and two listen"),
    ],
)
def test_runtime_is_the_one_that_the_kubelet_was_told_to_use_or_else_the_first_that_listens(
    files: Mapping[str, str], socket: str
) -> None:
    assert observed(files, *LISTENING).cri_socket == socket


@pytest.mark.parametrize("files", [INSTANCE, FLAG, CONFIG], ids=["setting", "flag", "configuration"])
def test_runtime_that_is_set_needs_not_listen(files: Mapping[str, str]) -> None:
    assert observed(files).cri_socket.startswith("unix:///run/")


@pytest.mark.parametrize("files", [{}, SILENT], ids=["no file", "files without a socket"])
def test_no_runtime_at_all_is_refused_with_the_next_command(files: Mapping[str, str]) -> None:
    with pytest.raises(NotReady, match="no container runtime listens on this node, and no setting") as caught:
        observed(files)
    assert caught.value.exit_code == 4
    assert "systemctl start containerd" in str(caught.value.hint)
    assert INSTANCE_CONFIG_FILE in str(caught.value.hint)


def test_setting_that_cannot_be_read_is_refused_with_its_file() -> None:
    with pytest.raises(BadDocument, match=INSTANCE_CONFIG_FILE):
        observed({INSTANCE_CONFIG_FILE: "a: [\n"}, *LISTENING)


def test_api_server_is_where_its_manifest_says() -> None:
    manifest = manifests_of(loaded())["kube-apiserver"].decode()
    moved = manifest.replace("--secure-port=6443", "--secure-port=8443")
    found = observed({manifest_path("kube-apiserver"): moved}, *LISTENING)
    assert (found.name, found.endpoint) == ("node-1", ApiEndpoint(advertise_address="192.0.2.10", bind_port=8443))
    assert set(found.manifests) == {"kube-apiserver"}


@pytest.mark.parametrize("left", [("etcd",), ("etcd", "kube-scheduler")])
def test_node_whose_api_server_was_taken_away_is_no_worker(left: tuple[str, ...]) -> None:
    manifests = manifests_of(loaded())
    with pytest.raises(NotReady, match=r"manifests/kube-apiserver\.yaml does not exist, and .*etcd\.yaml") as caught:
        observed({manifest_path(each): manifests[each].decode() for each in left}, *LISTENING)
    assert "garboard status" in str(caught.value.hint)


def test_port_that_is_none_is_refused_with_its_manifest() -> None:
    path = manifest_path("kube-apiserver")
    broken = manifests_of(loaded())["kube-apiserver"].decode().replace("--secure-port=6443", "--secure-port=https")
    with pytest.raises(InvalidValue, match=f"{path}: --secure-port=https is not a port"):
        observed({path: broken}, *LISTENING)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        pytest.param(kubelet_conf("https://a:1").decode(), BadDocument, "does not exist", id="no certificate"),
        pytest.param(OWN.replace("client-certificate-data", "token"), NotReady, "that of nobody", id="a token"),
        pytest.param("[]", BadDocument, "not a kubeconfig", id="not a kubeconfig"),
    ],
)  # fmt: skip
def test_kubeconfig_of_no_node_is_refused(text: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        observed({KUBELET_CONF: text}, *LISTENING)


def test_machine_that_is_no_node_is_refused() -> None:
    with pytest.raises(NotReady, match="this machine is no node of a cluster"):
        observe_this_node(MemoryMachine(), LISTENING)
