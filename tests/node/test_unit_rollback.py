"""A swap of static pods whose steps fail, each in turn: the run takes it back, and waits for the pods of before."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from garboard.engine import Interpreters, Observers, Outcomes, Plan, Step, StepContext, step_title, with_preconditions
from garboard.engine.action import Action
from garboard.engine.pre_image import digest_of
from garboard.errors import GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.model.paths import manifest_path
from garboard.node.interpreters.leases import NodeLeases
from garboard.node.runs import Runs
from garboard.node.transaction import RunOptions, Transactions
from garboard.node.wiring import RunSettings, Wiring
from garboard.phases.static_pods import ORDER, ReplacedPod, SwapSettings, plan_swap
from tests.support.node.edges import EveryEdge
from tests.support.node.reporters import MemoryReporter
from tests.support.phases.static_pods import NODE, StaticPodNode, manifest_of

SETTINGS = SwapSettings(member_url="https://192.0.2.1:2380", voters=3, settled_within_s=60)
PODS = [
    ReplacedPod(component=each, former=manifest_of(each, "old"), manifest=manifest_of(each, "new")) for each in ORDER
]
STEPS = plan_swap(PODS, NODE, "it changed", SETTINGS)
OPTIONS = RunOptions(command="swap", undoes_on_failure=True)


class FailingInterpreters(Interpreters):
    """Fails at one action, once, before or after it is carried out."""

    def __init__(self, node: StaticPodNode, at: int, *, is_done: bool) -> None:
        super().__init__()
        self._by_kind = node.interpreters()._by_kind
        self._left = at
        self._is_done = is_done

    def carry_out(self, action: Action, run: StepContext) -> Outcomes:
        fails = self._left == 0
        self._left -= 1
        made = super().carry_out(action, run) if self._is_done or not fails else {}
        if fails:
            raise GarboardError("it failed")
        return made


@dataclass
class SwapRun:
    """A run over a node in memory, with the journal of a real one."""

    node: StaticPodNode
    interpreters: Interpreters
    monkeypatch: pytest.MonkeyPatch
    reporter: MemoryReporter
    steps: tuple[Step, ...] = STEPS

    def carry_out(self, options: RunOptions = OPTIONS) -> None:
        machine = self.node.machine

        @contextmanager
        def wired(*_given: Any) -> Iterator[Wiring]:
            every: Any = EveryEdge()
            yield Wiring(self.interpreters, Observers(files=machine), every, every, NodeLeases(every, print))

        def digest(path: str) -> str:
            return digest_of(machine.read(path) or b"")

        self.monkeypatch.setattr("garboard.node.transaction.wired_for", wired)
        transactions = Transactions(Runs(NodeMachine(None)), self.reporter)
        with transactions.locked("swap"):
            transactions.carry_out(with_preconditions(Plan(self.steps), digest), RunSettings(), options)


def swap_failing(at: int, monkeypatch: pytest.MonkeyPatch, *, is_done: bool) -> SwapRun:
    node = StaticPodNode()
    node.begin("old")
    return SwapRun(node, FailingInterpreters(node, at, is_done=is_done), monkeypatch, MemoryReporter())


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize(
    "at", range(len(STEPS)), ids=[f"{index} {step_title(each)}" for index, each in enumerate(STEPS)]
)
def test_unit_goes_back_after_each_of_its_steps_failed(at: int, is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = swap_failing(at, monkeypatch, is_done=is_done)
    with pytest.raises(GarboardError, match="it failed") as caught:
        run.carry_out()
    assert "what the run had done was undone" in (caught.value.hint or "")
    assert run.node.notes() == dict.fromkeys(ORDER, "old")
    assert run.node.traps == []
    assert Runs(NodeMachine(None)).open() == ()
    waits = [line for line in run.reporter.lines if line.startswith("[undo/static-pods] wait for")]
    if at == 0 or (at == 1 and not is_done):
        assert waits == [], "nothing had been changed"
    else:
        assert [line.partition(" to ")[2].partition(" (")[0] for line in waits[-3:]] == [
            "run steadily", "catch up", "be ready"
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "etcd"),
    [
        pytest.param("3.6.0", "old", id="not all members are new yet"),
        pytest.param("3.7.0", "new", id="all members are new"),
        pytest.param("4.0.0", "new", id="a major"),
        pytest.param("", "old", id="there is none yet"),
    ],
)
def test_etcd_goes_back_only_while_its_cluster_version_is_the_old_one(
    version: str, etcd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = plan_swap(PODS, NODE, "it changed", replace(SETTINGS, former_etcd="3.6"))
    run = swap_failing(len(steps) - 1, monkeypatch, is_done=False)
    run.steps = steps
    run.node.cluster_version = version
    with pytest.raises(GarboardError, match="it failed"):
        run.carry_out()
    assert run.node.notes() == {**dict.fromkeys(ORDER, "old"), "etcd": etcd}
    assert run.node.traps == []
    assert Runs(NodeMachine(None)).open() == ()
    told = [line for line in run.reporter.lines if "stays as the run wrote it" in line]
    assert len(told) == (etcd == "new")
    undo = next(each for each in Runs(NodeMachine(None)).all() if each.header.undoes)
    assert (b"it stays" in undo.folder.lines()) == (etcd == "new"), "the journal says so"


def test_manifest_that_somebody_edited_since_stays_while_the_others_of_its_unit_go_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = swap_failing(-1, monkeypatch, is_done=False)
    options = RunOptions(command="swap", confirm_within_s=60)
    run.carry_out(options)
    edited = manifest_path("kube-scheduler")
    run.node.machine.files[edited] = (0o600, manifest_of("kube-scheduler", "mine"))
    run.node.sleep(60)
    memory: Any = run.node.machine
    transactions = Transactions(Runs(memory), run.reporter)
    name = transactions.runs.unconfirmed()[0].header.run
    assert transactions.take_back(options, name, reaches_cluster=False) == frozenset([edited])
    assert run.node.notes() == {**dict.fromkeys(ORDER, "old"), "kube-scheduler": "mine"}
    assert run.node.traps == []


def test_way_back_of_etcd_that_nobody_can_judge_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = plan_swap(PODS, NODE, "it changed", replace(SETTINGS, former_etcd="3.6"))
    run = swap_failing(len(steps) - 1, monkeypatch, is_done=False)
    run.steps = steps
    answers: list[str] = []

    def silent() -> str:
        if not answers:
            raise GarboardError("no member of etcd tells its cluster version")
        return answers.pop()

    monkeypatch.setattr(run.node, "etcd_cluster_version", silent)
    with pytest.raises(GarboardError, match="no member of etcd tells its cluster version"):
        run.carry_out()
    answers.append("3.7.0")
    Transactions(Runs(NodeMachine(None)), run.reporter).undo(RunOptions(command="undo"))
    assert run.node.notes() == {**dict.fromkeys(ORDER, "old"), "etcd": "new"}


def test_way_back_that_does_not_become_well_stays_open_and_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run = swap_failing(8, monkeypatch, is_done=False)
    run.node.exits_after_s = {"kube-scheduler": 0.2}
    with pytest.raises(GarboardError, match="kube-scheduler: ") as caught:
        run.carry_out()
    assert "garboard undo goes on from there" in (caught.value.hint or "")
    assert len(Runs(NodeMachine(None)).open()) == 2
    run.node.exits_after_s = {"kube-scheduler": 1e9}  # it starts once more, and stays
    Transactions(Runs(NodeMachine(None)), run.reporter).undo(RunOptions(command="undo"))
    assert run.node.notes() == dict.fromkeys(ORDER, "old")
    assert Runs(NodeMachine(None)).open() == ()
