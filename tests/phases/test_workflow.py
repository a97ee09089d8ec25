from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.engine import Note, Step, WriteFile, paths_written
from garboard.errors import BadUsage, GarboardError
from garboard.phases import Phase, flatten, plan_workflow, select, tree_text
from garboard.phases.init import INIT


@dataclass(frozen=True)
class Context:
    node_name: str = "node-1"
    done: frozenset[str] = field(default_factory=frozenset)
    is_late: bool = False

    def after(self, steps: tuple[Step, ...]) -> Self:
        return type(self)(self.node_name, self.done | paths_written(steps), self.is_late)


def writes(path: str) -> Phase[Context]:
    def plan(context: Context) -> Iterator[Step | Note]:
        yield Note(f"found {sorted(context.done)}")
        yield Step(WriteFile(path=f"/{path}", content=b"", mode=0o600), "because")

    return Phase(name=path, summary=path, plan=plan)


def fails(_context: Context) -> Iterator[Step | Note]:
    raise GarboardError("no such thing")
    yield


TREE: tuple[Phase[Context], ...] = (
    writes("a"),
    Phase(
        name="b",
        summary="b",
        aliases=("bee",),
        plan=lambda _context: [Note("header")],
        children=(Phase(name="all", summary="all", runs_siblings=True), writes("c"), writes("d")),
    ),
    Phase(name="hidden", summary="hidden", is_hidden=True, plan=writes("hidden").plan),
    Phase(name="late", summary="late", run_if=lambda context: context.is_late, plan=writes("late").plan),
    Phase(name="e", summary="e", needs=("a",), plan=writes("e").plan),
)


def paths(**kwargs: object) -> list[str]:
    return [each.path for each in select(TREE, **kwargs)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("skip", "left"),
    [
        pytest.param((), ["a", "b", "b/c", "b/d", "hidden", "late", "e"], id="nothing"),
        pytest.param(("b",), ["a", "hidden", "late", "e"], id="a parent takes its children along"),
        pytest.param(("b/c",), ["a", "b", "b/d", "hidden", "late", "e"], id="a child alone"),
        pytest.param(("b/c", "b/d"), ["a", "b", "hidden", "late", "e"], id="all children, the parent stays"),
        pytest.param(("hidden",), ["a", "b", "b/c", "b/d", "late", "e"], id="a hidden one"),
        pytest.param(("a", "e"), ["b", "b/c", "b/d", "hidden", "late"], id="one with what needs it"),
        pytest.param(("b", "b/c"), ["a", "hidden", "late", "e"], id="a parent and its child"),
        pytest.param(("b", "b"), ["a", "hidden", "late", "e"], id="twice"),
    ],
)
def test_skipped_phases_are_left_out(skip: tuple[str, ...], left: list[str]) -> None:
    assert paths(skip=skip) == left


@pytest.mark.parametrize("name", ["nope", "c", "bee", "b/", "B", ""])
def test_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(BadUsage, match=f"^invalid phase name: {name}$"):
        select(TREE, skip=(name,))


def test_phase_that_needs_a_skipped_one_is_refused() -> None:
    with pytest.raises(BadUsage, match=r'missing \[a\] phase\(s\) needed by "e" phase'):
        select(TREE, skip=("a",))


@pytest.mark.parametrize(
    ("only", "selected"),
    [
        pytest.param("a", ["a"], id="one without children"),
        pytest.param("b/c", ["b/c"], id="a leaf, without what its parent does"),
        pytest.param("b/all", ["b", "b/c", "b/d"], id="all: the parent and its children"),
        pytest.param("b", ["b", "b/c", "b/d"], id="a parent"),
    ],
)
def test_single_phase_is_selected(only: str, selected: list[str]) -> None:
    assert paths(only=only) == selected


def test_single_phase_that_needs_another_is_refused() -> None:
    with pytest.raises(BadUsage, match="unresolved dependencies"):
        select(TREE, only="e")


def test_steps_carry_phase_and_node_and_know_what_comes_before() -> None:
    plan = plan_workflow(select(TREE), Context())
    assert [(step.phase, step.node) for step in plan.steps] == [
        (path, "node-1") for path in ("a", "b/c", "b/d", "hidden", "e")
    ]
    assert plan.notes[2] == Note("found ['/a']", phase="b/c")
    assert plan.notes[-1] == Note("found ['/a', '/c', '/d', '/hidden']", phase="e")


def test_run_if_decides_while_planning() -> None:
    plan = plan_workflow(select(TREE), Context(is_late=True))
    assert "late" in [step.phase for step in plan.steps]


def test_failure_names_its_phase() -> None:
    tree: tuple[Phase[Context], ...] = (
        Phase(name="a", summary="", children=(Phase(name="b", summary="", plan=fails),)),
    )
    with pytest.raises(GarboardError) as caught:
        plan_workflow(select(tree), Context())
    assert caught.value.message == "no such thing (phase a/b)"


def test_tree_shows_neither_hidden_phases_nor_all() -> None:
    assert tree_text(TREE) == "a     a\nb     b\n  /c  c\n  /d  d\nlate  late\ne     e\n"


@settings(max_examples=50, deadline=None)
@given(st.sets(st.sampled_from([each.path for each in flatten(INIT)])))
def test_any_phases_can_be_skipped_and_the_order_stays(skip: set[str]) -> None:
    every = [each.path for each in select(INIT)]
    left = [path for path in every if not any(f"{path}/".startswith(f"{name}/") for name in skip)]
    if "show-join-command" in left and not {"bootstrap-token", "upload-certs"} <= set(left):
        with pytest.raises(BadUsage, match='needed by "show-join-command"'):
            select(INIT, skip=skip)
    else:
        assert [each.path for each in select(INIT, skip=skip)] == left
