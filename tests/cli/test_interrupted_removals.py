"""Undo and reset that are killed and go on later: what somebody else has put in place until then is not removed.

All of it runs where the real machine is read-only but for the scratch folder.
"""

import json
import os
from pathlib import Path

import pytest

from tests.support.host.mounting import in_read_only_machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")

CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: node-1, criSocket: unix:///run/none.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.1
encryptionAlgorithm: ECDSA-P256
"""
# Runs commands below the root, each killed at a point of it if one is given, and puts files in place between them.
_RUN = """
import contextlib, io, json, time
from pathlib import Path
from garboard.cli.main import run
from tools.harness.killing import Points
root = Path(scratch) / "root"
def status_of(point, words, told):
    child = os.fork()
    if child == 0:
        with open(told, "w") as file, contextlib.redirect_stderr(file), contextlib.redirect_stdout(file):
            if point:
                Points(point).watch()
            status = run([*words, "--rootfs", str(root)])
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
for each in json.loads(sys.argv[1]):
    if "files" in each:
        time.sleep(0.02)  # the kernel's clock for files is a few milliseconds behind
        for name in each["files"]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("theirs")
        continue
    told = Path(scratch) / "told"
    status = status_of(each["point"], each["words"], told)
    print(json.dumps({"status": status, "text": told.read_text()}))
"""
SKIPPED = (
    "preflight,kubeconfig,etcd,control-plane,kubelet-start,wait-control-plane,upload-config,upload-certs,"
    "mark-control-plane,bootstrap-token,kubelet-finalize,addon,show-join-command"
)
INIT = ["init", "--config", "/kubeadm.yaml", "--skip-phases", SKIPPED]
RESET = ["reset", "--force", "--cri-socket", "unix:///run/none.sock"]
KILLED = -9
OURS = (
    "etc/kubernetes/pki/ca.crt", "etc/kubernetes/pki/ca.key", "etc/kubernetes/manifests/etcd2.yaml",
    "etc/kubernetes/admin.conf", "var/lib/kubelet/config.yaml",
)  # fmt: skip


def command(*words: str, point: str = "") -> dict[str, object]:
    return {"words": [*words], "point": point}


def put(*names: str) -> dict[str, object]:
    return {"files": [*names]}


def carried_out(scratch: Path, *events: dict[str, object]) -> list[tuple[int, str]]:
    lines = in_read_only_machine(_RUN, scratch, json.dumps(events)).splitlines()
    return [(each["status"], each["text"]) for each in map(json.loads, lines)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/kubeadm.yaml").write_text(CONFIG)
    return tmp_path / "root"


@pytest.fixture
def node(root: Path) -> Path:
    for name in OURS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("ours")
    return root


def contents(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file() and "garboard" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes().decode("utf-8", "replace") for path in files}


@pytest.mark.parametrize("point", ["0 begun", "5 ended", "20 ended"])
def test_undo_that_goes_on_leaves_a_key_that_somebody_has_installed_since(root: Path, point: str) -> None:
    key, other = "etc/kubernetes/pki/ca.key", "etc/kubernetes/pki/notes"
    killed, killed_undo, done = carried_out(
        root.parent, command(*INIT, point="9 ended"), command("undo", point=point), put(key, other), command("undo")
    )
    assert (killed[0], killed_undo[0], done[0]) == (KILLED, KILLED, 0), done[1]
    left = contents(root)
    assert (left[key], left[other]) == ("theirs", "theirs")
    assert "stays as it is" in done[1] or "ca.key" not in done[1]  # its step may be over
    assert {*left} == {"kubeadm.yaml", key, other}


def test_undo_that_goes_on_removes_the_rest_if_nothing_has_come(root: Path) -> None:
    *_, (status, text) = carried_out(
        root.parent, command(*INIT, point="9 ended"), command("undo", point="5 ended"), command("undo")
    )
    assert status == 0, text
    assert {*contents(root)} == {"kubeadm.yaml"}
    assert not (root / "etc/kubernetes/pki").exists()


@pytest.mark.parametrize("name", [
    "etc/kubernetes/pki/ca.crt", "etc/kubernetes/pki/etcd/ca.key", "etc/kubernetes/manifests/etcd2.yaml",
    "etc/kubernetes/admin.conf", "var/lib/kubelet/config.yaml",
])  # fmt: skip
def test_reset_that_goes_on_does_not_empty_what_has_come_since(node: Path, name: str) -> None:
    killed, refused = carried_out(node.parent, command(*RESET, point="0 before"), put(name), command("resume"))
    assert killed[0] == KILLED
    assert refused[0] == 1, refused[1]
    assert "error[stale-plan]" in refused[1]
    assert "garboard reset plans from what is there now, and asks" in refused[1]
    assert contents(node) == {"kubeadm.yaml": CONFIG, **dict.fromkeys(OURS, "ours"), name: "theirs"}
    ((status, text),) = carried_out(node.parent, command(*RESET))
    assert status == 0, text
    assert {*contents(node)} == {"kubeadm.yaml"}


@pytest.mark.parametrize("point", ["0 before", "1 begun", "1 ended", "3 begun"])
def test_reset_that_goes_on_ends_as_planned_if_nothing_has_come(node: Path, point: str) -> None:
    killed, (status, text) = carried_out(node.parent, command(*RESET, point=point), command("resume"))
    assert (killed[0], status) == (KILLED, 0), text
    assert {*contents(node)} == {"kubeadm.yaml"}
