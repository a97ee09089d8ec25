"""The skeleton of every workflow: what it looks at, what stands in its way, what it shows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from garboard.config import GivenFlags
from garboard.engine import MakeFolder, Plan, Step, WriteFile
from garboard.errors import GarboardError, NotReady, StalePlan
from garboard.host.locks import NodeLocked
from garboard.host.node_machine import NodeMachine
from garboard.host.runs import RunFolders
from garboard.node.reporter import OutputFormat
from garboard.node.runs import Runs
from garboard.node.transaction import RunOptions, RunPolicy, Transactions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import (
    ChangedMeanwhile,
    LocalNode,
    Observed,
    Prepared,
    Workflow,
    WorkflowRequest,
    run_workflow,
)
from garboard.phases import Phase, Placed
from tests.support.node.reporters import MemoryReporter


@dataclass(frozen=True)
class Context:
    folder: str
    node_name: str = "node-1"

    def after(self, steps: tuple[Step, ...]) -> "Context":
        return self


def _plan(context: Context) -> Iterator[Step]:
    yield Step(MakeFolder(path=context.folder, mode=0o700), "there is none")


PHASES = (Phase[Context](name="make", summary="Make a folder", plan=_plan),)


@dataclass
class Example:
    """A workflow that makes a folder, and what it was asked."""

    folder: Path
    policy: RunPolicy = field(default_factory=RunPolicy)
    is_shown: bool = False
    confirmed: list[str] = field(default_factory=list)

    @property
    def workflow(self) -> Workflow[str, Context]:
        return Workflow(
            name="example",
            phases=PHASES,
            prepare=lambda _request, _node: Prepared(config=str(self.folder), is_shown=self.is_shown),
            observe=self._observe,
            policy=lambda _config, _request, _node: self.policy,
            confirm=lambda config, _plan, _selected, _node: self.confirmed.append(config),
        )

    @contextmanager
    def _observe(
        self, prepared: Prepared[str], _selected: Sequence[Placed[Context]], _request: WorkflowRequest, _node: LocalNode
    ) -> Iterator[Observed[Context]]:
        yield Observed(context=Context(prepared.config), settings=RunSettings())


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Example:
    monkeypatch.setattr("garboard.node.workflow.can_journal", lambda: True)
    return Example(tmp_path / "made")


ALL = WorkflowRequest(GivenFlags({}))


def open_run(example: Example) -> None:
    """Leave a run open on this node."""
    plan = Plan((Step(MakeFolder(path="/proc/nowhere", mode=0o700), ""),))
    with pytest.raises(GarboardError):
        Transactions(Runs(NodeMachine(None)), MemoryReporter()).carry_out(
            plan, RunSettings(), RunOptions(command="earlier")
        )


def test_plan_is_confirmed_and_carried_out(example: Example) -> None:
    reporter = MemoryReporter()
    run_workflow(example.workflow, ALL, reporter)
    assert example.folder.is_dir()
    assert example.confirmed == [str(example.folder)]
    assert any(line.startswith("[make] make folder") for line in reporter.lines)
    assert reporter.shown == []


@pytest.mark.parametrize(("output", "start"), [("text", "[make] make folder"), ("json", "{"), ("yaml", "notes:")])
def test_plan_that_is_shown_changes_nothing_and_asks_nothing(
    example: Example, output: OutputFormat, start: str
) -> None:
    example.is_shown = True
    reporter = MemoryReporter()
    run_workflow(example.workflow, replace(ALL, output=output), reporter)
    assert not example.folder.exists()
    assert (example.confirmed, reporter.lines) == ([], [])
    assert reporter.shown[0].startswith(start)


@pytest.mark.parametrize(("changes", "planned"), [(0, 1), (2, 3), (3, 3)])
def test_plan_is_made_again_while_others_change_what_it_is_made_from(
    example: Example, changes: int, planned: int
) -> None:
    made = 0

    def recheck(_waited_s: float) -> None:
        if made <= changes:
            raise ChangedMeanwhile("a ConfigMap has changed")

    @contextmanager
    def observe(
        prepared: Prepared[str], _selected: Sequence[Placed[Context]], _request: WorkflowRequest, _node: LocalNode
    ) -> Iterator[Observed[Context]]:
        nonlocal made
        made += 1
        yield Observed(context=Context(prepared.config), settings=RunSettings(), recheck=recheck)

    reporter = MemoryReporter()
    with pytest.raises(ChangedMeanwhile) if changes == planned else nullcontext():
        run_workflow(replace(example.workflow, observe=observe), ALL, reporter)
    assert made == planned
    assert example.folder.exists() is (changes < planned)
    assert sum("planning again" in line for line in reporter.lines) == planned - 1


@pytest.mark.parametrize("looks_again", [False, True])
def test_run_looks_again_under_its_lease_where_its_policy_says_so(
    example: Example, looks_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[RunOptions] = []

    def begin(_self: object, _plan: Plan, _settings: RunSettings, options: RunOptions, *_more: object) -> None:
        given.append(options)

    monkeypatch.setattr(Transactions, "carry_out", begin)
    example.policy = RunPolicy(looks_again=looks_again)
    run_workflow(example.workflow, ALL, MemoryReporter())
    assert [each.recheck is not None for each in given] == [looks_again]


@pytest.mark.parametrize(
    ("policy", "is_refused"),
    [
        pytest.param(RunPolicy(), True, id="another run"),
        pytest.param(RunPolicy(supersedes=True), False, id="reset"),
    ],
)
def test_open_run_stands_in_the_way_of_all_but_what_supersedes_it(
    example: Example, policy: RunPolicy, is_refused: bool
) -> None:
    open_run(example)
    example.policy = policy
    if is_refused:
        with pytest.raises(NotReady, match=r"\(earlier\) is open"):
            run_workflow(example.workflow, ALL, MemoryReporter())
    else:
        run_workflow(example.workflow, ALL, MemoryReporter())
    assert bool(example.confirmed) != is_refused
    assert bool(Runs(NodeMachine(None)).open()) == is_refused


def test_wrong_phase_is_refused_before_anything_is_looked_at(example: Example) -> None:
    with pytest.raises(GarboardError, match="invalid phase name"):
        run_workflow(example.workflow, replace(ALL, only="mak"), MemoryReporter())
    assert example.confirmed == []


def test_plan_is_made_under_the_lock_and_one_that_is_shown_is_not(example: Example, state_dir: Path) -> None:
    held: list[bool] = []

    @contextmanager
    def observe(
        prepared: Prepared[str], _selected: Sequence[Placed[Context]], _request: WorkflowRequest, _node: LocalNode
    ) -> Iterator[Observed[Context]]:
        try:
            with RunFolders(state_dir).lock("somebody else"):
                held.append(False)
        except NodeLocked:
            held.append(True)
        yield Observed(context=Context(prepared.config), settings=RunSettings())

    run_workflow(replace(example.workflow, observe=observe), ALL, MemoryReporter())
    example.is_shown = True
    run_workflow(replace(example.workflow, observe=observe), ALL, MemoryReporter())
    assert held == [True, False]


def _write(context: Context) -> Iterator[Step]:
    yield Step(WriteFile(path=context.folder, content=b"ours", mode=0o600), "there is none")


WRITES = (Phase[Context](name="write", summary="Write a file", plan=_write),)


def overtaken(example: Example) -> Workflow[str, Context]:
    """A workflow that writes a file which somebody else makes while the user is asked."""

    def confirm(_config: str, _plan: Plan, _selected: Sequence[Placed[Context]], _node: LocalNode) -> None:
        example.folder.write_bytes(b"theirs")

    return replace(example.workflow, phases=WRITES, confirm=confirm)


@pytest.mark.parametrize("journals", [True, False], ids=["root", "a user who may not journal"])
def test_file_that_appears_while_the_user_is_asked_is_not_replaced(
    example: Example, journals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.node.workflow.can_journal", lambda: journals)
    with pytest.raises(StalePlan, match="made has been made since") as caught:
        run_workflow(overtaken(example), ALL, MemoryReporter())
    assert "run the command again" in (caught.value.hint or "")
    assert example.folder.read_bytes() == b"theirs"
    # Nothing was begun, so nothing is left open.
    assert Runs(NodeMachine(None)).all() == ()


def test_file_that_changes_after_planning_has_read_it_is_not_replaced(example: Example) -> None:
    """What counts is what the plan was made from, not what is there when it is complete."""
    example.folder.write_bytes(b"former")

    @contextmanager
    def observe(
        prepared: Prepared[str], _selected: Sequence[Placed[Context]], _request: WorkflowRequest, node: LocalNode
    ) -> Iterator[Observed[Context]]:
        assert node.machine.folder(str(example.folder.parent)).read(example.folder.name) == b"former"
        example.folder.write_bytes(b"theirs")
        yield Observed(context=Context(prepared.config), settings=RunSettings())

    with pytest.raises(StalePlan, match="made has changed since"):
        run_workflow(replace(example.workflow, phases=WRITES, observe=observe), ALL, MemoryReporter())
    assert example.folder.read_bytes() == b"theirs"
