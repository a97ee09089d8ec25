"""One command may have several workflows, as `upgrade apply` and `upgrade node`, each with phases of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from garboard.cli.init import init
from garboard.cli.join import TUNNEL_FLAGS, join
from garboard.cli.reset import reset
from garboard.cli.upgrade.apply import apply
from garboard.cli.upgrade.node import node
from garboard.cli.workflow_commands import (
    DRY_RUN,
    OWN_FLAGS,
    SHARED_FLAGS,
    WORKFLOW_FLAGS,
    WorkflowFlags,
    WorkflowGroup,
    by_name,
    flag_name,
)
from garboard.config import check_mixed_flags
from garboard.engine import MakeFolder, Step
from garboard.node.runs import Runs
from garboard.node.transaction import RunPolicy
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, Observed, Prepared, Workflow, WorkflowRequest
from garboard.phases import Phase, Placed


@dataclass(frozen=True)
class Context:
    folder: str
    node_name: str = "node-1"

    def after(self, steps: tuple[Step, ...]) -> "Context":
        return self


def making(name: str) -> Phase[Context]:
    """Return a phase that makes a folder of its own name."""

    def plan(context: Context) -> Iterator[Step]:
        yield Step(MakeFolder(path=f"{context.folder}/{name}", mode=0o700), "there is none")

    return Phase[Context](name=name, summary=f"Make {name}", plan=plan, flags=("dry-run",))


def made_up(name: str, folder: Path, *phases: str) -> WorkflowGroup[Context]:
    @contextmanager
    def observe(
        prepared: Prepared[str], _selected: Sequence[Placed[Context]], _request: WorkflowRequest, _node: LocalNode
    ) -> Iterator[Observed[Context]]:
        yield Observed(context=Context(prepared.config), settings=RunSettings())

    def prepare(request: WorkflowRequest, _node: LocalNode) -> Prepared[str]:
        return Prepared(
            config=str(folder), skips=request.flags.list("skip-phases"), is_shown=request.flags.switch("dry-run")
        )

    workflow = Workflow[str, Context](
        name=name,
        phases=tuple(making(phase) for phase in phases),
        prepare=prepare,
        observe=observe,
        policy=lambda _config, _request, _node: RunPolicy(),
    )
    flags = WorkflowFlags(workflow, by_name(DRY_RUN, SHARED_FLAGS["skip-phases"]))
    return WorkflowGroup(flags, summary=f"Carry out {name}.", epilog=f"Example: garboard {name}")


Invoke = Callable[..., Result]


@pytest.fixture
def renew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """A command with two workflows, `renew apply` and `renew node`."""
    monkeypatch.setattr("garboard.node.workflow.can_journal", lambda: True)
    group = click.Group("renew")
    group.add_command(made_up("renew apply", tmp_path, "plan", "components", "addons"))
    group.add_command(made_up("renew node", tmp_path, "plan", "kubelet"))
    root = click.Group("garboard", commands={"renew": group})
    return lambda *words: CliRunner().invoke(root, ("renew", *words), catch_exceptions=False)


def made(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name in ("plan", "components", "addons", "kubelet")}


@pytest.mark.parametrize(
    ("words", "folders", "command"),
    [
        pytest.param(("apply",), {"plan", "components", "addons"}, "renew apply", id="the first as a whole"),
        pytest.param(("node",), {"plan", "kubelet"}, "renew node", id="the second as a whole"),
        pytest.param(("apply", "phase", "addons"), {"addons"}, None, id="a phase of the first"),
        pytest.param(("node", "phase", "plan"), {"plan"}, None, id="a phase that both have"),
        pytest.param(
            ("apply", "--skip-phases", "plan,addons"), {"components"}, "renew apply", id="phases that are left out"
        ),
    ],
)
def test_each_workflow_carries_out_its_own_phases(
    renew: Invoke, tmp_path: Path, words: tuple[str, ...], folders: set[str], command: str | None
) -> None:
    done = renew(*words)
    assert done.exit_code == 0, done.output
    assert made(tmp_path) == folders
    # The journal of a single phase goes when it has ended.
    assert [run.header.command for run in Runs().all()] == ([command] if command else [])


def test_phase_of_the_other_workflow_is_not_there(renew: Invoke, tmp_path: Path) -> None:
    done = renew("node", "phase", "addons")
    assert done.exit_code == 2
    assert "No such command 'addons'" in done.output
    assert made(tmp_path) == set()


def test_help_says_the_whole_command_and_its_own_phases(renew: Invoke) -> None:
    assert "apply" in renew("--help").output
    told = renew("node", "--help").output
    assert "Usage: garboard renew node [OPTIONS] [phase NAME…]" in told
    assert "kubelet" in told
    assert "components" not in told
    assert "Example: garboard renew node phase plan" in renew("node", "phase", "--help").output


def test_plan_is_printed_and_nothing_is_made(renew: Invoke, tmp_path: Path) -> None:
    done = renew("node", "phase", "kubelet", "--dry-run")
    assert done.output.startswith("[kubelet] make folder")
    assert made(tmp_path) == set()


@pytest.mark.parametrize("command", [init, join, reset, apply, node])
def test_every_flag_that_kubeadm_does_not_have_goes_with_a_file(command: WorkflowGroup[Any]) -> None:
    """Those of a tunnel have a document of their own, a TunnelConfiguration in the file."""
    known = {**OWN_FLAGS, **WORKFLOW_FLAGS, **command.workflow.more_flags}
    own = [flag_name(option) for option in command.params if flag_name(option) in known.keys() - TUNNEL_FLAGS.keys()]
    assert own
    check_mixed_flags(["config", *own])
