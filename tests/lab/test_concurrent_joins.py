"""Control-plane joins that are started at once: a lease lets one at a time change etcd, also when its holder dies."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from garboard.model import DEFAULT_VERSION
from tools.harness.joining import CONFIG, Joining, begun_cluster
from tools.harness.killing import KillPoint
from tools.harness.lab import GARBOARD, RUN

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
NODES = ("cp2", "cp3", "cp4")
_JOIN = ("join", "--config", CONFIG)


@pytest.fixture(scope="module")
def cluster(garboard_in_node: tuple[str, ...]) -> Iterator[Joining]:
    """A first node, and three bare ones that become control planes and are reset between the tests."""
    with begun_cluster(f"t{RUN}-joins", str(DEFAULT_VERSION), garboard_in_node, control_planes=4, workers=0) as made:
        yield made


@pytest.fixture(autouse=True)
def prepared(cluster: Joining) -> Iterator[None]:
    for node in NODES:
        cluster.prepare(node)
    yield
    for node in NODES:
        cluster.lab.exec(node, *cluster.garboard, "reset", "--force", check=False)
        cluster.lab.kubectl("delete", "node", node, "--ignore-not-found")
    assert cluster.members() == {"cp1": False}


@contextmanager
def started(cluster: Joining, node: str, *command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [GARBOARD, "lab", "exec", "--name", cluster.lab.name, node, "--", *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def join_together(cluster: Joining, commands: dict[str, tuple[str, ...]]) -> dict[str, tuple[int, str]]:
    """Start all at once; return the status and the output of each."""
    with ExitStack() as stack:
        running = {node: stack.enter_context(started(cluster, node, *line)) for node, line in commands.items()}
        return {node: (process.wait(400), process.communicate()[0]) for node, process in running.items()}


def all_told(done: dict[str, tuple[int, str]]) -> str:
    """Return the outputs whole, as text: of anything else, pytest shows the beginning and the end."""
    return "\n".join(f"{node} ended with {status}:\n{told}" for node, (status, told) in done.items())


def index_of(cluster: Joining, node: str, kind: str) -> int:
    """Return which step of a node's plan is the first of that kind."""
    plan = json.loads(cluster.lab.exec(node, *cluster.garboard, *_JOIN, "--dry-run", "-o", "json").stdout)
    return next(index for index, step in enumerate(plan["steps"]) if step["action"]["type"] == kind)


def leases(cluster: Joining) -> str:
    return cluster.lab.kubectl("-n", "kube-system", "get", "lease", "garboard-control-plane", "--ignore-not-found")


def test_three_joins_at_once_all_finish(cluster: Joining) -> None:
    done = join_together(cluster, dict.fromkeys(NODES, (*cluster.garboard, *_JOIN)))
    assert [status for status, _ in done.values()] == [0, 0, 0], all_told(done)
    assert cluster.members() == dict.fromkeys(("cp1", *NODES), False)
    assert leases(cluster) == ""
    assert any("[lease] waiting: cp" in told for _, told in done.values()), all_told(done)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "way_back"),
    [
        pytest.param("add-member", ("resume",), id="learner added and never started"),
        pytest.param("promote-member", ("undo",), id="learner started and not promoted"),
    ],
)
def test_others_finish_when_the_holder_is_killed_and_etcd_keeps_no_orphan(
    cluster: Joining, kind: str, way_back: tuple[str, ...]
) -> None:
    point = KillPoint("end" if kind == "add-member" else "begin", index_of(cluster, "cp2", kind))
    killed = cluster.lab.exec("cp2", *point.of(cluster.garboard), *_JOIN, check=False)
    assert killed.returncode != 0
    assert len(cluster.members()) == 2
    done = join_together(cluster, dict.fromkeys(("cp3", "cp4"), (*cluster.garboard, *_JOIN)))
    assert [status for status, _ in done.values()] == [0, 0], all_told(done)
    assert cluster.members() == {"cp1": False, "cp3": False, "cp4": False}
    assert any("has not renewed it for 15 s" in told for _, told in done.values()), all_told(done)
    assert any("the join that added it died" in told for _, told in done.values()), all_told(done)

    cluster.lab.exec("cp2", *cluster.garboard, *way_back)
    if way_back == ("undo",):
        assert cluster.members() == {"cp1": False, "cp3": False, "cp4": False}
        cluster.lab.exec("cp2", *cluster.garboard, *_JOIN)
    assert cluster.members() == dict.fromkeys(("cp1", *NODES), False)
    assert leases(cluster) == ""
