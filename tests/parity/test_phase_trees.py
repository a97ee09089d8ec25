"""The trees of phases and the flags of every phase, beside those of the real kubeadm."""

import re
import subprocess

import pytest

from garboard.phases import flatten
from garboard.phases.flags import Flag
from garboard.phases.init.flags import INIT_FLAGS, PHASE_ONLY_FLAGS
from garboard.phases.init.tree import INIT
from garboard.phases.join import JOIN
from garboard.phases.join.flags import JOIN_FLAGS
from garboard.phases.reset import RESET
from garboard.phases.reset.flags import RESET_FLAGS
from garboard.phases.workflow import ContextT, Phase
from tests.parity.kubeadm import Kubeadm

pytestmark = pytest.mark.real
WORKFLOWS = pytest.mark.parametrize(
    ("name", "phases", "flags"),
    [("init", INIT, INIT_FLAGS), ("join", JOIN, JOIN_FLAGS), ("reset", RESET, RESET_FLAGS)],
    ids=["init", "join", "reset"],
)
_OF_EVERY_COMMAND = {"help", "rootfs", "v", "vmodule"}


def told(kubeadm: Kubeadm, *arguments: str) -> str:
    done = subprocess.run(
        [kubeadm.program, *arguments, "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


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
    kubeadm: Kubeadm, name: str, phases: tuple[Phase[ContextT], ...], flags: dict[str, Flag]
) -> None:
    ours = [each.path for each in flatten(phases) if not each.phase.is_hidden and not each.phase.runs_siblings]
    assert ours == tree_of(told(kubeadm, name))


@WORKFLOWS
def test_flags_of_the_workflow_are_kubeadms(
    kubeadm: Kubeadm, name: str, phases: tuple[Phase[ContextT], ...], flags: dict[str, Flag]
) -> None:
    theirs = shown_flags(told(kubeadm, name))
    ours = {each: flag for each, flag in flags.items() if name != "init" or each not in PHASE_ONLY_FLAGS}
    assert sorted(ours) == sorted(theirs)
    assert {each: str(flag.default) for each, flag in ours.items() if flag.default is not None} == {
        each: default for each, default in theirs.items() if default is not None
    }


@WORKFLOWS
def test_flags_of_every_phase_are_kubeadms(
    kubeadm: Kubeadm, name: str, phases: tuple[Phase[ContextT], ...], flags: dict[str, Flag]
) -> None:
    for each in flatten(phases):
        if each.phase.is_hidden or each.phase.children:
            continue
        theirs = shown_flags(told(kubeadm, name, "phase", *each.path.split("/")))
        ours = [flag for flag in each.phase.flags if not flags[flag].is_hidden]
        assert (each.path, sorted(ours)) == (each.path, sorted(theirs))


@pytest.mark.parametrize(("alias", "name"), [("uploadconfig", "upload-config"), ("bootstraptoken", "bootstrap-token")])
def test_aliases_are_sub_commands_of_kubeadm_too(kubeadm: Kubeadm, alias: str, name: str) -> None:
    assert f"kubeadm init phase {name}" in told(kubeadm, "init", "phase", alias)
    assert alias in next(phase.aliases for phase in INIT if phase.name == name)
