"""Asking at a terminal what becomes of what was edited by hand."""

import os
from dataclasses import replace

import pytest

from garboard.config import GivenFlags
from garboard.config.flags import FlagValue
from garboard.host.node_machine import NodeMachine
from garboard.node.upgrade_drift import with_drift
from garboard.node.workflow import LocalNode
from garboard.phases.patching import NodePatches
from garboard.phases.upgrade.drift_choices import DriftChoice
from tests.support.node.reporters import MemoryReporter
from tests.support.phases.upgraded_nodes import edited, upgraded_node

EDITED = edited(upgraded_node(), "kube-apiserver", "--allow-privileged=true", "--allow-privileged=false")


def answering(answer: str) -> MemoryReporter:
    return MemoryReporter(answers=[answer])


def is_asked(reporter: MemoryReporter) -> bool:
    return any("Keep it as a patch, drop it, or abort?" in line for line in reporter.lines)


def chosen(
    reporter: MemoryReporter, values: dict[str, FlagValue] | None = None, *, is_shown: bool = False
) -> list[str]:
    node = LocalNode(NodeMachine(None), reporter)
    found = with_drift(EDITED, NodePatches(), GivenFlags(values or {}), node, is_shown=is_shown)
    return [choice for _, choice in found.drift.chosen]


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _descriptor: True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # without a journal of this machine


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("k\n", DriftChoice.KEEP),
        ("Keep\n", DriftChoice.KEEP),
        ("d\n", DriftChoice.DROP),
        ("a\n", DriftChoice.ABORT),
        ("\n", DriftChoice.ABORT),
        ("", DriftChoice.ABORT),
        ("yes\n", DriftChoice.ABORT),
    ],
)
def test_answer_decides(answer: str, choice: DriftChoice) -> None:
    assert chosen(answering(answer)) == [choice]


def test_question_comes_behind_the_difference() -> None:
    reporter = answering("k")
    chosen(reporter)
    assert "command[--allow-privileged]" in reporter.lines[0]
    assert is_asked(MemoryReporter(lines=reporter.lines[1:]))


@pytest.mark.parametrize(
    ("values", "is_shown"),
    [
        pytest.param({"drift": ("drop",)}, False, id="chosen by a flag"),
        pytest.param({"yes": True}, False, id="with --yes"),
        pytest.param({}, True, id="in a dry run"),
    ],
)
def test_nothing_is_asked(values: dict[str, FlagValue], is_shown: bool) -> None:
    reporter = answering("k")
    chosen(reporter, values, is_shown=is_shown)
    assert not is_asked(reporter)


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _descriptor: False)
    reporter = answering("k")
    assert (chosen(reporter), is_asked(reporter)) == ([], False)


def test_nothing_is_asked_where_there_is_nothing_to_upgrade() -> None:
    reporter = answering("k")
    node = LocalNode(NodeMachine(None), reporter)
    same = replace(EDITED, cluster=EDITED.upgraded.former)
    with_drift(same, NodePatches(), GivenFlags({}), node, is_shown=False)
    assert not is_asked(reporter)
