"""`garboard fleet deprovision`."""

from pathlib import Path

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.fleet.provision_inputs import files_option, requested, work_option
from garboard.errors import BadUsage
from garboard.fleet.provision import OutputScrubber
from garboard.node.fleet.orders import environment_for, installer_for, scrubber_for
from garboard.node.fleet.provisioning import provisioner


@click.command(epilog="Example: garboard fleet deprovision --work /var/lib/fleet/edge-1")
@work_option
@files_option
@click.option("--deployment", metavar="NAME", help="With -f: the ClusterDeployment whose installerEnv is used.")
@click.option("--again", is_flag=True, help="Also destroy what is recorded as destroyed.")
def deprovision(work: Path, files: tuple[str, ...], deployment: str | None, again: bool) -> None:
    """Take back what provision has made in a work folder, whole or cut short.

    Hosts are reset only if they still show the infraID of the cluster, and nobody has made another one of them.
    """
    if bool(files) != bool(deployment):
        raise BadUsage("-f and --deployment belong together", hint="give both, or neither")
    request = requested(files, deployment) if deployment else None
    environment = environment_for(request) if request else {}
    scrubber = scrubber_for(request) if request else OutputScrubber()
    reporter = ConsoleReporter()
    with provisioner(
        work, "fleet deprovision", None, lambda record: installer_for(record, environment), reporter, scrubber
    ) as each:
        found = each.deprovision(again=again)
    reporter.report("[deprovision] everything is gone" if found else "[deprovision] there was nothing to destroy")
