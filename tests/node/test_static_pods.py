"""The real plan of a swap under the Lease of the control plane: lost in the middle, and away on the way back."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from garboard.engine import (
    LEASE_TOKEN,
    AcquireLease,
    AwaitGate,
    Executor,
    Journal,
    MakeFolder,
    Observers,
    Plan,
    PullImage,
    ReleaseLease,
    RunHeader,
    Step,
    plan_undo,
)
from garboard.engine.journal import NO_PROGRESS
from garboard.errors import ClusterUnreachable, GarboardError, NotReady
from garboard.kube import KubeClient, LeaseLost, read_access
from garboard.node.interpreters.leases import LeaseInterpreter, LeaseToken, NodeLeases
from garboard.node.runs import plan_codec
from garboard.node.step_hooks import Boundaries
from garboard.phases.gates import ListenerClosed
from garboard.phases.static_pods import ORDER
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.engine.runs import MemoryRun
from tests.support.kube.api_server import FakeApi
from tests.support.phases.static_pods import NODE, StaticPodNode, swap_of_all

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/garboard-control-plane"
COORDINATOR = "cp-9/20261118T100000"
NEXT = Step(MakeFolder(path="/etc/next", mode=0o700), "", "next")


@pytest.fixture(autouse=True)
def is_renewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.kube.lease_holding.RENEWALS", 750)


class Killed(BaseException):
    """Ends a run where it is."""


@dataclass
class DyingRun(MemoryRun):
    """A journal whose process is killed after so many lines."""

    dies_after: int | None = None

    def append(self, data: bytes, *, is_lasting: bool) -> None:
        super().append(data, is_lasting=is_lasting)
        if self.dies_after is not None and self.data.count(b"\n") >= self.dies_after:
            raise Killed


@dataclass
class SwappingNode:
    """A node in memory that carries out plans as a run does: a lost Lease is looked for between units alone."""

    api: FakeApi
    kubeconfig: Kubeconfig
    node: StaticPodNode = field(default_factory=StaticPodNode)
    run: DyingRun = field(default_factory=DyingRun)
    is_away: bool = False
    is_lone: bool = False  # its own API server is the only one
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node.begin("old")

    def _connect(self) -> KubeClient:
        api_server = self.node.pods.get("kube-apiserver")
        if self.is_away or (self.is_lone and not (api_server and api_server.is_running)):
            raise ClusterUnreachable("connection refused")
        access = read_access(self.kubeconfig.to_bytes(), "admin.conf", lambda _path: None)
        return KubeClient(access, patience_s=0.0)

    def carry_out(
        self,
        plan: Plan,
        lease: LeaseToken | None = None,
        meanwhile: dict[str, Callable[[], None]] | None = None,
        dies_after: int | None = None,
        *,
        resumes: bool = False,
        is_new: bool = True,
    ) -> None:
        header = RunHeader(run="", command="swap", started_at=datetime(2026, 1, 2, tzinfo=UTC))
        observers, boundaries = Observers(files=self.node.machine), Boundaries()

        def report(line: str) -> None:
            self.told.append(line)
            for part, happens in (meanwhile or {}).items():
                if part in line:
                    happens()

        with closing(NodeLeases(self._connect, report, lease, self.node.clock)) as leases:
            if is_new and not resumes:
                leases.begin_run()
            interpreters = self.node.interpreters()
            LeaseInterpreter(leases).add_to(interpreters)

            @contextmanager
            def around(step: Step) -> Iterator[None]:
                if boundaries.is_before(step):
                    leases.check_before(step)
                yield

            progress = self.run.record.progress if resumes else NO_PROGRESS
            if resumes:
                journal = Journal(self.run, plan_codec(), observers, progress)
            else:
                self.run = DyingRun()
                journal = Journal.begin_run(self.run, plan_codec(), observers, header, plan)
            self.run.dies_after = dies_after
            executor = Executor(interpreters, report, journal, around, observers=observers, clock=self.node.clock)
            try:
                executor.execute(plan, progress)
            except Killed:
                if "_leases" in vars(leases) and (held := leases._leases._held):
                    held.stop()  # nobody renews it any more, and nobody gives it up
                    leases._leases._held = None
                raise

    def undo_plan(self) -> Plan:
        plan = self.run.record.plan(self.run, plan_codec())
        return plan_undo(plan, self.run.record, Observers(files=self.node.machine), self.run.kept)


@pytest.fixture
def swapping(api: FakeApi, kubeconfig: Kubeconfig) -> SwappingNode:
    return SwappingNode(api, kubeconfig)


def lease_of(holder: str, transitions: int) -> dict[str, Any]:
    metadata = {"name": "garboard-control-plane", "namespace": "kube-system", "resourceVersion": "1"}
    spec = {"holderIdentity": holder, "leaseTransitions": transitions, "leaseDurationSeconds": 600, "renewTime": "x"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def taken_away(api: FakeApi) -> Callable[[], None]:
    """Return what gives the Lease to another holder, and waits until whoever renews it has seen that."""

    def take() -> None:
        give_up_at = time.monotonic() + 10
        while True:
            # A renewal that was under way would take it back, because the fake server knows no versions.
            api.objects[PATH] = lease_of("cp-3", 7)
            if not any(each.name == "lease" for each in threading.enumerate()):
                return
            assert time.monotonic() < give_up_at
            time.sleep(0.01)

    return take


def test_images_are_pulled_before_anybody_has_to_wait_for_the_lease() -> None:
    actions = [type(step.action) for step in swap_of_all(has_images=False).steps]
    assert actions[:2] == [PullImage, AcquireLease]
    assert actions[-1] is ReleaseLease


def test_swap_holds_the_lease_from_before_its_first_step_to_after_its_last(
    api: FakeApi, swapping: SwappingNode
) -> None:
    held: list[tuple[str, int]] = []

    def look() -> None:
        spec = api.objects[PATH]["spec"]
        held.append((spec["holderIdentity"], spec["leaseDurationSeconds"]))

    swapping.carry_out(swap_of_all(), meanwhile={"remove /etc/kubernetes/manifests/etcd": look})
    assert held == [(NODE, 600)]
    assert api.objects == {}
    assert swapping.node.notes() == dict.fromkeys(ORDER, "new")


def test_lease_taken_away_in_mid_swap_ends_the_unit_and_stops_the_run(api: FakeApi, swapping: SwappingNode) -> None:
    *swap, released = swap_of_all().steps
    plan = Plan((*swap, NEXT, released))
    with pytest.raises(LeaseLost, match="held by cp-3"):
        swapping.carry_out(plan, meanwhile={"remove /etc/kubernetes/manifests/etcd": taken_away(api)})
    assert swapping.node.notes() == dict.fromkeys(ORDER, "new")
    assert swapping.node.traps == []
    assert len(swapping.run.record.progress.finished) == len(swap)
    assert api.objects[PATH]["spec"]["holderIdentity"] == "cp-3"


def test_lease_that_is_lost_when_nothing_is_left_to_do_is_told(api: FakeApi, swapping: SwappingNode) -> None:
    swapping.carry_out(swap_of_all(), meanwhile={"remove /etc/kubernetes/manifests/etcd": taken_away(api)})
    assert [line for line in swapping.told if "nothing was left to be done under it" in line]


def test_loss_that_nobody_has_noticed_is_found_before_the_unit(
    api: FakeApi, swapping: SwappingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a process was stopped for a while: the thread that renews the Lease has not run yet."""
    monkeypatch.setattr("garboard.kube.lease_holding.RENEWALS", 0.01)

    def take(leases: NodeLeases, action: AcquireLease) -> Mapping[str, str]:
        made = acquire(leases, action)
        api.objects[PATH] = lease_of("cp-3", 7)
        swapping.node.sleep(5)
        return made

    acquire = NodeLeases.acquire
    monkeypatch.setattr(NodeLeases, "acquire", take)
    with pytest.raises(LeaseLost, match="held by cp-3"):
        swapping.carry_out(swap_of_all())
    assert swapping.node.notes() == dict.fromkeys(ORDER, "old")


