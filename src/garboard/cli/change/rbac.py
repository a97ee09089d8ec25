"""`garboard change rbac`."""

import json
import sys

import click

from garboard.change.reads import ADOPT_READS, KUBELETS, rights
from garboard.documents import write_yaml


@click.command(epilog="Example: garboard change rbac --user alice")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Bind the roles to this user; may be repeated.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Bind the roles to this group; may be repeated.")
@click.option(
    "--kubelets",
    is_flag=True,
    help="Add the right to ask kubelets what they run with (get nodes/proxy). It is powerful: whoever has it reads the"
    " logs of every pod, and may run commands in them.",
)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
def rbac(users: tuple[str, ...], groups: tuple[str, ...], kubelets: bool, output: str) -> None:
    """Print the roles with which a cluster can be looked at.

    They are what `change plan`, `change adopt` and `change drift` need: to read single ConfigMaps and workloads, and to
    list Nodes, Pods, Services and Leases. They allow no write, and no Secret. `kubectl apply -f -` takes
    the output. Without --kubelets, `change drift` does not see what kubelets run with, and says so.
    """
    objects = rights((*ADOPT_READS, KUBELETS) if kubelets else ADOPT_READS, users=users, groups=groups)
    if output == "json":
        sys.stdout.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}, indent=2) + "\n")
    else:
        sys.stdout.write("---\n".join(map(write_yaml, objects)))
