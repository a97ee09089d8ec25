"""Coordinators: one at a time, killed between parts, and stopped by nodes that fail or that nobody hears of."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from garboard import __version__
from garboard.change.outcomes import ChangeInProgress
from garboard.engine import ClusterPart, ClusterPlan, DeleteObject, NodePart, Plan, PlanRefused, Step
from garboard.errors import GarboardError, NotReady
from garboard.host.runs import RunFolders
from garboard.kube import KubeClient, LeaseFailed, LeaseLost, read_access
from garboard.node.change_apply_via import begin, resume
from garboard.node.coordinator import Coordinator, CoordinatorOptions, CoordinatorStopped
from garboard.node.interpreters.leases import LeaseToken, NodeLeases
from garboard.node.runs import plan_codec
from garboard.node.via import Carrier, Via
from garboard.phases.control_plane_lease import acquire_lease, release_lease
from garboard.pki.kubeconfig import Kubeconfig
from garboard.retry import CLOCK, Clock
from tests.support.kube.api_server import FakeApi
from tests.support.node import simulated_nodes
from tests.support.node.reporters import MemoryReporter

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/garboard-control-plane"
DELETED = Plan((Step(DeleteObject(api_version="v1", kind="ConfigMap", name="a", namespace="b"), "it is old"),))
PLAN = ClusterPlan(
    (
        NodePart(node="cp1", words=("change", "node"), stdin=b"s3cret"),
        NodePart(node="cp2", words=("change", "node")),
        ClusterPart(name="kubeadm-config", plan=DELETED),
        NodePart(node="cp3", words=("change", "node")),
    )
)


class Listener(MemoryReporter):
    """Lets something happen when a line is reported."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: dict[str, Callable[[], None]] = {}

    def report(self, line: str, /) -> None:
        super().report(line)
        for part, happens in self.meanwhile.items():
            if part in line:
                happens()