PAYLOADS = "garboard.dev/lease-payloads"


def another_swap(api: FakeApi, kubeconfig: Kubeconfig) -> None:
    SwappingNode(api, kubeconfig).carry_out(swap_of_all("cp-3"))


@pytest.mark.parametrize("then", ["resume", "undo"])
def test_node_that_failed_in_mid_swap_keeps_all_others_out(
    api: FakeApi, swapping: SwappingNode, kubeconfig: Kubeconfig, then: str
) -> None:
    """Its member of etcd may be away: a second one must not go as well."""
    swapping.node.is_unready = True
    with pytest.raises(GarboardError, match="in vain"):
        swapping.carry_out(swap_of_all())
    assert api.objects[PATH]["spec"]["holderIdentity"] == ""
    assert api.objects[PATH]["metadata"]["annotations"] == {PAYLOADS: f"unit:{NODE}"}
    for _ in range(2):
        with pytest.raises(NotReady, match=f"{NODE} was left in the middle of replacing its static pods") as caught:
            another_swap(api, kubeconfig)
        assert f"garboard undo on {NODE}" in (caught.value.hint or "")
    swapping.node.is_unready = False
    if then == "resume":
        swapping.carry_out(swap_of_all(), resumes=True)
    else:
        swapping.carry_out(swapping.undo_plan(), is_new=False)
    assert api.objects == {}
    another_swap(api, kubeconfig)


