"""`garboard upgrade diff`."""

import sys

import click

from garboard.cli.color import is_wanted, painted_diff
from garboard.cli.console import ConsoleReporter
from garboard.cli.flags import choice, number, switch
from garboard.cli.output import write_data
from garboard.cli.upgrade.flags import PreviewCommand
from garboard.cli.workflow_commands import asked
from garboard.node.reporter import OutputFormat
from garboard.node.upgrade_preview import upgrade_changes
from garboard.patches.unified import CONTEXT

_HELP = """Show what an upgrade changes on this node and in its cluster, and what restarts for it.

It is computed from the very plan that `upgrade apply VERSION` would run, patches included: the four static pods, the
kubelet's configuration, the ConfigMaps and the addons, each as a diff behind a line about what restarts and why.
Without a version it is that of `upgrade node`, to the version that the cluster stores. Nothing is changed.
"""


def _diff(output: OutputFormat, exit_code: bool, color: str | None, **_options: object) -> None:
    found = upgrade_changes(asked(), ConsoleReporter())
    for note in found.notes:
        sys.stderr.write(f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}\n")
    text = found.as_text()
    lines = map(painted_diff, text.splitlines(keepends=True)) if is_wanted(color or "auto") else (text,)
    write_data(found.as_json(), output, text="".join(lines))
    if exit_code and not all(each.is_quiet for each in found.changes):
        click.get_current_context().exit(1)


diff = PreviewCommand(
    "diff",
    _diff,
    (
        number("context-lines", "Show N lines around each change.", CONTEXT, letter="c"),
        switch("exit-code", "Exit with 1 if anything changes or restarts."),
        choice("color", "Colour the output; auto does so on a terminal.", ("auto", "always", "never")),
    ),
    summary=_HELP,
    epilog="Example: garboard upgrade diff v1.37.1 --patches ./patches",
)