class Cluster:
    """Simulated nodes, an API server for the Lease, and machines that coordinate."""

    def __init__(self, api: FakeApi, kubeconfig: Kubeconfig, folder: Path) -> None:
        self.api, self.folder, self.reporter = api, folder, Listener()
        self.given: list[tuple[str, LeaseToken]] = []
        self.fails_on_cluster = False
        self.elapsed_s = 0.0
        self._access = read_access(kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
        (folder / "version").write_text(__version__)

    def coordinator(self, node: str = "cp1", **options: Any) -> Coordinator:
        clock = Clock(lambda: self.elapsed_s, self._sleep)
        words = [sys.executable, "-S", "-E", simulated_nodes.__file__, str(self.folder)]
        return Coordinator(
            node,
            Carrier(Via.parse(f"{shlex.join(words)} {{node}}"), self.reporter, clock),
            self.leases(clock),
            RunFolders(self.folder / f"coordinator-{node}"),
            plan_codec(),
            self._on_cluster,
            self.reporter,
            CoordinatorOptions(**options),
        )

    def leases(self, clock: Clock = CLOCK) -> NodeLeases:
        return NodeLeases(lambda: KubeClient(self._access, patience_s=0.0), self.reporter.report, clock=clock)

    def _sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds

    def _on_cluster(self, part: ClusterPart, lease: LeaseToken) -> None:
        if self.fails_on_cluster:
            raise GarboardError("the object has another version")
        self.given.append((part.name, lease))

    def next_of(self, node: str, *behaviours: str) -> None:
        (self.folder / f"{node}.next").write_text(json.dumps(behaviours))

    def killed(self, line: str, work: Callable[[], object]) -> None:
        """Do the work in a process that is killed when the line is reported."""
        pid = os.fork()
        if pid == 0:
            self.reporter.meanwhile[line] = lambda: os.kill(os.getpid(), signal.SIGKILL)
            with suppress(BaseException):
                work()
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL

    @property
    def commands(self) -> list[str]:
        """Return what the nodes were told, without the Lease."""
        path = self.folder / "commands"
        return [line.split(" --lease ")[0] for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def tokens(self) -> set[str]:
        return {line.split(" --lease ")[1] for line in (self.folder / "commands").read_text().splitlines()}

    def states(self, node: str = "cp1") -> list[str]:
        return [each.state for each in self.coordinator(node).records()[-1].parts]


@pytest.fixture
def cluster(api: FakeApi, kubeconfig: Kubeconfig, tmp_path: Path) -> Cluster:
    return Cluster(api, kubeconfig, tmp_path)


ALL = ["cp1: change node", "cp2: change node", "cp3: change node"]


def test_parts_are_taken_in_their_order_under_one_lease(cluster: Cluster) -> None:
    name = cluster.coordinator().begin("change apply", PLAN)
    assert cluster.commands == ALL
    assert cluster.tokens == {f"cp1/{name}:0"}
    assert cluster.given == [("kubeadm-config", LeaseToken(f"cp1/{name}", 0))]
    assert cluster.api.objects == {}
    (record,) = cluster.coordinator().records()
    assert (record.is_open, record.left) == (False, ())
    assert [part.run for part in record.parts] == ["1-change", "1-change", "", "1-change"]
    told = "\n".join(cluster.reporter.lines)
    assert "[coordinator] part 3 of 4: kubeadm-config" in told
    assert "[cp2] working" in told
    kept = [path for path in (cluster.folder / "coordinator-cp1").rglob("*") if path.is_file()]
    assert not any(b"s3cret" in path.read_bytes() for path in kept)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("fail", r"cp2 \(run 1-change\) has failed: it ended with status 1"),
        ("refuse", "cp2 has failed: it ended with status 4"),
        ("lost-open", r"cp2 \(run 1-change\) has failed: .*status 255.*is open"),
        ("lost-nothing", "cp2 did not begin: .*status 255"),
    ],
)
def test_part_that_fails_stops_the_rest_and_is_gone_on_with(cluster: Cluster, behaviour: str, reason: str) -> None:
    cluster.next_of("cp2", behaviour)
    with pytest.raises(CoordinatorStopped, match=f"{reason}.*; left are cp2, kubeadm-config, cp3") as caught:
        cluster.coordinator().begin("change apply", PLAN)
    (record,) = cluster.coordinator().records()
    assert f"resume {record.name}" in (caught.value.hint or "")
    assert cluster.commands == ALL[:2]
    assert cluster.states()[2:] == ["pending", "pending"]
    assert cluster.api.objects[PATH]["spec"]["holderIdentity"] == ""
    assert cluster.coordinator().resume(record.name) == record.name
    again = "cp2: resume 1-change" if behaviour in ("fail", "lost-open") else "cp2: change node"
    assert cluster.commands == [*ALL[:2], again, ALL[2]]
    assert cluster.states() == ["done"] * 4
    assert cluster.api.objects == {}


def test_node_that_answers_255_and_has_done_its_part_is_done(cluster: Cluster) -> None:
    cluster.next_of("cp2", "lost-done")
    cluster.coordinator().begin("change apply", PLAN)
    assert cluster.commands == ALL
    assert cluster.states() == ["done"] * 4


def test_node_that_answers_nothing_but_255_is_unknown_until_it_answers(cluster: Cluster) -> None:
    cluster.next_of("cp2", "silent")
    with pytest.raises(CoordinatorStopped, match=r"cp2 is unknown: .*left are cp2, kubeadm-config, cp3"):
        cluster.coordinator().begin("change apply", PLAN)
    assert cluster.states() == ["done", "unknown", "pending", "pending"]
    with pytest.raises(GarboardError, match="cp2 does not answer"):
        cluster.coordinator().resume()
    assert cluster.states()[1] == "unknown"
    assert cluster.commands == ALL[:2]
    (cluster.folder / "cp2.silent").unlink()
    cluster.coordinator().resume()
    assert cluster.commands == [*ALL[:2], "cp2: resume 1-change", ALL[2]]


def test_node_that_has_gone_before_it_was_told_anything_is_pending(cluster: Cluster) -> None:
    (cluster.folder / "cp2.runs").write_text(
        json.dumps([{"run": "1-init", "command": "init", "state": "committed", "steps": 9, "finished": 9}])
    )
    cluster.reporter.meanwhile["part 2 of 4"] = lambda: (cluster.folder / "cp2.silent").touch()
    with pytest.raises(CoordinatorStopped, match="cp2 did not begin: cp2 does not answer"):
        cluster.coordinator().begin("change apply", PLAN)
    (cluster.folder / "cp2.silent").unlink()
    cluster.reporter.meanwhile.clear()
    cluster.coordinator().resume()
    assert cluster.commands == ALL


