"""`garboard patch create`."""

import sys

import click

from garboard.cli.patch.inputs import compat_option, document_text, read_one, schema_version_option, shape_for
from garboard.errors import BadUsage
from garboard.model import KubernetesVersion
from garboard.patches import create_three_way, create_two_way
from garboard.schema import load_schema


@click.command(
    epilog="Example: garboard patch create --original before.yaml --modified after.yaml -o yaml",
)
@click.option("--original", required=True, metavar="FILE", help="The document before (for three-way: as last applied).")
@click.option("--modified", required=True, metavar="FILE", help="The document as it should be.")
@click.option("--current", metavar="FILE", help="The live document; makes the patch a three-way one.")
@click.option("--kind", default="", metavar="KIND", help="The type to compare by; read from the document if empty.")
@click.option(
    "--overwrite", type=bool, default=True, show_default=True, help="Win over changes made to the live document."
)
@click.option(
    "--preconditions", default="", help="Members that must not change: a comma list such as kind,metadata.name."
)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
@compat_option
@schema_version_option
def create(
    original: str,
    modified: str,
    current: str | None,
    kind: str,
    overwrite: bool,
    preconditions: str,
    output: str,
    compat: bool,  # noqa: ARG001
    version: KubernetesVersion,
) -> None:
    """Compute the strategic patch between documents, as `kubectl apply` does.

    Two-way: from --original to --modified. Three-way, with --current: only what the original had is ever deleted.
    """
    before, after = read_one(original).value, read_one(modified).value
    shape = shape_for(load_schema(version), kind, after, is_required=True)
    assert shape is not None
    names = tuple(name.strip() for name in preconditions.split(",") if name.strip())
    if current is None:
        if not overwrite:
            raise BadUsage("--overwrite belongs to a three-way patch", hint="pass --current FILE as well")
        patch = create_two_way(before, after, shape, names)
    else:
        patch = create_three_way(
            before, after, read_one(current).value, shape, overwrite=overwrite, preconditions=names
        )
    sys.stdout.write(document_text(patch, output))
