"""What differs on this node before it is upgraded: somebody at a terminal is asked what becomes of hand edits."""

import os
from contextlib import suppress
from functools import partial

from garboard.config import GivenFlags
from garboard.drift import Difference, differences_as_text
from garboard.errors import NotReady
from garboard.node.runs import can_journal
from garboard.node.workflow import LocalNode
from garboard.phases.patching import NodePatches
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.differences import find_drift
from garboard.phases.upgrade.drift_choices import DriftChoice, DriftChoices

_QUESTION = "[upgrade] It was edited by hand, and an upgrade drops it. Keep it as a patch, drop it, or abort? [k/d/A]: "


def with_drift(
    context: UpgradeContext, recorded: NodePatches, flags: GivenFlags, node: LocalNode, *, is_shown: bool
) -> UpgradeContext:
    """Compare this node with what its cluster declares; patches that were chosen to be kept are in the context."""
    choices = DriftChoices.parse(flags.list("drift"))
    is_asked = not (is_shown or flags.switch("yes") or context.is_upgraded) and _is_at_terminal()
    return find_drift(context, choices, partial(_ask, node) if is_asked else None, recorded, _last_written(node))


def _is_at_terminal() -> bool:
    with suppress(OSError):
        return os.isatty(0)
    return False


def _ask(node: LocalNode, difference: Difference) -> DriftChoice:
    node.reporter.report(differences_as_text((difference,)).rstrip())
    words = {choice[0]: choice for choice in DriftChoice}
    return words.get(node.reporter.ask(_QUESTION).strip().lower()[:1], DriftChoice.ABORT)


def _last_written(node: LocalNode) -> dict[str, bytes]:
    """Return the files that garboard itself wrote last, as far as they are known."""
    if not can_journal():
        return {}
    with suppress(NotReady):  # a set that is damaged tells nothing
        good = node.runs.last_good
        found = good.read()
        return {each.path: good.content(each) for each in found.files} if found else {}
    return {}
