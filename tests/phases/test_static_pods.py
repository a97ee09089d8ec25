"""Static pods replaced in one short outage, killed anywhere, resumed or taken back: old or new, never mixed."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from garboard.engine import (
    AwaitGate,
    Executor,
    Gate,
    GateFailed,
    Journal,
    Observers,
    Plan,
    PullImage,
    QuorumChange,
    RemoveFile,
    RunHeader,
    StalePlan,
    Step,
    StopContainer,
    WriteFile,
    plan_undo,
    step_title,
    with_preconditions,
)
from garboard.engine.pre_image import digest_of
from garboard.errors import GarboardError
from garboard.model.paths import manifest_path
from garboard.node.runs import plan_codec
from garboard.phases.gates import ApiServerReady, ComponentsSettled, NodeReady
from garboard.phases.static_pods import ORDER, UNIT, ReplacedPod, SwapSettings, plan_pulls, plan_swap, swapped
from tests.support.engine.runs import MemoryRun
from tests.support.phases.static_pods import NODE, StaticPodNode, manifest_of

ALL = frozenset(ORDER)
CODEC = plan_codec()


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


def pods(changed: Iterable[str] = ALL) -> list[ReplacedPod]:
    return [
        ReplacedPod(
            component=each,
            former=manifest_of(each, "old"),
            manifest=manifest_of(each, "new" if each in changed else "old"),
        )
        for each in ORDER
    ]


def node() -> StaticPodNode:
    found = StaticPodNode()
    found.begin("old")
    assert found.notes() == dict.fromkeys(ORDER, "old")
    return found


def planned(of: StaticPodNode, changed: Iterable[str] = ALL, settled_within_s: float = 240.0) -> Plan:
    def digest(path: str) -> str:
        found = of.machine.read(path)
        return "" if found is None else digest_of(found)

    steps = plan_swap(pods(changed), NODE, "it changed", SwapSettings(settled_within_s=settled_within_s))
    return with_preconditions(Plan(steps), digest)


def begun(of: StaticPodNode, plan: Plan, dies_after: int | None = None) -> tuple[DyingRun, Journal]:
    store = DyingRun()
    header = RunHeader(run="", command="swap", started_at=datetime(2026, 1, 2, tzinfo=UTC))
    journal = Journal.begin_run(store, CODEC, Observers(files=of.machine), header, plan)
    store.dies_after = dies_after
    return store, journal


def executor(of: StaticPodNode, journal: Journal) -> Executor:
    return Executor(of.interpreters(), recorder=journal, observers=Observers(files=of.machine), clock=of.clock)


def resume(of: StaticPodNode, run: DyingRun) -> None:
    plan, progress = run.record.plan(run, CODEC), run.record.progress
    journal = Journal(run, CODEC, Observers(files=of.machine), progress)
    run.dies_after = None
    executor(of, journal).refuse_stale(plan, progress, hint="")
    executor(of, journal).execute(plan, progress)


def undo(of: StaticPodNode, run: DyingRun) -> Plan:
    back = plan_undo(run.record.plan(run, CODEC), run.record, Observers(files=of.machine), run.kept)
    Executor(of.interpreters(), observers=Observers(files=of.machine), clock=of.clock).execute(back)
    return back


def steps_of(plan: Plan) -> list[str]:
    return [step_title(step) for step in plan.steps]


def test_api_server_goes_first_and_all_come_back_together() -> None:
    plan = planned(node())
    assert {step.unit for step in plan.steps} == {UNIT}
    kinds = [type(step.action) for step in plan.steps]
    assert kinds == [
        RemoveFile,
        AwaitGate,
        StopContainer,
        *[RemoveFile] * 3,
        AwaitGate,
        *[WriteFile] * 4,
        *[AwaitGate] * 2,
    ]
    assert steps_of(plan)[:3] == [
        "remove /etc/kubernetes/manifests/kube-apiserver.yaml",
        "wait for kube-apiserver to close 192.0.2.1:6443 (at most 60 s)",
        "stop the container kube-apiserver, whose manifest is away",
    ]


def test_api_server_that_serves_on_while_it_ends_is_waited_for() -> None:
    former = manifest_of("kube-apiserver", "old").replace(b"--note=old", b"--shutdown-delay-duration=1m10s")
    pod = ReplacedPod(component="kube-apiserver", former=former, manifest=manifest_of("kube-apiserver", "new"))
    waits = [title for title in steps_of(Plan(plan_swap([pod], NODE, "it changed"))) if "to close" in title]
    assert waits == ["wait for kube-apiserver to close 192.0.2.1:6443 (at most 130 s)"]


def test_unit_does_not_begin_where_etcd_cannot_spare_the_member() -> None:
    of = node()
    of.spared = "b: connection refused"
    steps = plan_swap(pods(ALL), NODE, "it changed", SwapSettings(member_url="https://192.0.2.1:2380", voters=3))
    assert [step.unit for step in steps[:2]] == ["", UNIT]
    _, journal = begun(of, Plan(steps))
    with pytest.raises(GarboardError, match="etcd would lose its quorum without the member of this node: b:") as caught:
        executor(of, journal).execute(Plan(steps))
    assert caught.value.error_class == "quorum"
    assert of.notes() == dict.fromkeys(ORDER, "old")
    alone = plan_swap(pods({"kube-scheduler"}), NODE, "", SwapSettings(member_url="https://192.0.2.1:2380"))
    assert alone[0].unit == UNIT, "who leaves etcd alone need not ask"


def test_resumed_swap_does_not_ask_again_whether_it_may_begin() -> None:
    of = node()
    steps = plan_swap(pods(ALL), NODE, "it changed", SwapSettings(member_url="https://192.0.2.1:2380", voters=3))
    run, journal = begun(of, Plan(steps), dies_after=18)
    with suppress(Killed):
        executor(of, journal).execute(Plan(steps))
    assert of.notes() != dict.fromkeys(ORDER, "old")
    of.spared = "b: connection refused"
    resume(of, run)
    assert of.notes() == dict.fromkeys(ORDER, "new")


def test_one_outage_is_short_and_never_takes_etcd_away_under_the_api_server() -> None:
    of = node()
    started_s = of.now_s
    _, journal = begun(of, planned(of))
    executor(of, journal).execute(planned(of))
    assert of.notes() == dict.fromkeys(ORDER, "new")
    assert of.traps == []
    assert of.now_s - started_s < 1 + 1.5 + 10 + 2  # open requests, the kubelet's pause, the settling time


@pytest.mark.parametrize(
    ("changed", "goes"),
    [
        ({"kube-scheduler"}, ["kube-scheduler"]),
        ({"etcd"}, ["kube-apiserver", "etcd"]),
        ({"kube-apiserver"}, ["kube-apiserver"]),
        (set(), []),
    ],
    ids=["a scheduler alone", "etcd with its API server", "an API server without its etcd", "nothing"],
)
def test_no_more_pods_end_than_have_to(changed: set[str], goes: list[str]) -> None:
    assert [pod.component for pod in swapped(pods(changed))] == goes
    of = node()
    former = {name: pod.container for name, pod in of.pods.items()}
    plan = planned(of, changed)
    executor(of, begun(of, plan)[1]).execute(plan)
    assert [name for name in ORDER if of.pods[name].container != former[name]] == goes
    assert of.traps == []


def test_manifest_that_somebody_changed_meanwhile_stops_the_swap_before_it_begins() -> None:
    of = node()
    plan = planned(of)
    of.machine.files[manifest_path("etcd")] = (0o600, manifest_of("etcd", "edited"))
    with pytest.raises(StalePlan, match=r"etcd\.yaml has changed"):
        executor(of, begun(of, plan)[1]).refuse_stale(plan, hint="")


def test_images_that_are_missing_are_pulled_together_before_the_unit_begins() -> None:
    there = {"registry.invalid/etcd:new", "registry.invalid/kube-scheduler:old"}
    (first,) = plan_pulls(pods({"etcd", "kube-controller-manager"}), there.__contains__)
    # The API server goes with its etcd, and comes back with an image that somebody may have removed.
    images = ("registry.invalid/kube-apiserver:old", "registry.invalid/kube-controller-manager:new")
    assert first.action == PullImage(image=images[0], beside=images[1:])
    assert first.unit == ""
    assert not [*plan_pulls(pods(()), lambda _image: False)], "no pod is swapped"


def test_image_that_cannot_be_pulled_leaves_all_pods_running() -> None:
    of = node()
    steps = (*plan_pulls(pods(), lambda _image: False), *plan_swap(pods(), NODE, ""))
    plan = with_preconditions(Plan(steps), lambda _path: "")
    former = {name: pod.container for name, pod in of.pods.items()}
    with pytest.raises(AssertionError):  # as the registry of this node does
        executor(of, begun(of, plan)[1]).execute(plan)
    assert {name: pod.container for name, pod in of.pods.items()} == former


def test_images_of_all_containers_count() -> None:
    manifest = b"spec: {initContainers: [{image: a}], containers: [{image: b}, {image: a}, {name: none}]}"
    pod = ReplacedPod(component="kube-scheduler", former=b"{}", manifest=manifest)
    (pull,) = plan_pulls([pod], lambda _image: False)
    assert pull.action == PullImage(image="a", beside=("b",))


def test_every_container_that_restarts_is_in_the_plan_with_what_is_left_of_etcd() -> None:
    steps = plan_swap(pods({"etcd", "kube-scheduler"}), NODE, "", SwapSettings(voters=3))
    assert [name for step in steps for name in step.restarts] == ["kube-apiserver", "kube-scheduler", "etcd"]
    quorum = [step.quorum_after for step in steps if step.quorum_after]
    assert quorum == [QuorumChange(up=-1, voters_before=3), QuorumChange(voters_before=3)]
    alone = plan_swap(pods({"kube-scheduler"}), NODE, "", SwapSettings(voters=3))
    assert [step.quorum_after for step in alone if step.quorum_after] == []


def gates_of(found: Iterable[Step]) -> list[type[Gate]]:
    return [type(step.action.gate) for step in found if isinstance(step.action, AwaitGate)]


def test_node_is_looked_at_in_the_end_whichever_of_its_pods_were_replaced() -> None:
    scheduler = pods({"kube-scheduler"})
    assert gates_of(plan_swap(scheduler, NODE, ""))[1:] == [ComponentsSettled, ApiServerReady]
    with_kubelet = plan_swap(scheduler, NODE, "", SwapSettings(has_kubelet=True))
    assert gates_of(with_kubelet)[2:] == [ApiServerReady, NodeReady]
    without_api_server = [pod for pod in scheduler if pod.component != "kube-apiserver"]
    assert gates_of(plan_swap(without_api_server, NODE, ""))[1:] == [ComponentsSettled]


LINES = 1 + 2 * len(plan_swap(pods(), NODE, ""))


@pytest.mark.parametrize("then", ["resume", "undo"])
@pytest.mark.parametrize("changed", [ALL, {"etcd"}, {"kube-scheduler"}], ids=["all", "etcd", "scheduler"])
@pytest.mark.parametrize("line", range(2, LINES + 1))
def test_swap_killed_anywhere_ends_old_or_new(line: int, changed: frozenset[str], then: str) -> None:
    of = node()
    plan = planned(of, changed)
    run, journal = begun(of, plan, dies_after=line)
    with suppress(Killed):
        executor(of, journal).execute(plan)
    of.sleep(40)  # the kubelet goes on
    if then == "resume":
        resume(of, run)
        assert of.notes() == {each: "new" if each in changed else "old" for each in ORDER}
    else:
        undo(of, run)
        assert of.notes() == dict.fromkeys(ORDER, "old")
        assert undo(of, run).steps == ()
    assert of.traps == []


def test_what_a_killed_write_left_beside_a_manifest_is_removed() -> None:
    of = node()
    plan = planned(of)
    first_write = next(index for index, step in enumerate(plan.steps) if isinstance(step.action, WriteFile))
    run, journal = begun(of, plan, dies_after=2 + 2 * first_write)
    theirs, ours = "/etc/kubernetes/manifests/.etcd.yaml.00000000", "/etc/kubernetes/manifests/.etcd.yaml.abcdef01"
    of.machine.files[theirs] = (0o600, b"was there before")
    with pytest.raises(Killed):
        executor(of, journal).execute(plan)
    of.machine.files[ours] = (0o600, b"half")
    undo(of, run)
    assert of.notes() == dict.fromkeys(ORDER, "old")
    assert theirs in of.machine.files
    assert ours not in of.machine.files


def test_container_that_ends_again_closes_the_gate_and_the_way_back_has_the_same_gate() -> None:
    of = node()
    plan = planned(of, settled_within_s=30)
    run, journal = begun(of, plan)
    of.breaks = "--note=new"
    with pytest.raises(GateFailed, match="kube-apiserver: no container of it runs"):
        executor(of, journal).execute(plan)
    back = undo(of, run)
    assert of.notes() == dict.fromkeys(ORDER, "old")
    gates = [step.action.gate for step in back.steps[-2:] if isinstance(step.action, AwaitGate)]
    assert [type(gate) for gate in gates] == [ComponentsSettled, ApiServerReady]
    assert {step.unit for step in back.steps} == {UNIT}
    assert of.traps == []


def restarting(of: StaticPodNode, component: str) -> Plan:
    """Return the plan that restarts a pod whose manifest stays."""
    found = [replace(pod, manifest=pod.former) for pod in pods()]
    known = [replace(pod, restart_cause="it reads it once" if pod.component == component else "") for pod in found]
    return with_preconditions(Plan(plan_swap(known, NODE, "")), lambda path: digest_of(of.machine.read(path) or b""))


def test_pod_that_only_restarts_comes_back_in_a_new_container_with_the_reason_in_the_plan() -> None:
    of = node()
    former = {name: pod.container for name, pod in of.pods.items()}
    plan = restarting(of, "kube-scheduler")
    executor(of, begun(of, plan)[1]).execute(plan)
    assert [name for name in ORDER if of.pods[name].container != former[name]] == ["kube-scheduler"]
    assert {step.cause for step in plan.steps if step.restarts} == {"it reads it once"}


@pytest.mark.parametrize("line", range(2, 2 + 2 * 5))
def test_restart_killed_anywhere_is_resumed_or_made_again(line: int) -> None:
    for then in (resume, undo):
        of = node()
        plan = restarting(of, "kube-scheduler")
        run, journal = begun(of, plan, dies_after=line)
        with suppress(Killed):
            executor(of, journal).execute(plan)
        killed = {name: pod.container for name, pod in of.pods.items()}
        then(of, run)
        assert of.notes() == dict.fromkeys(ORDER, "old")
        others = [name for name in ORDER if name in killed and of.pods[name].container != killed[name]]
        assert not {*others} - {"kube-scheduler"}


def test_finished_restart_is_undone_by_another_one_for_what_the_undo_brings_back() -> None:
    of = node()
    plan = restarting(of, "kube-scheduler")
    run, journal = begun(of, plan)
    executor(of, journal).execute(plan)
    container = of.pods["kube-scheduler"].container
    undo(of, run)
    assert of.pods["kube-scheduler"].container != container
    assert of.notes() == dict.fromkeys(ORDER, "old")
