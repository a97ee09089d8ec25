"""`garboard lab up`."""

import time
from pathlib import Path

import click

from garboard.cli.lab.wiring import labs, tell
from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.lab.creation import up as make
from garboard.lab.documents import read_order
from garboard.lab.topology import DEFAULT_NAME, Bootstrap
from garboard.model import DEFAULT_VERSION


@click.command(epilog="Example: garboard lab up --control-planes 1 --workers 0")
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="The lab's name; several run side by side.")
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
@output_option
def up(
    name: str, control_planes: int, workers: int, kubernetes_version: str, also: tuple[str, ...], by: str,
    config: Path | None, patches: Path | None, given: Path | None, output: OutputFormat,
) -> None:  # fmt: skip
    """Make a lab and wait until its cluster is ready."""
    began = time.monotonic()
    all_labs = labs(given=given)
    order = read_order(
        all_labs.machine, name=name, version=kubernetes_version, by=Bootstrap(by),
        control_planes=control_planes, workers=workers, config=config, patches=patches, also=also,
    )  # fmt: skip
    record = make(all_labs, order)
    tell(f"lab {name} is ready after {time.monotonic() - began:.1f} s")
    files = all_labs.files(name)
    uses = "" if order.lab.bootstrap is Bootstrap.NONE else f"export KUBECONFIG={files.kubeconfig}\n"
    write_data(record.as_json(), output, text=uses)