def test_way_back_without_the_lease_frees_the_node_for_others(api: FakeApi, swapping: SwappingNode) -> None:
    swapping.node.breaks = "new"
    with pytest.raises(GarboardError, match="run steadily"):
        swapping.carry_out(swap_of_all())

    def come() -> None:
        swapping.is_away = False

    swapping.is_away, swapping.node.breaks = True, ""
    swapping.carry_out(swapping.undo_plan(), meanwhile={"release Lease": come}, is_new=False)
    assert any("going on without Lease" in line for line in swapping.told)
    assert api.objects == {}


def test_swap_that_is_refused_before_its_first_file_keeps_nobody_out(api: FakeApi, swapping: SwappingNode) -> None:
    plan = swap_of_all()
    stopped = Step(AwaitGate(gate=ListenerClosed(component="x", host="192.0.2.1", port=6443, timeout_s=1.0)), "", "x")
    acquired, *swap = plan.steps
    with pytest.raises(GarboardError):
        swapping.carry_out(Plan((acquired, stopped, *swap)))
    assert api.objects == {}


def test_swap_under_the_lease_of_a_coordinator_acquires_and_releases_none(api: FakeApi, swapping: SwappingNode) -> None:
    api.objects[PATH] = lease_of(COORDINATOR, 4)
    before = dict(api.objects[PATH])
    swapping.carry_out(Plan((*swap_of_all().steps, NEXT)), LeaseToken(COORDINATOR, 4))
    assert swapping.node.notes() == dict.fromkeys(ORDER, "new")
    assert api.objects[PATH] == before
    assert {method for method, _ in api.asked} == {"GET"}
    assert swapping.run.record.progress.finished[0] == {LEASE_TOKEN: "4"}


@pytest.mark.parametrize(("holder", "transitions"), [("cp-3", 5), (COORDINATOR, 6)], ids=["another", "a later token"])
def test_lease_of_a_coordinator_that_goes_in_mid_swap_stops_the_run_after_the_unit(
    api: FakeApi, swapping: SwappingNode, holder: str, transitions: int
) -> None:
    api.objects[PATH] = lease_of(COORDINATOR, 4)

    def take() -> None:
        api.objects[PATH] = lease_of(holder, transitions)

    with pytest.raises(LeaseLost, match=rf"held by {holder} \(token {transitions}, ours was 4\)"):
        swapping.carry_out(
            Plan((*swap_of_all().steps, NEXT)),
            LeaseToken(COORDINATOR, 4),
            {"remove /etc/kubernetes/manifests/etcd": take},
        )
    assert swapping.node.notes() == dict.fromkeys(ORDER, "new")
    assert not swapping.node.machine.has_folder("/etc/next")


