"""`garboard fleet provision`."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.fleet.provision_inputs import files_option, requested, work_option
from garboard.cli.output import output_option, write_data
from garboard.errors import BadUsage, GarboardError
from garboard.fleet import CustomizationFailed
from garboard.fleet.provision import OutputScrubber
from garboard.model import DEFAULT_VERSION
from garboard.node.fleet.orders import environment_for, installer_for, prepare_order, scrubber_for
from garboard.node.fleet.provisioning import keep_refusal, provisioner
from garboard.node.reporter import OutputFormat
from garboard.schema import load_schema


@click.command(epilog="Example: garboard fleet provision -f fleet/ --deployment edge-1 --work /var/lib/fleet/edge-1")
@files_option
@click.option("--deployment", metavar="NAME", help="The ClusterDeployment, or POOL-ENTRY of an inventory.")
@work_option
@click.option(
    "--installer", default="openshift-install", show_default=True, metavar="PROGRAM",
    help="The installer of install configs that are not garboard's own.",
)  # fmt: skip
@output_option
def provision(files: tuple[str, ...], deployment: str | None, work: Path, installer: str, output: OutputFormat) -> None:
    """Make the cluster of a ClusterDeployment: create manifests, patch them, create ignition configs and the cluster.

    Given again after a failure or a kill, it goes on: on hosts (an install config of garboard's own) in the same
    attempt, with another installer after that has destroyed what the last attempt made. An attempt that goes on needs
    no documents: with --work alone, they are not read.
    """
    if bool(files) != bool(deployment):
        raise BadUsage("-f and --deployment belong together", hint="give both, or neither to go on with an attempt")
    reporter, order, new = ConsoleReporter(), None, None
    environment: dict[str, str] = {}
    scrubber = OutputScrubber()
    if deployment is not None:
        with _refusals_kept(work, deployment):
            request = requested(files, deployment)
            environment, scrubber = environment_for(request), scrubber_for(request)
            prepared = prepare_order(request, lambda: load_schema(DEFAULT_VERSION), installer)
        order, new = prepared.order, prepared.record
        for warning in prepared.warnings:
            reporter.report(f"warning: {scrubber.known(warning)}")
    with provisioner(
        work, "fleet provision", new, lambda record: installer_for(record, environment), reporter, scrubber
    ) as each:
        if order is None:
            each.resume()
        else:
            each.provision(order)
    made = each.results()
    write_data({**made}, output, text="".join(f"{name}: {value}\n" for name, value in made.items()))


@contextmanager
def _refusals_kept(work: Path, deployment: str) -> Iterator[None]:
    """Have a refused customization leave its record, as one that fails later does."""
    try:
        yield
    except CustomizationFailed as error:
        with suppress(GarboardError):  # that the folder cannot be used either is told once the documents are right
            keep_refusal(work, deployment, error, OutputScrubber())
        raise
