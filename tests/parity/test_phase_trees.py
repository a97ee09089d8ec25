"""The trees of phases and the flags of every phase, beside those of the real kubeadm."""

import re

import click
import pytest

from garboard.cli.init import INIT_FLAGS, PHASE_ONLY_FLAGS
from garboard.cli.join import JOIN_FLAGS
from garboard.cli.reset import RESET_FLAGS
from garboard.cli.upgrade.apply import APPLY_FLAGS
from garboard.cli.upgrade.node import UPGRADE_NODE_FLAGS
from garboard.phases import flatten
from garboard.phases.init import INIT
from garboard.phases.join import JOIN
from garboard.phases.reset import RESET
from garboard.phases.upgrade.tree import APPLY, NODE
from garboard.phases.workflow import ContextT, Phase
from tests.support.parity.kubeadm import Kubeadm

pytestmark = pytest.mark.real
WORKFLOWS = pytest.mark.parametrize(
    ("name", "phases", "flags"),
    [
        ("init", INIT, INIT_FLAGS),
        ("join", JOIN, JOIN_FLAGS),
        ("reset", RESET, RESET_FLAGS),
        ("upgrade apply", APPLY, APPLY_FLAGS),
        ("upgrade node", NODE, UPGRADE_NODE_FLAGS),
    ],
    ids=["init", "join", "reset", "upgrade apply", "upgrade node"],
)
_OF_EVERY_COMMAND = {"help", "rootfs", "v", "vmodule"}
# kubeadm names admin.conf for workers as well, which have none, and takes the kubelet's there.
_OTHER_DEFAULTS = {("upgrade node", "kubeconfig")}
# kubeadm can patch kube-proxy from 1.37 on; the flag of one garboard for both minors stands in both.
_PATCHED_SINCE_137 = {("upgrade apply", "addon/kube-proxy"), ("upgrade node", "addon/kube-proxy")}


def shown_flags(text: str) -> dict[str, str | None]:
    """Return the flags that a help text shows, with the default it names."""
    found = re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)(?: \w+)?\s+(.*)$", text, re.MULTILINE)
    return {
        name: default[1].strip('"') if (default := re.search(r"\(default (.*)\)$", rest)) else None
        for name, rest in found
        if name not in _OF_EVERY_COMMAND
    }


def tree_of(text: str) -> list[str]:
    """Return the full names of the phases that a help text lists."""
    block = re.search(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    names: list[str] = []
    parent = ""
    for line in block[1].splitlines():
        name = line.split()[0]
        if name.startswith("/"):
            names.append(parent + name)
        else:
            parent = name
            names.append(name)
    return names


@WORKFLOWS
def test_tree_is_kubeadms(
    kubeadm: Kubeadm, name: str, phases: tuple[Phase[ContextT], ...], flags: dict[str, click.Option]
) -> None:
    ours = [each.path for each in flatten(phases) if not each.phase.is_hidden and not each.phase.runs_siblings]
    assert ours == tree_of(kubeadm.help(*name.split()))


@WORKFLOWS
def test_flags_of_the_workflow_are_kubeadms(
    kubeadm: Kubeadm, name: str, phases: tuple[Phase[ContextT], ...], flags: dict[str, click.Option]
) -> None:
    theirs = shown_flags(kubeadm.help(*name.split()))
    assert sorted(flags) == sorted(theirs)
    assert {each: str(flag.default) for each, flag in flags.items() if flag.show_default} == {
        each: default for each, default in theirs.items() if default is not None and (name, each) not in _OTHER_DEFAULTS
    }


@WORKFLOWS
def test_flags_of_every_phase_are_kubeadms(
    kubeadm: Kubeadm, name: str, phases: tuple[Phase[ContextT], ...], flags: dict[str, click.Option]
) -> None:
    for each in flatten(phases):
        if each.phase.is_hidden or each.phase.children:
            continue
        theirs = shown_flags(kubeadm.help(*name.split(), "phase", *each.path.split("/")))
        known = {**flags, **(PHASE_ONLY_FLAGS if name == "init" else {})}
        ours = [flag for flag in each.phase.flags if not known[flag].hidden]
        if (name, each.path) in _PATCHED_SINCE_137 and kubeadm.version.startswith("v1.36."):
            ours.remove("patches")
        assert (each.path, sorted(ours)) == (each.path, sorted(theirs))


@pytest.mark.parametrize(("alias", "name"), [("uploadconfig", "upload-config"), ("bootstraptoken", "bootstrap-token")])
def test_aliases_are_sub_commands_of_kubeadm_too(kubeadm: Kubeadm, alias: str, name: str) -> None:
    assert f"kubeadm init phase {name}" in kubeadm.help("init", "phase", alias)
    assert alias in next(phase.aliases for phase in INIT if phase.name == name)
