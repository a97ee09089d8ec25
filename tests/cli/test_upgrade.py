"""The commands of `upgrade`: their switches take a truth as Go's do, and both know kubeadm's phases."""

from typing import Any

import click
import pytest

from garboard.cli.upgrade.apply import apply
from garboard.cli.upgrade.node import node
from garboard.cli.workflow_commands import WorkflowGroup
from garboard.errors import BadUsage

BOTH = pytest.mark.parametrize("command", [apply, node], ids=["apply", "node"])


def parsed(command: click.Command, *words: str) -> dict[str, Any]:
    context = click.Context(command)
    command.parse_args(context, [*words])
    return context.params


@BOTH
@pytest.mark.parametrize(
    ("words", "value"),
    [
        pytest.param((), True, id="not given"),
        pytest.param(("--etcd-upgrade",), True, id="without a value"),
        pytest.param(("--etcd-upgrade=false",), False, id="off"),
        pytest.param(("--etcd-upgrade=0",), False, id="off as a number"),
        pytest.param(("--etcd-upgrade=T",), True, id="on as a letter"),
    ],
)
def test_switch_that_is_on_is_read_as_go_reads_it(command: click.Command, words: tuple[str, ...], value: bool) -> None:
    assert parsed(command, *words)["etcd_upgrade"] is value


def test_version_behind_a_switch_without_a_value_is_the_version() -> None:
    context = click.Context(apply)
    apply.parse_args(context, ["--certificate-renewal", "v1.37.1"])
    assert context.obj == "v1.37.1"
    assert context.params["certificate_renewal"] is True


def test_phase_has_the_switches_too() -> None:
    context = click.Context(apply)
    phases = apply.get_command(context, "phase")
    assert isinstance(phases, click.Group)
    phase = phases.get_command(context, "control-plane")
    assert phase is not None
    assert parsed(phase, "--etcd-upgrade=false", "--certificate-renewal")["etcd_upgrade"] is False


@BOTH
def test_word_that_is_no_truth_is_bad_usage(command: WorkflowGroup[Any]) -> None:
    with pytest.raises(BadUsage, match="is not true or false"):
        parsed(command, "--etcd-upgrade=maybe")


@BOTH
def test_rolling_back_is_not_asked_for(command: WorkflowGroup[Any]) -> None:
    """An upgrade that fails is always undone."""
    assert "undo_on_failure" not in parsed(command)
