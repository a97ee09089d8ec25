"""What reset leaves on a machine, beside the real kubeadm: the same files made, the same command given to both."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from garboard.model import DEFAULT_VERSION
from tests.support.etcd.bolt_files import bolt_file, inline, leaf
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.live import make_node_files
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
_CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ResetConfiguration
force: true
cleanupTmpDir: true
certificatesDir: /etc/kubernetes/mine
"""
# Of the kubelet, of etcd, of people.
_FILES = (
    "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/pods/a/volumes/b/data", "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/tmp/backup/etcd.yaml", "/etc/kubernetes/mine/ca.crt",
    "/etc/kubernetes/patches/etcd.yaml", "/etc/cni/net.d/x.conflist", "/root/.kube/config",
    "/srv/data/file",
)  # fmt: skip
_DATA = "/var/lib/etcd/member/snap/db"
_ALONE = bolt_file(
    leaf(
        2,
        {b"members": inline({b"1": b'{"id": 1, "name": "node-1", "peerURLs": ["https://192.0.2.10:2380"]}'})},
        is_bucket=True,
    )
)


@dataclass(frozen=True)
class Two:
    """The same machine twice."""

    kubeadm: Kubeadm
    theirs: Machine
    ours: Machine

    def reset(self, *arguments: str) -> None:
        for done in (
            self.theirs.run(self.kubeadm.program, "reset", *arguments),
            self.ours.run_garboard("reset", *arguments),
        ):
            assert done.returncode == 0, done.stderr

    def put(self, path: str) -> None:
        for each in (self.theirs, self.ours):
            each.put(path, "x")

    def left(self) -> tuple[set[str], set[str]]:
        return left_on(self.theirs), left_on(self.ours)


def left_on(machine: Machine) -> set[str]:
    """Return every path with its mode, but for the tool's own state."""
    found = set()
    for folder in ("etc/kubernetes", "etc/cni", "etc/passwd", "etc/group", "var/lib", "root/.kube", "srv"):
        top = machine.root / folder
        for path in (top, *top.rglob("*")):
            if "garboard" not in path.parts and path.exists():
                found.add(f"/{path.relative_to(machine.root)} {path.lstat().st_mode:o}")
    return found


@pytest.fixture(scope="module")
def node_files(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine with the files of a control plane; reset does not ask which release made them."""
    made = Machine.make(tmp_path_factory.mktemp("made"))
    make_node_files(made, str(DEFAULT_VERSION))
    return made


@pytest.fixture
def two(kubeadm: Kubeadm, tmp_path: Path) -> Two:
    machines = [Machine.make(tmp_path / name) for name in ("theirs", "ours")]
    made = Two(kubeadm, *machines)
    for path in _FILES:
        made.put(path)
    for machine in machines:
        (machine.root / "var/lib/kubelet/way-out").symlink_to("/srv/data")
    return made


def become_control_planes(two: Two, made: Machine) -> None:
    for machine in (two.theirs, two.ours):
        for name in ("pki", "manifests"):
            machine.put_tree(f"/etc/kubernetes/{name}", made.root / "etc/kubernetes" / name)
        machine.put("/etc/kubernetes/admin.conf", made.text("/etc/kubernetes/admin.conf"))
        machine.put(_DATA, _ALONE)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(["--force"], id="all"),
        pytest.param(["-f", "--cleanup-tmp-dir", "--cert-dir", "/etc/kubernetes/mine"], id="own folders"),
        pytest.param(["--config", "/reset.yaml"], id="configuration file"),
        pytest.param(["--force", "--skip-phases", "remove-etcd-member"], id="member and data stay"),
        pytest.param(["phase", "remove-etcd-member"], id="member alone"),
        pytest.param(["phase", "cleanupnode"], id="files alone"),
    ],
)
def test_control_plane_is_left_as_kubeadm_leaves_it(two: Two, node_files: Machine, line: list[str]) -> None:
    """Nobody answers there, as after an init that failed."""
    become_control_planes(two, node_files)
    for machine in (two.theirs, two.ours):
        machine.put("/reset.yaml", _CONFIG)
    before = left_on(two.ours)
    two.reset(*line)
    theirs, ours = two.left()
    assert ours == theirs
    assert ours < before


def test_worker_is_left_as_kubeadm_leaves_it_but_for_data_that_are_not_its_own(two: Two) -> None:
    two.put("/var/lib/etcd/of-somebody/else")
    two.reset("--force")
    theirs, ours = two.left()
    assert {line.split()[0] for line in ours - theirs} == {
        "/var/lib/etcd/of-somebody", "/var/lib/etcd/of-somebody/else",
    }  # fmt: skip
    assert theirs < ours


@pytest.mark.parametrize(("answer", "is_done"), [("y", True), ("YES", True), ("", False), ("no", False)])
def test_both_ask_before_and_take_the_same_answers(two: Two, answer: str, is_done: bool) -> None:
    for machine, status in (
        (two.theirs, two.theirs.run(two.kubeadm.program, "reset", stdin=answer).returncode),
        (two.ours, two.ours.run_garboard("reset", stdin=answer).returncode),
    ):
        assert (status == 0) == is_done
        assert machine.has("/var/lib/kubelet/config.yaml") != is_done


def test_second_reset_finds_nothing_to_do(two: Two, node_files: Machine) -> None:
    become_control_planes(two, node_files)
    two.reset("--force")
    again = two.ours.run_garboard("reset", "--dry-run")
    assert "nothing to do" in again.stdout
    assert two.ours.run_garboard("reset", "--force").returncode == 0