def test_token_of_another_time_changes_nothing(api: FakeApi, swapping: SwappingNode) -> None:
    api.objects[PATH] = lease_of(COORDINATOR, 5)
    with pytest.raises(LeaseLost):
        swapping.carry_out(swap_of_all(), LeaseToken(COORDINATOR, 4))
    assert swapping.run.record.progress.begun == {}
    assert swapping.node.notes() == dict.fromkeys(ORDER, "old")


def test_api_server_that_is_away_between_two_units_loses_no_lease(api: FakeApi, swapping: SwappingNode) -> None:
    api.objects[PATH] = lease_of(COORDINATOR, 4)

    def go() -> None:
        swapping.is_away = True

    steps = (*swap_of_all().steps, NEXT)
    swapping.carry_out(Plan(steps), LeaseToken(COORDINATOR, 4), {"remove /etc/kubernetes/manifests/kube-apiserver": go})
    assert len(swapping.run.record.progress.finished) == len(steps)


@pytest.mark.parametrize("is_away", [False, True], ids=["the API server answers", "it does not"])
def test_way_back_of_a_swap_is_under_the_lease_if_the_api_server_answers(
    api: FakeApi, swapping: SwappingNode, is_away: bool
) -> None:
    swapping.carry_out(swap_of_all())
    back = swapping.undo_plan()
    first, last = back.steps[0].action, back.steps[-1].action
    assert isinstance(first, AcquireLease)
    assert (first.duration_s, first.is_needed) == (600.0, False)
    assert isinstance(last, ReleaseLease)
    swapping.is_away = is_away
    swapping.carry_out(back, is_new=False)
    assert swapping.node.notes() == dict.fromkeys(ORDER, "old")
    assert api.objects == {}
    assert any("going on without Lease kube-system/garboard-control-plane" in line for line in swapping.told) == is_away


def test_way_back_waits_for_an_api_server_that_knows_no_roles_yet(api: FakeApi, swapping: SwappingNode) -> None:
    """As it is in the first moments after its start: it forbids what it will allow."""
    swapping.carry_out(swap_of_all())
    for _ in range(3):
        api.refuse("GET", PATH, 403, "Forbidden", 'User "kubernetes-admin" cannot get resource "leases"')
    swapping.carry_out(swapping.undo_plan(), is_new=False)
    assert swapping.node.notes() == dict.fromkeys(ORDER, "old")
    assert not [line for line in swapping.told if "going on without" in line]
    assert api.objects == {}


@pytest.mark.parametrize("then", ["resume", "undo"])
@pytest.mark.parametrize("line", range(4, 2 * len(swap_of_all().steps) + 1, 3))
def test_swap_of_a_lone_control_plane_killed_anywhere_ends_without_its_api_server(
    api: FakeApi, swapping: SwappingNode, line: int, then: str
) -> None:
    """The Lease cannot be acquired again while the unit has taken the only API server away."""
    swapping.is_lone = True
    plan = swap_of_all()
    with suppress(Killed):
        swapping.carry_out(plan, dies_after=line)
    started_s = swapping.node.now_s
    if then == "resume":
        swapping.carry_out(plan, resumes=True)
        assert swapping.node.notes() == dict.fromkeys(ORDER, "new")
        assert swapping.node.now_s - started_s < 60
    else:
        swapping.carry_out(swapping.undo_plan(), is_new=False)
        assert swapping.node.notes() == dict.fromkeys(ORDER, "old")
    assert api.objects == {}
    assert swapping.node.traps == []
