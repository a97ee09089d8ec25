"""`upgrade plan` and `upgrade diff`: their flags, and what needs no node."""

import click
import pytest
from click.testing import CliRunner

from garboard.cli.upgrade.diff import diff
from garboard.cli.upgrade.flags import PreviewCommand
from garboard.cli.upgrade.plan import plan
from garboard.cli.workflow_commands import flag_name

BOTH = pytest.mark.parametrize("command", [plan, diff], ids=["plan", "diff"])


def flags(command: click.Command) -> set[str]:
    return {flag_name(each) for each in command.params}


@BOTH
def test_flags_of_kubeadm_are_there(command: click.Command) -> None:
    of_plan = {"allow-experimental-upgrades", "allow-release-candidate-upgrades", "config", "etcd-upgrade",
               "ignore-preflight-errors", "kubeconfig", "print-config", "output"}  # fmt: skip
    assert (of_plan if command is plan else {"config", "context-lines", "kubeconfig"}) <= flags(command)


@BOTH
def test_patches_and_what_becomes_of_differences_can_be_given(command: click.Command) -> None:
    assert {"patches", "drift", "certificate-renewal"} <= flags(command)


@BOTH
def test_help_has_an_example(command: click.Command) -> None:
    printed = CliRunner().invoke(command, ["--help"]).output
    assert f"garboard upgrade {command.name} v1.37.1" in printed


@BOTH
def test_switch_without_a_value_leaves_the_version_alone(command: PreviewCommand) -> None:
    context = click.Context(command)
    command.parse_args(context, ["--etcd-upgrade", "v1.37.1"])
    assert (context.params["etcd_upgrade"], context.params["version"]) == (True, "v1.37.1")


@BOTH
def test_a_second_argument_is_refused(command: click.Command) -> None:
    assert CliRunner().invoke(command, ["v1.37.1", "v1.36.4"]).exit_code == 2


def test_lines_of_context_have_a_letter() -> None:
    context = click.Context(diff)
    diff.parse_args(context, ["-c", "1"])
    assert context.params["context_lines"] == 1
