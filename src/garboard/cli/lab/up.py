"""`garboard lab up`."""

import time
from pathlib import Path

import click
from click.core import ParameterSource

from garboard.cli.lab.wiring import chosen_lab, complete_snapshots, lab_argument, labs, report
from garboard.cli.output import output_option, write_data
from garboard.errors import BadUsage, as_usage
from garboard.lab.creation import up as make
from garboard.lab.order import read_order
from garboard.lab.snapshots.starting import up_from_snapshot
from garboard.lab.topology import Bootstrap
from garboard.model import DEFAULT_VERSION
from garboard.node.reporter import OutputFormat


@click.command(epilog="Example: garboard lab up --control-planes 1 --workers 0")
@lab_argument
@click.option("--control-planes", default=3, show_default=True, help="How many control-plane nodes.")
@click.option("--workers", default=1, show_default=True, help="How many worker nodes.")
@click.option(
    "--kubernetes-version",
    metavar="VERSION",
    default=str(DEFAULT_VERSION),
    show_default=True,
    help="The Kubernetes release.",
)
@click.option(
    "--also", multiple=True, metavar="VERSION",
    help="Another release whose programs (/opt/kubernetes/VERSION) and images every node gets, for upgrades.",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice([each.value for each in Bootstrap]), default=Bootstrap.KUBEADM.value, show_default=True,
    help="Who makes a cluster of the nodes; `none` leaves them bare.",
)  # fmt: skip
@click.option(
    "--config", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="kubeadm configuration documents of yours; the lab adds what it needs and names what contradicts it.",
)  # fmt: skip
@click.option(
    "--patches", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of patches for kubeadm, given to every node.",
)  # fmt: skip
@click.option(
    "--from", "given", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with programs of yours, see `garboard lab binaries get --help`.",
)  # fmt: skip
@click.option(
    "--snapshot", metavar="SNAPSHOT", shell_complete=complete_snapshots,
    help="Make it of a snapshot, see `garboard lab snapshot --help`.",
)  # fmt: skip
@output_option
@click.pass_context
def up(
    context: click.Context, lab: str | None, name: str | None, control_planes: int, workers: int,
    kubernetes_version: str, also: tuple[str, ...], by: str,
    config: Path | None, patches: Path | None, given: Path | None, snapshot: str | None, output: OutputFormat,
) -> None:  # fmt: skip
    """Make the lab NAME and wait until its cluster is ready; several labs run side by side."""
    began, chosen, all_labs = time.monotonic(), chosen_lab(lab, name), labs(given=given)
    if snapshot is not None:
        _refuse_beside_snapshot(context)
        with as_usage():
            record = up_from_snapshot(all_labs, chosen, snapshot)
    else:
        order = read_order(
            all_labs.machine, name=chosen, version=kubernetes_version, by=Bootstrap(by),
            control_planes=control_planes, workers=workers, config=config, patches=patches, also=also,
        )  # fmt: skip
        record = make(all_labs, order)
    report(f"lab {chosen} is ready after {time.monotonic() - began:.1f} s")
    uses = "" if record.lab.bootstrap is Bootstrap.NONE else f"export KUBECONFIG={all_labs.files(chosen).kubeconfig}\n"
    write_data(record.as_json(), output, text=uses)


def _refuse_beside_snapshot(context: click.Context) -> None:
    """Refuse options that say what a lab consists of: that of a snapshot has been decided."""
    fixed = ("control_planes", "workers", "kubernetes_version", "also", "by", "config", "patches", "given")
    given = [each for each in fixed if context.get_parameter_source(each) is ParameterSource.COMMANDLINE]
    if given:
        flag = "--from" if given[0] == "given" else f"--{given[0].replace('_', '-')}"
        raise BadUsage(f"{flag} cannot be used with --snapshot", hint="a lab of a snapshot is as the snapshot was")
