"""The table of actions is whole: every kind has its row, its interpreter and its place in journals, and no other."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import garboard
from garboard import engine
from garboard.engine import PlanCodec, pre_image
from garboard.engine.action import Action
from garboard.engine.traits import TRAITS
from garboard.node.interpreters import interpreters_over
from tests.support.node.edges import EveryEdge

SOURCE = Path(garboard.__file__).parent
KINDS = frozenset(get_args(Action))
# Planning is what actions are for; the engine exports them all, and decides nothing there; undo knows what goes before
# what, and `test_undo_has_an_answer_for_every_kind_of_action` guards it.
ANYWHERE = (
    "phases/", "change/", "fleet/", "engine/__init__.py",
    "engine/undo.py", "engine/undo_files.py", "engine/undo_objects.py", "engine/undo_running.py",
)  # fmt: skip
# Short runs on the cluster alone, without a workflow: the policy of agents, and a server-side apply of definitions.
_OF_CLUSTERS = ("node/change_agent.py", "node/fleet/deploying.py")
# Who else has to know a kind, and why.
BESIDES = {
    "MakeFolder": {"node/change_arming.py"},  # what a node in a change notes for itself is a run of its own
    "WriteFile": {"engine/file_content.py", "node/change_arming.py"},  # what it is written with
    "RemoveFile": {"engine/execute.py", "node/change_arming.py"},  # what a killed write left
    "Issue": {"node/wiring.py"},  # keys are made ahead
    "AwaitGate": {"node/wiring.py"},  # a kubeconfig that the kubelet makes meanwhile
    "PutObject": {
        "node/wiring.py",
        "node/workflow.py",
        "node/tokens.py",
        "node/upgrade_preview.py",
        *_OF_CLUSTERS,
        "node/change_apply_status.py",
        "cli/fleet/install.py",
    },  # its kubeconfig; --print-manifest; the state of a target; what is shown of it
    "PatchObject": {"node/wiring.py", "node/tokens.py", "node/fleet/deploying.py"},
    "DeleteObject": {"node/tokens.py", "node/change_resume.py", *_OF_CLUSTERS, "cli/fleet/install.py"},
    # What a service will write to; whether what came into a folder meanwhile can be of a service or a pod.
    "ControlService": {"engine/pre_image.py", "engine/newcomers.py"},
    "RemoveSandboxes": {"engine/newcomers.py"},
    "EmptyFolder": {"engine/newcomers.py"},
    "RemoveMember": {"node/transaction.py"},  # an undo that goes on needs a majority
}
# Kinds that undo does not tell apart, because it restores the files and owners of any pre-image.
RESTORED_BY_PRE_IMAGE = {"ChangeOwner", "Issue"}
# Kinds that leave nothing to undo. A pod that was evicted or deleted is made anew by its controller, a container that
# was stopped by the kubelet; any member may lead etcd, and one that votes is removed like a learner; a pulled image is
# cached.
LEAVES_NOTHING_TO_UNDO = {
    "AwaitGate", "DeletePods", "EvictPods", "MoveLeader", "PromoteMember", "PullImage", "RestartLearner", "ShowMessage",
    "StopContainer", "StopPods",
}  # fmt: skip


@cache
def names_in(path: Path) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name))


def places_of(kind: str) -> set[str]:
    """Return the modules whose code names a kind of action, but for those that may name any."""
    modules = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    return {module for module, path in modules.items() if not module.startswith(ANYWHERE) and kind in names_in(path)}


def test_every_kind_of_action_has_a_row_with_a_tag_of_its_own() -> None:
    assert set(TRAITS) == KINDS
    assert len({traits.tag for traits in TRAITS.values()}) == len(KINDS)


def test_every_kind_of_action_has_an_interpreter() -> None:
    every = EveryEdge()
    interpreters = interpreters_over(
        files=every, issuer=every, services=every, timers=every, unit_files=every, links=every, objects=every,
        pods=every, members=every, maintenance=every, runtime=every, leases=every, waiter=every, display=every,
        sealer=every, is_serving=bool, is_learner=bool,
    )  # fmt: skip
    assert set(interpreters._by_kind) == KINDS


def test_every_kind_of_action_can_be_kept_in_a_journal() -> None:
    assert set(PlanCodec()._tags) >= KINDS


@pytest.mark.parametrize("kind", sorted(each.__name__ for each in KINDS))
def test_a_kind_of_action_has_three_places(kind: str) -> None:
    """Its value, its row and its interpreter; more only where the table above says why."""
    places = places_of(kind) - BESIDES.get(kind, set())
    values = {"engine/action.py"} & places  # a value that no other value names is only defined there
    assert places - values - {"engine/traits.py"} == {
        each for each in places if each.startswith("node/interpreters/")
    }, "a further place"
    assert "engine/traits.py" in places
    assert len({each for each in places if each.startswith("node/interpreters/")}) == 1


def told_apart(path: Path) -> Iterator[str]:
    """Yield where a module tells more than a third of all kinds apart: by a match, a tuple, a union or a table."""
    names = {kind.__name__ for kind in KINDS}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Match | ast.Tuple | ast.BinOp | ast.Dict):
            named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if len(named & names) > len(names) // 3:
                yield path.relative_to(SOURCE).as_posix()


def test_only_the_table_tells_all_kinds_apart() -> None:
    found = {module for path in SOURCE.rglob("*.py") for module in told_apart(path)}
    assert found == {"engine/traits.py"}


def test_every_kind_of_action_is_exported() -> None:
    assert {kind.__name__ for kind in KINDS} <= set(engine.__all__)


def asked_for_by_undo() -> Iterator[str]:
    """Yield the kinds that undo asks a begun action for: those that it only makes do not count."""
    for path in (SOURCE / "engine").glob("undo*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                yield from (each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name))


def test_undo_has_an_answer_for_every_kind_of_action() -> None:
    """A kind is undone by name, by its pre-image, or needs no undo, and a new one is added to one of these."""
    names = {kind.__name__ for kind in KINDS}
    undone = names & set(asked_for_by_undo())
    lost = {kind.__name__ for kind, traits in TRAITS.items() if traits.loses}
    assert names - undone - lost == RESTORED_BY_PRE_IMAGE | LEAVES_NOTHING_TO_UNDO
    assert not RESTORED_BY_PRE_IMAGE & LEAVES_NOTHING_TO_UNDO


def test_only_what_leaves_nothing_to_undo_or_is_lost_has_no_pre_image() -> None:
    without = {kind.__name__ for kind, traits in TRAITS.items() if traits.pre_image is pre_image.nothing}
    lost = {kind.__name__ for kind, traits in TRAITS.items() if traits.loses}
    leases = {"AcquireLease", "ReleaseLease"}  # what undo needs of a Lease is in the action
    assert without == LEAVES_NOTHING_TO_UNDO | lost | leases
