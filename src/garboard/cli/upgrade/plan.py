"""`garboard upgrade plan`."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.flags import switch
from garboard.cli.output import write_data
from garboard.cli.upgrade.flags import PreviewCommand
from garboard.cli.workflow_commands import asked
from garboard.errors import NotReady
from garboard.node.reporter import OutputFormat
from garboard.node.upgrade_preview import upgrade_report

_HELP = """Show to which versions the cluster can be upgraded, and what would stop or break an upgrade.

Without a version these are the releases that garboard knows, without a network: the newest of the cluster's minor, and
the next minor. For each it lists every component with its present version and the next one. What `upgrade apply` would
come upon is found out by planning it. Nothing is changed. The exit code is 4 if something would stop it.
"""


def _plan(output: OutputFormat, **_options: object) -> None:
    report = upgrade_report(asked(), ConsoleReporter())
    write_data(report.as_json(), output, text=report.as_text())
    if report.errors:
        click.get_current_context().exit(NotReady.exit_code)


plan = PreviewCommand(
    "plan",
    _plan,
    (
        switch("allow-experimental-upgrades", "Allow a target that is unstable: an alpha, beta or candidate."),
        switch("allow-release-candidate-upgrades", "Allow a target that is a release candidate."),
        switch("print-config", "Print the configuration of the cluster that the upgrade starts from."),
    ),
    summary=_HELP,
    epilog="Example: garboard upgrade plan v1.37.1 -o json",
)
