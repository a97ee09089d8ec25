"""`garboard lab add-node`, `load`, `stop`, `start`, `partition` and `heal`: changes to the nodes of a lab."""

from pathlib import Path

import click

from garboard.cli.lab.wiring import labs, name_option, report
from garboard.lab import nodes
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
    click.echo(nodes.add_node(labs(), name, Role(role), version).name)


@click.command(epilog="Example: garboard lab kubelet cp1 --kubernetes-version v1.37.1")
@name_option
@click.argument("node")
@click.option(
    "--kubernetes-version", metavar="VERSION", required=True, help="A release that the lab has (lab up --also)."
)
def kubelet(name: str, node: str, kubernetes_version: str) -> None:
    """Install kubelet and kubectl of another release on NODE, as a package manager does.

    The kubelet that runs goes on until it is restarted: garboard lab exec NODE -- systemctl restart kubelet.
    """
    nodes.install_kubelet(labs(), name, node, KubernetesVersion.parse(kubernetes_version))


@click.command(epilog="Example: garboard lab load my-operator.tar")
@name_option
@click.argument("archives", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def load(name: str, archives: tuple[Path, ...]) -> None:
    """Import image ARCHIVES (docker save, or an OCI layout in a tar) into every node."""
    for archive in archives:
        loaded = nodes.load_image(labs(), name, archive)
        report(f"{archive.name} is in {', '.join(loaded)}")


@click.command(epilog="Example: garboard lab stop cp2")
@name_option
@click.argument("node")
def stop(name: str, node: str) -> None:
    """Stop NODE as a power cut would: every process of it is killed, its disk stays."""
    nodes.stop(labs(), name, node)


@click.command(epilog="Example: garboard lab start cp2")
@name_option
@click.argument("node", required=False)
def start(name: str, node: str | None) -> None:
    """Start NODE, or every node that is stopped, after `lab stop`, a crash, or a snapshot that was cut short."""
    nodes.start(labs(), name, node)


@click.command(epilog="Example: garboard lab partition cp1 cp2")
@name_option
@click.argument("one")
@click.argument("other")
def partition(name: str, one: str, other: str) -> None:
    """Cut nodes ONE and OTHER off from each other; both still reach the endpoint and every other node."""
    nodes.partition(labs(), name, one, other)


@click.command(epilog="Example: garboard lab heal cp1 cp2")
@name_option
@click.argument("between", nargs=-1, metavar="[ONE OTHER]")
def heal(name: str, between: tuple[str, ...]) -> None:
    """Undo the partition of two nodes, or without names every partition."""
    nodes.heal(labs(), name, between)
