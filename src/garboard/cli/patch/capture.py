"""`garboard patch capture`."""

import sys
from pathlib import Path

import click

from garboard.cli.patch.documents import document_text
from garboard.cli.patch.inputs import read_one, shape_for, version_option
from garboard.errors import BadDocument
from garboard.host import write_file
from garboard.model import KubernetesVersion
from garboard.patches import PatchType, capture_patch
from garboard.schema import load_schema


@click.command(
    epilog="Example: garboard patch capture --original kube-apiserver.yaml --modified edited.yaml"
    " --out patches/kube-apiserver-edit.yaml",
)
@click.option("--original", required=True, metavar="FILE", help="The document as it was generated.")
@click.option("--modified", required=True, metavar="FILE", help="The same document after your edit.")
@click.option(
    "--type", "type_", type=click.Choice(["strategic", "merge", "json"]), default="strategic", show_default=True
)
@click.option("--kind", default="", metavar="KIND", help="The type to compare by; read from the document if empty.")
@click.option("--out", metavar="FILE", help="Write the patch there instead of printing it.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
@version_option
def capture(
    original: str, modified: str, type_: str, kind: str, out: str | None, output: str, version: KubernetesVersion
) -> None:
    """Turn a hand edit into the smallest patch that yields it: no part of it can be left out."""
    before, after = read_one(original).value, read_one(modified).value
    wanted = PatchType(type_)
    shape = shape_for(load_schema(version), kind, after, is_required=wanted is PatchType.STRATEGIC)
    patch = capture_patch(before, after, wanted, shape)
    if not patch:
        raise BadDocument(
            f"{original} and {modified} say the same", hint="save your edit first", error_class="no-change"
        )
    text = document_text(patch, output)
    if out is None:
        sys.stdout.write(text)
    else:
        write_file(Path(out), text.encode())
        sys.stderr.write(f"wrote {out}\n")