@pytest.mark.parametrize(
    "line",
    ["part 1 of 4", "part 2 of 4", "[cp2] working", "part 3 of 4", "part 4 of 4", "[cp3] working"],
)
def test_coordinator_killed_anywhere_goes_on_from_its_record(cluster: Cluster, line: str) -> None:
    cluster.killed(line, lambda: cluster.coordinator().begin("change apply", PLAN))
    (record,) = cluster.coordinator().records()
    assert record.is_open
    assert cluster.api.objects[PATH]["spec"]["holderIdentity"] == f"cp1/{record.name}"
    with pytest.raises(NotReady, match="was cut short; left are"):
        cluster.coordinator().begin("change apply", PLAN)
    cluster.coordinator().resume()
    assert cluster.commands == ALL, "no node is told twice"
    assert cluster.states() == ["done"] * 4
    assert cluster.api.objects == {}


def test_steps_of_the_cluster_that_fail_are_repeated(cluster: Cluster) -> None:
    cluster.fails_on_cluster = True
    with pytest.raises(CoordinatorStopped, match="kubeadm-config has failed: the object has another version"):
        cluster.coordinator().begin("change apply", PLAN)
    cluster.fails_on_cluster = False
    cluster.coordinator().resume()
    assert cluster.states() == ["done"] * 4


def test_second_coordinator_is_refused_with_the_name_of_the_first(cluster: Cluster) -> None:
    refused: list[LeaseFailed] = []

    def other() -> None:
        # A holder that renews its Lease lives: the clock of whoever waits does not stand still meanwhile.
        with pytest.raises(LeaseFailed) as caught:
            cluster.coordinator("cp9", lease_within_s=5.0).begin("change apply", PLAN)
        refused.append(caught.value)

    cluster.reporter.meanwhile["part 2 of 4"] = other
    name = cluster.coordinator().begin("change apply", PLAN)
    assert f"held by cp1/{name}" in refused[0].message
    assert any(f"waiting: cp1/{name} holds Lease" in line for line in cluster.reporter.lines)
    assert cluster.commands == ALL
    assert cluster.coordinator("cp9").records() == ()
    cluster.reporter.meanwhile.clear()
    cluster.coordinator("cp9").begin("change apply", PLAN)
    assert cluster.commands == ALL * 2


def test_coordinator_that_was_cut_short_elsewhere_has_to_be_resumed_there(cluster: Cluster) -> None:
    cluster.next_of("cp2", "fail")
    with pytest.raises(CoordinatorStopped):
        cluster.coordinator().begin("change apply", PLAN)
    (record,) = cluster.coordinator().records()
    with pytest.raises(NotReady, match=f"a coordinator on cp1 was cut short in the middle of {record.name}"):
        cluster.coordinator("cp9").begin("change apply", PLAN)
    assert cluster.commands == ALL[:2]
    payloads = cluster.api.objects[PATH]["metadata"]["annotations"]["garboard.dev/lease-payloads"]
    assert payloads == f"coordinator:cp1/{record.name}"
    cluster.coordinator("cp9", abandons=(f"cp1/{record.name}",)).begin("change apply", PLAN)
    assert cluster.api.objects == {}


def test_nobody_else_changes_a_control_plane_that_a_coordinator_has_left_half_changed(cluster: Cluster) -> None:
    cluster.next_of("cp2", "fail")
    with pytest.raises(CoordinatorStopped):
        cluster.coordinator().begin("change apply", PLAN)
    leases = cluster.leases()
    leases.begin_run()
    with pytest.raises(NotReady, match="a coordinator on cp1 was cut short"):
        leases.acquire(acquire_lease("cp3/join", timeout_s=5))
    by_hand = cluster.leases()  # a run that is resumed or undone
    by_hand.acquire(acquire_lease("cp2/run", timeout_s=5))
    by_hand.release(release_lease("cp2/run"))
    cluster.coordinator().resume()
    assert cluster.api.objects == {}


