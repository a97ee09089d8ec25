"""`garboard patch compile`."""

import sys
from pathlib import Path

import click

from garboard.cli.patch.inputs import node_options, read_many, read_patches, schema_version_option
from garboard.documents import Json
from garboard.errors import BadUsage
from garboard.host import is_folder, list_tree, make_folder, write_file
from garboard.model import KubernetesVersion
from garboard.patches import NodeFacts, compile_patches, target_of
from garboard.schema import load_schema


@click.command(
    "compile",
    epilog="Example: garboard patch compile --patches ./tree --node cp1 --role control-plane"
    " -f ./manifests --out ./patches-cp1",
)
@click.option("--patches", "directory", required=True, metavar="DIR", help="The patch tree.")
@click.option("-f", "--filename", "bases", multiple=True, metavar="FILE", help="Unpatched manifests, for flag patches.")
@click.option("--out", required=True, metavar="DIR", help="The directory to make; it must not hold anything yet.")
@node_options
@schema_version_option
def compile_(
    directory: str,
    bases: tuple[str, ...],
    out: str,
    node: str | None,
    role: str | None,
    version: KubernetesVersion,
) -> None:
    """Write a patch tree as a directory that kubeadm itself understands, for one node.

    Layers become one flat directory in the same order, and flag patches become JSON patches in which every change of
    an existing flag is guarded by a test.
    """
    schema = load_schema(version)
    patches = read_patches(directory, schema, NodeFacts(node, role))
    documents: dict[str, Json] = {}
    for base in read_many(bases):
        target = target_of(base.value, version)
        if target is not None:
            documents[target.name] = base.value
    folder = Path(out)
    if is_folder(folder) and list_tree(folder):
        raise BadUsage(f"{out} is not empty", hint="name a new directory: stale patches would be applied as well")
    files = compile_patches(patches, documents, schema)
    make_folder(folder)
    for file in files:
        write_file(folder / file.name, file.text.encode())
        sys.stderr.write(f"{folder / file.name}\tfrom {file.origin}\n")
    for ignored in patches.ignored:
        sys.stderr.write(f"[patches] ignored {ignored.shown}: {ignored.reason}\n")
