"""`garboard fleet crds`."""

import json
import sys

import click

from garboard.documents import write_yaml
from garboard.fleet.crds import custom_resource_definitions


@click.command(epilog="Example: garboard fleet crds -o json")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="How to print them."
)
def crds(output: str) -> None:
    """Print the CustomResourceDefinitions of hive.openshift.io/v1 that `fleet install` applies."""
    definitions = custom_resource_definitions()
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": list(definitions)}
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return
    sys.stdout.write("---\n".join(write_yaml(each) for each in definitions))