def test_node_in_the_middle_of_a_unit_keeps_coordinators_out_unless_it_is_theirs(cluster: Cluster) -> None:
    for node in ("cp2", "cp9"):
        leases = cluster.leases()
        leases.acquire(acquire_lease(f"{node}/run", payload=f"unit:{node}", timeout_s=5))
        leases.check_before(Step(DELETED.steps[0].action, "", unit="static-pods"))
        leases.close()
    with pytest.raises(NotReady, match="cp9 was left in the middle"):
        cluster.coordinator().begin("change apply", PLAN)
    leases = cluster.leases()
    leases.release(release_lease("cp9/run"))
    cluster.coordinator().begin("change apply", PLAN)
    assert cluster.api.objects == {}


def test_coordinator_that_has_lost_its_lease_begins_no_further_part(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_leases: NodeLeases) -> None:
        if cluster.commands:
            raise LeaseLost("Lease kube-system/garboard-control-plane was lost: it is held by cp9/other")

    monkeypatch.setattr(NodeLeases, "check", lost)
    with pytest.raises(LeaseLost):
        cluster.coordinator().begin("change apply", PLAN)
    assert cluster.commands == ALL[:1]
    assert cluster.states() == ["done", "pending", "pending", "pending"]


def test_nothing_begins_where_a_node_has_another_version(cluster: Cluster) -> None:
    (cluster.folder / "version").write_text("0.0.1")
    with pytest.raises(NotReady, match=r"has 0\.0\.1"):
        cluster.coordinator().begin("change apply", PLAN)
    assert (cluster.commands, cluster.coordinator().records(), cluster.api.objects) == ([], (), {})


def test_plan_with_steps_of_another_node_is_refused(cluster: Cluster) -> None:
    step = Step(DELETED.steps[0].action, "", node="cp2")
    with pytest.raises(PlanRefused, match="cp1 has steps for cp2"):
        cluster.coordinator().begin("x", ClusterPlan((NodePart(node="cp1", words=("x",), plan=Plan((step,))),)))
    assert cluster.commands == []


def test_a_record_that_nobody_resumes_is_closed_and_lets_others_begin(cluster: Cluster) -> None:
    cluster.next_of("cp2", "fail")
    with pytest.raises(CoordinatorStopped):
        cluster.coordinator().begin("change apply", PLAN)
    (record,) = cluster.coordinator().records()
    assert cluster.coordinator().abandon(record.name) == record.name
    (closed,) = cluster.coordinator().records()
    assert not closed.is_open
    assert cluster.api.objects == {}
    cluster.coordinator("cp9").begin("change apply", PLAN)
    assert cluster.commands == [*ALL[:2], *ALL]
    with pytest.raises(NotReady, match="no open record"):
        cluster.coordinator().abandon()


@pytest.mark.parametrize(
    ("node", "behaviour", "exit_code", "is_open"),
    [
        ("cp1", "undone-13", 13, False),
        ("cp1", "busy-15", 15, False),
        ("cp1", "refuse", 1, False),
        ("cp1", "stale-16", 16, False),
        ("cp2", "stale-16", 14, True),
        ("cp1", "needs-14", 14, True),
        ("cp2", "undone-13", 13, True),
        ("cp3", "needs-14", 14, True),
        ("cp2", "lost-open", 14, True),
    ],
)
def test_a_change_that_stops_says_how_by_its_exit_code(
    cluster: Cluster, node: str, behaviour: str, exit_code: int, *, is_open: bool
) -> None:
    """Where its first node has gone back, or did not begin, nothing is left to be resumed."""
    cluster.next_of(node, behaviour)
    with pytest.raises(GarboardError, match=f"{node}.*; left are") as stopped:
        begin(cluster.coordinator(), "change apply", PLAN)
    assert stopped.value.exit_code == exit_code
    (record,) = cluster.coordinator().records()
    assert record.is_open is is_open
    if is_open:
        resume(cluster.coordinator(), record.name)
    assert cluster.api.objects == {}


def test_a_change_whose_lease_is_held_is_refused(cluster: Cluster) -> None:
    other = cluster.leases()
    other.acquire(acquire_lease("cp7", timeout_s=1.0))
    with pytest.raises(ChangeInProgress, match="cp7") as refused:
        begin(cluster.coordinator(lease_within_s=2.0), "change apply", PLAN)
    other.close()  # else it renews for the rest of the tests
    assert refused.value.exit_code == 15
    assert cluster.commands == []
