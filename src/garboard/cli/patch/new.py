"""`garboard patch new`."""

import sys
from pathlib import Path

import click

from garboard.cli.completing import complete_fields, complete_targets
from garboard.cli.patch.inputs import node_options, read_one, schema_version_option
from garboard.cli.patch.rendered import configured_node, configured_version
from garboard.documents import Json, read_yaml
from garboard.errors import BadUsage, GarboardError
from garboard.host import is_folder, write_file
from garboard.host.files import read_if_there
from garboard.model import KubernetesVersion
from garboard.patches import PatchType, Target, find_target, refuse_other_target, scaffold
from garboard.phases.rendering import path_of
from garboard.schema import Schema, load_schema


@click.command(epilog="Example: garboard patch new kube-apiserver --config kubeadm.yaml --out ./patches")
@click.argument("target", shell_complete=complete_targets)
@click.argument("fields", metavar="[FIELD]...", nargs=-1, shell_complete=complete_fields)
@click.option("--config", metavar="FILE", help="Begin from what is rendered from this kubeadm configuration.")
@click.option("-f", "--filename", "original", metavar="FILE", help="Begin from this manifest.")
@click.option(
    "--type",
    "type_",
    type=click.Choice(["strategic", "json", "args"]),
    default="strategic",
    show_default=True,
    help="The type of the patch; args is for flags, which FIELD then names.",
)
@click.option("--out", metavar="PATH", help="Write a file, or into a folder by the name that kubeadm knows it by.")
@node_options
@schema_version_option
def new(
    target: str, fields: tuple[str, ...], config: str | None, original: str | None, type_: str, out: str | None,
    node: str | None, role: str | None, version: KubernetesVersion,
) -> None:  # fmt: skip
    """Begin a patch for TARGET: the FIELDs with their present values, or everything that there is, commented out.

    What there is comes from -f, from --config, or from the disk of this node. As long as all of a patch is commented
    out, or each FIELD has its present value, it changes nothing: the first is applied without a word, the second is
    refused by the other commands (no-change).
    """
    if config and original:
        raise BadUsage("-f and --config exclude each other", hint="--config renders what -f would name")
    chosen = PatchType(type_)
    if config:
        configured = configured_node(config, configured_version(version), node, role, is_here=False)
        schema = configured.rendering.schema
        known = find_target(target, schema.version)
        document = configured.original(configured.rendering.one(known)).value
    else:
        schema = load_schema(version)
        known = find_target(target, version)
        document = _read(known, original, schema)
    text = scaffold(document, known, chosen, fields, schema)
    if out is None:
        sys.stdout.write(text)
    else:
        _write(text, Path(out), known, chosen)


def _read(target: Target, original: str | None, schema: Schema) -> Json:
    if original is not None:
        found = read_one(original, as_yaml=True).value
        refuse_other_target(found, target, schema.version, source=original)
        return found
    path = path_of(target)
    hint = "name a manifest with -f, or render it with --config kubeadm.yaml"
    if path is None:
        raise BadUsage(f"{target.name} is an object of the cluster", hint=hint)
    data = read_if_there(path)
    if data is None:
        raise GarboardError(f"there is no {path} on this machine", hint=hint, error_class="unreadable")
    return read_yaml(data, source=path)


def _write(text: str, out: Path, target: Target, type_: PatchType) -> None:
    suffix = "" if type_ is PatchType.STRATEGIC else f"+{type_}"
    path = out / f"{target.name}{suffix}.yaml" if is_folder(out) else out
    if read_if_there(path) is not None:
        raise GarboardError(f"{path} is there already", hint="name another file with --out", error_class="exists")
    write_file(path, text.encode())
    sys.stderr.write(f"wrote {path}\n")
