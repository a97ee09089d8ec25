"""A single control plane on its way up: faults that one gate sees, and runs that are killed at every kind of point."""

from collections.abc import Iterator

import pytest

from tools.harness.killing import KillPoint
from tools.harness.lab import RUN, LabUnderTest
from tools.harness.snapshots import ClusterSnapshots
from tools.harness.upgrading import FAULTS, FORMER, SMALL, TARGET, Fault, Upgrading

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]
# Points of the plan of `apply` that differ in what has to happen afterwards, by a word in the title of their steps.
PLACES = (
    "acquire Lease",
    "save a snapshot",
    "issue certificate etcd-server",
    "remove /etc/kubernetes/manifests/kube-apiserver.yaml",
    "stop the container",
    "remove /etc/kubernetes/manifests/etcd.yaml",
    "wait for the end of",
    "write /etc/kubernetes/manifests/etcd.yaml",
    "write /etc/kubernetes/manifests/kube-apiserver.yaml",
    "to run steadily",
    "API server to be ready",
    "release Lease",
    "put ConfigMap kube-system/kubeadm-config",
    "put Deployment kube-system/coredns",
)


@pytest.fixture
def node(cluster_snapshots: ClusterSnapshots, garboard_in_node: tuple[str, ...]) -> Iterator[Upgrading]:
    """A cluster of one node, its own for each test: etcd does not go back once its cluster version has risen."""
    lab = LabUnderTest(f"t{RUN}-single")
    try:
        cluster_snapshots.up(lab, *SMALL)
        yield Upgrading(lab, garboard_in_node)
    finally:
        lab.lab("down", check=False)


def without_etcd(files: dict[str, str]) -> dict[str, str]:
    return {path: digest for path, digest in files.items() if not path.endswith("/etcd.yaml")}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_node_that_fails_is_taken_back_and_the_cause_is_named(node: Upgrading, fault: Fault) -> None:
    before = node.files("cp1")
    done = node.fail("cp1", fault, "apply", "--yes")
    assert done.returncode == 1
    assert fault.cause in done.stderr
    assert "what the run had done was undone" in done.stderr
    assert without_etcd(node.files("cp1")) == without_etcd(before)
    assert {tag for name, tag in node.tags("cp1").items() if name != "etcd"} == {FORMER}
    assert node.is_ready("cp1")
    node.apply()  # from there it goes up, whichever etcd it has
    assert {tag for name, tag in node.tags("cp1").items() if name != "etcd"} == {TARGET}


@pytest.mark.sampled(28)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("moment", ["begin", "end"])
def test_run_that_was_killed_is_undone_or_resumed(node: Upgrading, place: str, moment: str) -> None:
    shown = node.run("cp1", "upgrade", "apply", TARGET, "--dry-run", "--patches", "/etc/garboard-lab/patches").stdout
    titles = [line for line in shown.splitlines() if line.startswith("[") and "  # " in line]
    point = KillPoint(moment, next(index for index, title in enumerate(titles) if place in title))  # type: ignore[arg-type]
    before = node.files("cp1")
    killed(node, point)
    node.run("cp1", "undo")
    assert without_etcd(node.files("cp1")) == without_etcd(before)
    assert node.is_ready("cp1")
    killed(node, point)
    node.run("cp1", "resume")
    assert {tag for name, tag in node.tags("cp1").items() if name != "etcd"} == {TARGET}
    assert node.is_ready("cp1")
    assert "there is nothing to do" in node.run("cp1", "upgrade", "apply", TARGET, "--yes").stderr


def killed(node: Upgrading, point: KillPoint) -> None:
    words = ("upgrade", "apply", TARGET, "--yes", "--patches", "/etc/garboard-lab/patches")
    done = node.run("cp1", *words, killed_at=point, check=False)
    assert done.returncode not in (0, 1), done.stderr
