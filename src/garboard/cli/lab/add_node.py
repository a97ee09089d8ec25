"""`garboard lab add-node`."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.lab.nodes import add_node as add
from garboard.lab.topology import Role
from garboard.model import KubernetesVersion


@click.command("add-node", epilog="Example: garboard lab add-node --role control-plane")
@name_option
@click.option(
    "--role", type=click.Choice([each.value for each in Role]), default=Role.WORKER.value, show_default=True,
    help="What it becomes.",
)  # fmt: skip
@click.option("--kubernetes-version", metavar="VERSION", help="Its Kubernetes release; by default the lab's.")
def add_node(name: str, role: str, kubernetes_version: str | None) -> None:
    """Add a node to a lab, join it to the cluster if there is one, and print its name."""
    version = KubernetesVersion.parse(kubernetes_version) if kubernetes_version else None
    click.echo(add(labs(), name, Role(role), version).name)
